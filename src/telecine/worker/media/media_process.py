"""A media child: one process in a group of its own, which runs no code of the user and dies with the worker.

It is forked by a fork server (`fork_server.py`) where that is possible, or started like any program. Either way it has
a folder, a channel (JSON lines, both ways), its output, and the files that it was given.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from telecine.worker.media.fork_child import LINE
from telecine.worker.processes.child import pair, start_bare

log = logging.getLogger(__name__)


class ChildEnd(NamedTuple):
    """How a child ended: minus the number of the signal that killed it, and what it used."""

    exit_code: int
    cpu_seconds: float = 0.0
    most_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ChildResources:
    """What a child gets: its folder, how much it yields to others, and descriptors."""

    folder: Path
    nice: int
    channel: int
    output: int
    files: Mapping[str, int]


class RunningChild(Protocol):
    """A running child. `send` may be called from any thread; all else belongs to the loop."""

    pid: int
    gone: asyncio.Future[ChildEnd]

    def send(self, number: signal.Signals) -> None: ...

    def close(self) -> None: ...


class ChildForker(Protocol):
    """Who forks children, if this program is theirs; `ForkFailed` if they fail."""

    def can_fork_for(self, program: str) -> bool: ...

    async def fork(self, given: ChildResources) -> RunningChild: ...


class ForkFailed(Exception):
    """There is no child; the message says why."""


class SpawnedChild:
    """A child that was started like any program."""

    def __init__(self, command: list[str], given: ChildResources) -> None:
        self._loop = asyncio.get_running_loop()
        self._reaping = threading.Lock()
        self.gone: asyncio.Future[ChildEnd] = self._loop.create_future()
        self._process = start_bare(command, given.folder, given.output, (given.channel, *given.files.values()))
        self.pid = self._process.pid
        if given.nice:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self.pid, given.nice)
        threading.Thread(target=self._reap, name=f"telecine-media-{self.pid}", daemon=True).start()

    def send(self, number: signal.Signals) -> None:
        """To the whole group. Once it is reaped its number may be somebody else's: then to nobody."""
        with self._reaping, suppress(OSError):
            if self._process.returncode is None:
                os.killpg(self.pid, number)

    def _reap(self) -> None:
        """In a thread of its own: wait for the end, kill whoever it left in its group, collect it."""
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._reaping:
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
            _, status, used = os.wait4(self.pid, 0)
            self._process.returncode = os.waitstatus_to_exitcode(status)
        per_unit = 1 if sys.platform == "darwin" else 1024
        end = ChildEnd(self._process.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss * per_unit)
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._say_gone, end)

    def _say_gone(self, end: ChildEnd) -> None:
        if not self.gone.done():
            self.gone.set_result(end)

    def close(self) -> None:
        """Nothing is held but the process itself, which its thread collects."""


class MediaProcess:
    """A running media child and the lines to it. `send` may be called from any thread; all else belongs to the loop.

    `files` are the descriptors that it was given, by name, as it knows them.
    """

    def __init__(self, life: RunningChild, lines: ChildPipes, command: list[str], files: Mapping[str, int]) -> None:
        self._life = life
        self._lines = lines
        self.command = command
        self.files = dict(files)
        self.channel, self.output, self.ask = lines.channel, lines.output, lines.ask
        self.gone = life.gone
        self.send = life.send

    @property
    def pid(self) -> int:
        return self._life.pid

    @property
    def end(self) -> ChildEnd | None:
        """None while it lives."""
        return self.gone.result() if self.gone.done() else None

    def close(self) -> None:
        """Let go of all lines."""
        self._life.close()
        self._lines.near.close()


class ChildPipes(NamedTuple):
    """Our ends of what leads to a child."""

    channel: socket.socket
    output: int
    ask: socket.socket | None
    near: ExitStack


async def start(
    program: str, folder: Path, files: Mapping[str, int], forker: ChildForker | None, *, asks: bool, nice: int
) -> MediaProcess:
    """Start a child with these descriptors, by name; with `asks`, one more that it asks for bytes."""
    wish = _Wish(program, folder, files, asks, nice)
    if forker is not None and forker.can_fork_for(program):
        try:
            return await _started(wish, forker)
        except ForkFailed as error:
            log.warning("%s; the child is started as a program instead", error)
    return await _started(wish, None)


class _Wish(NamedTuple):
    program: str
    folder: Path
    files: Mapping[str, int]
    asks: bool
    nice: int


async def _started(wish: _Wish, forker: ChildForker | None) -> MediaProcess:
    """With pipes of its own: a fork server that failed may still hold those of the first try."""
    with ExitStack() as near, ExitStack() as far:
        channel, far_channel = pair(near, far)
        names = dict(wish.files)
        ask = None
        if wish.asks:
            ask, far_ask = pair(near, far)
            names["ask"] = far_ask.fileno()
        output, far_output = os.pipe()
        near.callback(os.close, output)
        far.callback(os.close, far_output)
        os.set_blocking(output, False)
        given = ChildResources(wish.folder, wish.nice, far_channel.fileno(), far_output, names)
        command = [sys.executable, "-I", *_called(wish.program)]
        if forker is None:
            life: RunningChild = SpawnedChild([*command, str(given.channel)], given)
        else:
            life = await forker.fork(given)
            names = {name: LINE + 1 + n for n, name in enumerate(names)}
        return MediaProcess(life, ChildPipes(channel, output, ask, near.pop_all()), command, names)


def _called(program: str) -> list[str]:
    """A module by its name, or a file."""
    return [program] if program.endswith(".py") else ["-m", program]
