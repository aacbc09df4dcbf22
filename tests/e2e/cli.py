"""The real `telecine`, as a process or quickly in this one, and a worker to go with it."""

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from telecine.cli.app import run
from tests.support.process_pool import TELECINE, Actor, enter

PROGRAM = Path(sys.executable).parent / "telecine"
PATIENCE = 30.0
Process = Actor | subprocess.Popen[bytes]

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
        """A process that ends by itself."""
        with tempfile.TemporaryDirectory(prefix="telecine-") as aside:
            out, log, given = (Path(aside) / name for name in ("out", "log", "given"))
            given.write_text(stdin)
            process = self.start(*arguments, out=out, log=log, stdin=given, environ=environ)
            with ended(process):
                code = process.wait(PATIENCE)
            said = Said(code, out.read_text(), log.read_text())
        assert "Traceback" not in said.err, said.err
        return said

    def start(
        self, *arguments: str, out: Path, log: Path, stdin: Path | None = None, environ: Mapping[str, str] | None = None
    ) -> Actor:
        """A process whose start costs next to nothing; what it says is added to files."""
        own = {**self.environ, **(environ or {})}
        return enter(TELECINE, arguments, folder=self.folder, environ=own, stdin=stdin, out=out, log=log)

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
    def worker(self, *arguments: str) -> Iterator[Actor]:
        """A worker that serves the flows; ended in order afterwards."""
        log = self.folder / "worker.log"
        log.write_text("")
        process = self.start("worker", "--flows", "some_flows", "--slots", "2", *arguments, out=log, log=log)
        with ended(process):
            until(lambda: "serves" in log.read_text() and self.workers())
            yield process


@contextlib.contextmanager
def ended(process: Process) -> Iterator[None]:
    """Whatever happens in the block, the process has ended afterwards: in order, if it can."""
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


def first_object(out: Path, process: Process) -> Any:
    """What it prints first, once it is whole; waits for it."""

    def whole() -> Any:
        assert process.poll() is None, f"it has ended with {process.poll()}"
        with contextlib.suppress(FileNotFoundError, ValueError):
            return json.JSONDecoder().raw_decode(out.read_text())[0]
        return None

    return until(whole, 2 * PATIENCE)


def until(condition: Callable[[], Any], patience: float = PATIENCE) -> Any:
    """Wait for a condition, not for a time."""
    deadline = time.monotonic() + patience
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)
    return found
