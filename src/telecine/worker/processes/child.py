"""Processes of a worker: the only module that starts a program.

A handler's child is two processes: a supervisor, and the handler that it forks (`supervisor.py`). Three lines lead
there: the channel (JSON lines, both ways), the lifeline (orders to the supervisor; it breaks when either side dies) and
the handler's output. A child is started in the thread of the worker's loop, which lives as long as the worker: the
kernel's parent-death signal goes by threads. Media children run no code of the user and are simpler: see
`media_process.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path

KILL_SECONDS = 1.0
# A media child fills some hundred megabytes once and keeps them until it ends: one heap in large pages takes the kernel
# a third of the time that it takes for many maps of small ones. Another libc than glibc overlooks this.
ROOMY = ":".join(
    f"glibc.malloc.{name}={value}"
    for name, value in {"hugetlb": 1, "mmap_threshold": 1 << 30, "trim_threshold": 1 << 31, "top_pad": 1 << 26}.items()
)

Process = subprocess.Popen[bytes]


class Child:
    """A running child, and how to end it. `stop` may be called from any thread; all else belongs to the loop."""

    def __init__(self, term: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = b""
        self.gone: asyncio.Future[None] = self._loop.create_future()
        with ExitStack() as near, ExitStack() as far:
            self._lifeline, far_lifeline = pair(near, far)
            self.channel, far_channel = pair(near, far)
            self.output, far_output = os.pipe()
            near.callback(os.close, self.output)
            far.callback(os.close, far_output)
            ends = (far_lifeline.fileno(), far_channel.fileno())
            self._process = subprocess.Popen(
                [sys.executable, "-m", "telecine.worker.processes.child_main", *map(str, (*ends, os.getpid(), term))],
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
        """TERM, then KILL after a while; or KILL at once. Everything below the supervisor, too."""
        with suppress(OSError):
            self._lifeline.send(b"K" if hard else b"T")
        if hard:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._loop.call_later, KILL_SECONDS, self._insist)

    def _insist(self) -> None:
        """A supervisor that does not answer (stopped, say) is killed with its whole group."""
        if not self.gone.done():
            self._kill_group()

    def _kill_group(self) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _hear(self) -> None:
        """The supervisor's last word is how the handler ended; the end of the line says that all are gone."""
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
        """Wait until the supervisor is gone and reaped; kill what is left if it died before its time."""
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


def start_bare(command: list[str], folder: Path, output: int | None, descriptors: Collection[int]) -> Process:
    """A program in a session of its own that gets these descriptors and nothing else; without `output`, it is mute.

    Nothing of the worker's environment, which has its secrets; only what the interpreter needs to start.
    """
    needed = {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}
    said = subprocess.DEVNULL if output is None else output
    return subprocess.Popen(
        command,
        cwd=folder,
        env={"LANG": "C.UTF-8", "TMPDIR": str(folder), "GLIBC_TUNABLES": ROOMY, **needed},
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        pass_fds=tuple(descriptors),
        start_new_session=True,
    )


def waited(process: Process, seconds: float) -> bool:
    """Whether it has ended by then."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    return process.returncode is not None


def pair(near: ExitStack, far: ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, theirs = socket.socketpair()
    return near.enter_context(ours), far.enter_context(theirs)
