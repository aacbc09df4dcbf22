"""`telecine transcode` in a folder of its own, as a process or quickly in this one."""

import io
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from telecine.cli.app import run
from tests.media.transcode_env import LADDER

PROGRAM = Path(sys.executable).parent / "telecine"
PATIENCE = 60.0


@dataclass(frozen=True)
class Shell:
    """An empty folder to work in."""

    folder: Path

    @property
    def environ(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("TELECINE_", "COLUMNS"))}
        small = {"SEGMENT_SECONDS": "1", "GOP_SECONDS": "0.5", "LADDER": "small", "SLOTS": "2"}
        return {
            **ours,
            **{f"TELECINE_{name}": value for name, value in small.items()},
            "TELECINE_LADDERS": json.dumps({"small": LADDER, "tiny": LADDER[:1]}),
        }

    def __call__(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        with self.started(*arguments) as process:
            out, err = process.communicate(timeout=PATIENCE)
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def quick(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        """The same command in this process: for what ends before anything is begun."""
        out, err = io.StringIO(), io.StringIO()
        with (
            chdir(self.folder),
            mock.patch.dict(os.environ, self.environ, clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            code = run(["transcode", *map(str, arguments)])
        return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())

    @contextmanager
    def started(self, *arguments: object) -> Iterator[subprocess.Popen[str]]:
        process = subprocess.Popen(
            [PROGRAM, "transcode", *map(str, arguments)], cwd=self.folder, env=self.environ, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        path = self.folder / ".telecine/telecine.db"
        if not path.exists():
            return []
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            try:
                return database.execute(sql).fetchall()
            except sqlite3.OperationalError:  # it is being made just now
                return []

    def pieces(self) -> dict[str, tuple[str, int]]:
        """What is recorded of the video, with its place and its token."""
        found = self.rows("select name, key, token from artifact where stage = 'video' and key is not null")
        return {name: (key, token) for name, key, token in found}


def until(check: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (found := check()):
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.02)
    return found
