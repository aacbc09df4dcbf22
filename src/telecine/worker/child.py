"""Processes of a worker: the only module that starts one.

A handler's child is two processes: a keeper, and the handler that it forks (`keeper.py`). Three lines lead there: the
channel (JSON lines, both ways), the lifeline (orders to the keeper; it breaks when either side dies) and the handler's
output. A child is started in the thread of the worker's loop, which lives as long as the worker: the kernel's
parent-death signal goes by threads.

A media child is one process in a group of its own. It runs no code of the user, and asks the kernel itself to be killed
when the worker dies.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from resource import struct_rusage

KILL_SECONDS = 1.0


class Child:
    """A running child, and how to end it. `stop` may be called from any thread; all else belongs to the loop."""

    def __init__(self, term: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = b""
        self.gone: asyncio.Future[None] = self._loop.create_future()
        with ExitStack() as near, ExitStack() as far:
            self._lifeline, far_lifeline = _pair(near, far)
            self.channel, far_channel = _pair(near, far)
            self.output, far_output = os.pipe()
            near.callback(os.close, self.output)
            far.callback(os.close, far_output)
            ends = (far_lifeline.fileno(), far_channel.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "telecine.worker.inside", *map(str, (*ends, os.getpid(), term))],
                stdin=subprocess.DEVNULL,
                stdout=far_output,
                stderr=far_output,
                pass_fds=ends,
                start_new_session=True,  # a group of its own, and no Ctrl-C of the terminal
            )
            self._near = near.pop_all()
        self._lifeline.setblocking(False)
        os.set_blocking(self.output, False)
        self._loop.add_reader(self._lifeline, self._hear)

    def stop(self, hard: bool) -> None:
        """TERM, then KILL after a while; or KILL at once. Everything below the keeper, too."""
        with suppress(OSError):
            self._lifeline.send(b"K" if hard else b"T")
        if hard:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop.call_later, KILL_SECONDS, self._insist)

    def _insist(self) -> None:
        """A keeper that does not answer (stopped, say) is killed with its whole group."""
        if not self.gone.done():
            self._kill_group()

    def _kill_group(self) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _hear(self) -> None:
        """The keeper's last word is how the handler ended; the end of the line says that all are gone."""
        try:
            heard = self._lifeline.recv(64)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        self._heard += heard
        if not heard:
            self._loop.remove_reader(self._lifeline)
            if not self.gone.done():
                self.gone.set_result(None)

    @property
    def exit_code(self) -> int | None:
        """The handler's exit code, minus the number of the signal that killed it; None: nobody knows."""
        word = self._heard.strip()
        return int(word) if word and word != b"None" else None

    async def collect(self) -> None:
        """Wait until the keeper is gone and reaped; kill what is left if it died before its time."""
        await self.gone
        if not self._heard:
            self._kill_group()
        await asyncio.to_thread(self._process.wait)

    def close(self) -> None:
        """Let go of all lines; a child that still lives ends by that."""
        self._loop.remove_reader(self._lifeline)
        self._near.close()
        if self._process.poll() is None:
            self._kill_group()
            self._process.wait()


class MediaProcess:
    """A running media child. `send` may be called from any thread; all else belongs to the loop.

    `files` are the descriptors that it inherits, by name; with `asks`, one more that it asks for bytes (`ask`).
    """

    def __init__(self, program: str, folder: Path, files: Mapping[str, int], *, asks: bool, nice: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._reaping = threading.Lock()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self.usage: struct_rusage | None = None
        self.ask: socket.socket | None = None
        with ExitStack() as near, ExitStack() as far:
            self.channel, far_channel = _pair(near, far)
            self.files = dict(files)
            if asks:
                self.ask, far_ask = _pair(near, far)
                self.files["ask"] = far_ask.fileno()
            self.output, far_output = os.pipe()
            near.callback(os.close, self.output)
            far.callback(os.close, far_output)
            self.command = [sys.executable, "-I", *_called(program), str(far_channel.fileno())]
            self._process = subprocess.Popen(
                self.command,
                cwd=folder,
                env=_bare(folder),
                stdin=subprocess.DEVNULL,
                stdout=far_output,
                stderr=far_output,
                pass_fds=(far_channel.fileno(), *self.files.values()),
                start_new_session=True,
            )
            self._near = near.pop_all()
        if nice:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self._process.pid, nice)
        os.set_blocking(self.output, False)
        threading.Thread(target=self._reap, name=f"telecine-media-{self._process.pid}", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Minus the number of the signal that killed it; None while it lives."""
        return self._process.returncode

    @property
    def usage_bytes(self) -> int:
        """The most memory that it had at once; at least what the worker had when it started it, says the kernel."""
        per_unit = 1 if sys.platform == "darwin" else 1024
        return 0 if self.usage is None else self.usage.ru_maxrss * per_unit

    def send(self, number: signal.Signals) -> None:
        """To the whole group. Once it is reaped its number may be somebody else's: then to nobody."""
        with self._reaping, suppress(OSError):
            if self._process.returncode is None:
                os.killpg(self._process.pid, number)

    def _reap(self) -> None:
        """In a thread of its own: wait for the end, kill whoever it left in its group, collect it."""
        os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        with self._reaping:
            with suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
            _, status, self.usage = os.wait4(self._process.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._say_gone)

    def _say_gone(self) -> None:
        if not self.gone.done():
            self.gone.set_result(None)

    def close(self) -> None:
        """Let go of all lines."""
        self._near.close()


def _called(program: str) -> list[str]:
    """A module by its name, or a file."""
    return [program] if program.endswith(".py") else ["-m", program]


def _bare(folder: Path) -> dict[str, str]:
    """Nothing of the worker's environment, which has its secrets; only what the interpreter needs to start."""
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    return {"LANG": "C.UTF-8", "TMPDIR": str(folder), **needed}


def _pair(near: ExitStack, far: ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    return near.enter_context(ours), far.enter_context(theirs)
