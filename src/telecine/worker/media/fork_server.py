"""The fork server: a process that has loaded FFmpeg already, and forks each media child.

Loading FFmpeg takes a fifth of a second, as long as some orders take. Each attempt still has a child of its own, locked
in before it sees the first byte of a source; the fork server never sees one.

Forked children have the same memory layout, which helps an attacker who wants to break out of one. So a fork server is
replaced after a crash of one of its children, and after many forks.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from telecine.worker.media.fork_child import MAX_GIVEN
from telecine.worker.media.media_process import ChildEnd, ChildResources, ForkFailed
from telecine.worker.processes.child import start_bare, waited

FORK_SECONDS = 20.0
LAST_SECONDS = 5.0
MAX_FORKS = 100
MAX_FAILED = 3  # fork servers in a row that bore nobody; then nobody tries for a while
REST_SECONDS = 60.0
MAX_FILES = MAX_GIVEN - 3  # beside line, output and report
_OUR_OWN = {signal.SIGTERM, signal.SIGKILL}


class ForkedChild:
    """A child of a fork server. `send` may be called from any thread; all else belongs to the loop."""

    def __init__(self, house: ForkServerProcess, report: socket.socket, told: bytes, handle: int) -> None:
        self._server = house
        self._report = report
        self._handle: int | None = handle
        self._using = threading.Lock()
        self._is_orphan = self._has_ended = False
        self._loop = asyncio.get_running_loop()
        self.pid = int(told)
        self.gone: asyncio.Future[ChildEnd] = self._loop.create_future()
        self._loop.add_reader(report, self._hear)
        self._loop.add_reader(handle, self._see_it_end, handle)

    def send(self, number: signal.Signals) -> None:
        """By its handle: the pid may be reused once it is reaped. The fork server ends what it left behind."""
        with self._using, suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)

    def _hear(self) -> None:
        """How it ended; or nothing, when the fork server has ended: then the child does, too."""
        try:
            told = self._report.recv(256)
        except BlockingIOError:
            return
        except OSError:
            told = b""
        self._loop.remove_reader(self._report)
        if not told:
            self._is_orphan = True
            self.send(signal.SIGKILL)
            if self._has_ended:
                self._give_up()
            return
        said = json.loads(told)
        end = ChildEnd(os.waitstatus_to_exitcode(said["status"]), said["cpu"], said["rss"] * 1024)
        if end.exit_code < 0 and -end.exit_code not in _OUR_OWN:
            self._server.leave()
        self._end(end)

    def _see_it_end(self, handle: int) -> None:
        """The kernel says so. The fork server says how, unless it has ended or is stuck."""
        self._loop.remove_reader(handle)
        self._has_ended = True
        self._loop.call_later(0 if self._is_orphan else LAST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if not self.gone.done():
            self._server.end()
            self._end(ChildEnd(-signal.SIGKILL))

    def _end(self, end: ChildEnd) -> None:
        if not self.gone.done():
            self.gone.set_result(end)

    def close(self) -> None:
        with self._using:
            handle, self._handle = self._handle, None
        if handle is not None:
            self._loop.remove_reader(handle)
            os.close(handle)
        self._loop.remove_reader(self._report)
        self._report.close()


class ForkServerProcess:
    """One such process, and the line to it."""

    def __init__(self, program: str) -> None:
        self.forks = 0
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setblocking(False)
        with theirs:
            command = [sys.executable, "-I", "-m", "telecine.worker.media.fork_child", program, str(theirs.fileno())]
            # Mute: what keeps it from loading is said by the child that is started instead.
            self.process = start_bare(command, Path("/"), None, [theirs.fileno()])

    @property
    def is_left(self) -> bool:
        return self._line.fileno() < 0

    async def fork(self, given: ChildResources) -> ForkedChild:
        """`TimeoutError`: it is stuck. `ConnectionError`: it is gone. Any other `OSError` is about this child alone."""
        # The fork server stands elsewhere: to it, a relative path would be another one.
        request = json.dumps({"folder": str(given.folder.absolute()), "nice": given.nice}).encode()
        report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                handed = [given.channel, given.output, theirs.fileno(), *given.files.values()]
                socket.send_fds(self._line, [request], handed)
            child = ForkedChild(self, report, *await _first_word(report))
        except BaseException:
            report.close()  # and the lines, by whoever asked: a child that nobody talks to ends
            raise
        self.forks += 1
        return child

    def leave(self) -> None:
        """Ask for nothing more: it ends when its children have."""
        self._line.close()

    def end(self) -> None:
        """It does not answer: whatever lives there ends with it."""
        self.leave()
        if self.process.poll() is None:
            self.process.kill()


class ForkServer:
    """Where a worker has its children of one program from. Belongs to the loop."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._processes: list[ForkServerProcess] = []  # the last one is asked; the others end with their last child
        self._failed = 0
        self._rests_until = 0.0
        self._closed = False

    def can_fork_for(self, program: str) -> bool:
        if self._closed or program != self._program or not can_fork():
            return False
        return asyncio.get_running_loop().time() >= self._rests_until

    async def fork(self, given: ChildResources) -> ForkedChild:
        """A child that was given these; it knows its line as 3, its files as 4 and on."""
        given.folder.stat()  # if it is not there, nobody can start a child in it
        if len(given.files) > MAX_FILES:
            raise ForkFailed(f"the fork server hands on {MAX_FILES} files, not {len(given.files)}")
        house = self._open()
        try:
            child = await house.fork(given)
        except TimeoutError as error:
            self._give_up(house, house.end)
            raise ForkFailed("the fork server does not answer") from error
        except ConnectionError as error:
            self._give_up(house, house.leave)
            raise ForkFailed("the fork server is gone") from error
        except OSError as error:
            raise ForkFailed(f"the fork server gave no child: {error}") from error
        self._failed = 0
        return child

    def _open(self) -> ForkServerProcess:
        house = self._processes[-1] if self._processes else None
        if house is None or house.is_left or house.forks >= MAX_FORKS:
            if house is not None:
                house.leave()
            self._processes[:] = [one for one in self._processes if one.process.poll() is None]
            house = ForkServerProcess(self._program)
            self._processes.append(house)
        return house

    def _give_up(self, house: ForkServerProcess, leave: Callable[[], None]) -> None:
        """Several may have asked it at once: it has failed only once."""
        if not house.is_left and not house.forks:
            self._failed += 1
            if self._failed >= MAX_FAILED:
                self._rests_until = asyncio.get_running_loop().time() + REST_SECONDS
        leave()

    async def close(self) -> None:
        self._closed = True
        for house in self._processes:
            house.leave()
        for house in self._processes:
            if not await asyncio.to_thread(waited, house.process, LAST_SECONDS):
                house.end()
                await asyncio.to_thread(house.process.wait)
        self._processes.clear()


async def _first_word(report: socket.socket) -> tuple[bytes, int]:
    """The child's number and its handle."""
    report.setblocking(False)
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[None] = loop.create_future()
    loop.add_reader(report, lambda: None if heard.done() else heard.set_result(None))
    try:
        async with asyncio.timeout(FORK_SECONDS):
            await heard
    except TimeoutError:
        if heard.cancelled():  # else it came while this loop stood still
            raise
    finally:
        loop.remove_reader(report)
    told, handles, _, _ = socket.recv_fds(report, 64, 1)
    if not told:
        raise ConnectionError("it has ended")
    if not handles:
        raise OSError(told.decode(errors="replace"))
    os.set_inheritable(handles[0], False)
    return told, handles[0]


@cache
def can_fork() -> bool:
    """Whether this system and this interpreter have what it takes: handles of processes, and a fork that is safe."""
    if sys.platform != "linux":
        return False
    try:
        handle = os.pidfd_open(os.getpid())
    except (OSError, AttributeError):  # some builds of Python are without it
        return False
    try:
        signal.pidfd_send_signal(handle, 0)
    except (OSError, AttributeError):
        return False
    finally:
        os.close(handle)
    return True
