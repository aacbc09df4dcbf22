"""The real `telecine`, as a process or quickly in this one, and a worker to go with it."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from telecine.cli.app import run

PROGRAM = Path(sys.executable).parent / "telecine"
PATIENCE = 30.0

FLOWS = """
from pathlib import Path
from telecine import Done, Failed, Flow

greet = Flow("greet")

@greet.stage(phase="planning", run="thread")
def plan(bench):
    bench.log("planning", people=2)
    return Done(plan={"speak": ["Ada", "Grace"]})

@greet.stage(needs=["plan"], fan_out=True, run="thread")
def speak(bench):
    bench.progress(1, 2)
    bench.step("say " + bench.input, exit_code=0, tail="said")
    return Done(result=bench.input.upper())

broken = Flow("broken")

@broken.stage(run="thread")
def fail(bench):
    if Path(bench.spec["cure"]).exists():
        return Done()
    return Failed("it is broken", code="broken", permanent=True)

slow = Flow("slow")

@slow.stage(run="thread")
def work(bench):
    import time
    while not bench.stopping and not Path(bench.spec["end"]).exists():
        time.sleep(0.01)

stubborn = Flow("stubborn")

@stubborn.stage()
def hang(bench):
    import time
    while True:
        time.sleep(0.01)
"""


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Shell:
    """A folder with flows in it, and a database."""

    folder: Path
    url: str

    @classmethod
    def prepare(cls, folder: Path, url: str) -> "Shell":
        (folder / "some_flows.py").write_text(FLOWS)
        return cls(folder, url)

    @property
    def environ(self) -> dict[str, str]:
        ours = {name: value for name, value in os.environ.items() if not name.startswith(("TELECINE_", "COLUMNS"))}
        return {**ours, "TELECINE_DATABASE_URL": self.url}

    def __call__(self, *arguments: str, stdin: str = "", **environ: str) -> Said:
        done = subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.folder,
            env={**self.environ, **environ},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    def quick(self, *arguments: str, **environ: str) -> Said:
        """The same command in this process: all but the start of an interpreter, which is most of the time."""
        out, err = io.StringIO(), io.StringIO()
        place = mock.patch.dict(os.environ, {**self.environ, **environ}, clear=True)
        with (
            contextlib.chdir(self.folder),
            place,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run(arguments)
        return Said(code, out.getvalue(), err.getvalue())

    def workers(self, *arguments: str) -> list[Any]:
        found: list[Any] = self.quick("workers", "list", "--json", *arguments).json["workers"]
        return found

    @contextlib.contextmanager
    def worker(self, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
        """A worker that serves the flows; ended in order afterwards."""
        command = [PROGRAM, "worker", "--flows", "some_flows", "--slots", "2", *arguments]
        with (self.folder / "worker.log").open("w") as log:
            process = subprocess.Popen(command, cwd=self.folder, env=self.environ, stderr=log, text=True)
        try:
            until(lambda: "serves" in (self.folder / "worker.log").read_text() and self.workers())
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise


def until(condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)
    return found
