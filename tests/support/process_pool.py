"""Programs that wait in the wings: our code is read once, and each program that a test starts is a fork of that.

To read it takes a server two seconds of a processor, a worker half a second, and tests start hundreds. What enters is
a process like any other: it has a number, a folder, an environment and an output of its own, and dies by kill -9.

    this process ──asks──▶ prompter ──forks──▶ server, worker, …

The prompter ends with this process, however that ends, and whoever is still on stage then ends with it.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

TELECINE = "telecine.cli:main"
# What servers and workers have read by the time they are at work.
READ = """
telecine.cli.app telecine.cli.logging telecine.cli.commands.serve telecine.cli.commands.worker telecine.wiring.server
telecine.wiring.remote telecine.wiring.protocols anyio._backends._asyncio asyncpg httpcore httptools uvloop
uvicorn.lifespan.off uvicorn.loops.uvloop uvicorn.protocols.http.httptools_impl
uvicorn.protocols.websockets.websockets_sansio_impl tests.fault.program
"""


class Actor:
    """A program on stage, with the words of `subprocess.Popen`."""

    def __init__(self, prompter: Prompter, pid: int) -> None:
        self._prompter = prompter
        self._lock = threading.RLock()
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None:
                self.returncode = self._prompter.ask(look=self.pid)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            time.sleep(0.01)
        return code

    def send_signal(self, number: int) -> None:
        with self._lock:  # once it is collected its number may be somebody else's
            if self.poll() is None:
                os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Prompter:
    def __init__(self, read: str = READ) -> None:
        self._lock = threading.Lock()
        self._line, far = socket.socketpair()
        with far:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.process_pool", str(far.fileno()), *read.split()],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.DEVNULL,
                pass_fds=[far.fileno()],
            )
        self._file = self._line.makefile("rwb")

    def ask(self, **order: Any) -> Any:
        with self._lock:
            self._file.write(json.dumps(order).encode() + b"\n")
            self._file.flush()
            answer = self._file.readline()
        assert answer, "the prompter has died"
        return json.loads(answer)

    def enter(
        self,
        program: str,
        arguments: Sequence[str] = (),
        *,
        folder: Path | None = None,
        environ: Mapping[str, str] | None = None,
        stdin: Path | None = None,
        out: Path,
        log: Path,
    ) -> Actor:
        """Start `module:function`, which takes its arguments from the command line; its output is added to files."""
        part = {
            "program": program,
            "arguments": list(arguments),
            "folder": str(folder or Path.cwd()),
            "environ": dict(os.environ if environ is None else environ),
            "files": [str(stdin or os.devnull), str(out), str(log)],
        }
        return Actor(self, self.ask(enter=part))

    def end(self) -> None:
        with suppress(OSError):
            self._file.close()
        self._line.close()
        self._process.wait()


@cache
def _prompter() -> Prompter:
    """One for the whole run, started on first use."""
    own = Prompter()
    atexit.register(own.end)
    return own


def enter(program: str, arguments: Sequence[str] = (), **how: Any) -> Actor:
    return _prompter().enter(program, arguments, **how)


# -- in the prompter --------------------------------------------------------------------------------------------------


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when whoever asks has ended
    for name in sys.argv[2:]:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as line, line.makefile("rwb") as file:
        order = _prompted(file)
    if order is not None:
        _play(order)


def _prompted(file: Any) -> dict[str, Any] | None:
    """The part that whoever returns from here has to play; none, if it is the prompter itself, at the end."""
    living: set[int] = set()
    for asked in file:
        order = json.loads(asked)
        if "enter" in order:
            pid = os.fork()
            if not pid:
                part: dict[str, Any] = order["enter"]
                return part
            living.add(pid)
            answer: int | None = pid
        else:
            answer = _ended(order["look"])
            if answer is not None:
                living.discard(order["look"])
        file.write(json.dumps(answer).encode() + b"\n")
        file.flush()
    for pid in living:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return None


def _ended(pid: int) -> int | None:
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def _play(part: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(part["folder"])
    os.environ.clear()
    os.environ.update(part["environ"])
    for number, path in enumerate(part["files"]):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(opened, number)
        os.close(opened)
    module, _, function = part["program"].partition(":")
    sys.argv = [module, *part["arguments"]]
    getattr(importlib.import_module(module), function)()


if __name__ == "__main__":
    main()
