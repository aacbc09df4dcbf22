"""Where media children come from in earnest: a process that has loaded FFmpeg already, and forks for each of them.

To load it takes a fifth of a second, which is as long as some orders take. Each attempt has a child of its own all the
same, locked in before it sees the first byte of a source; the nursery never sees one.

Forked children lie in memory like each other, which helps whoever wants to break out of one: so a nursery whose child
has crashed is left for a new one, and so is one that bore many.
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

from telecine.worker.media.fork_child import MOST_GIVEN
from telecine.worker.media.media_process import End, Given, NotBorn
from telecine.worker.processes.child import start_bare, waited

BIRTH_SECONDS = 20.0
LAST_SECONDS = 5.0
MOST_BORN = 100
MOST_FAILED = 3  # nurseries in a row that bore nobody; then nobody tries for a while
REST_SECONDS = 60.0
MOST_FILES = MOST_GIVEN - 3  # beside line, output and report
_OUR_OWN = {signal.SIGTERM, signal.SIGKILL}


class Forked:
    """A child of a nursery. `send` may be called from any thread; all else belongs to the loop."""

    def __init__(self, house: House, report: socket.socket, told: bytes, handle: int) -> None:
        self._house = house
        self._report = report
        self._handle: int | None = handle
        self._using = threading.Lock()
        self._is_orphan = self._has_ended = False
        self._loop = asyncio.get_running_loop()
        self.pid = int(told)
        self.gone: asyncio.Future[End] = self._loop.create_future()
        self._loop.add_reader(report, self._hear)
        self._loop.add_reader(handle, self._see_it_end, handle)

    def send(self, number: signal.Signals) -> None:
        """By its handle: its number may be somebody else's once it is reaped. Who it left is ended by the nursery."""
        with self._using, suppress(OSError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)

    def _hear(self) -> None:
        """How it ended; or nothing, when the nursery has ended: then the child does, too."""
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
        end = End(os.waitstatus_to_exitcode(said["status"]), said["cpu"], said["rss"] * 1024)
        if end.exit_code < 0 and -end.exit_code not in _OUR_OWN:
            self._house.leave()
        self._end(end)

    def _see_it_end(self, handle: int) -> None:
        """The kernel says so. The nursery says how, unless it has ended or is stuck."""
        self._loop.remove_reader(handle)
        self._has_ended = True
        self._loop.call_later(0 if self._is_orphan else LAST_SECONDS, self._give_up)

    def _give_up(self) -> None:
        if not self.gone.done():
            self._house.end()
            self._end(End(-signal.SIGKILL))

    def _end(self, end: End) -> None:
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


class House:
    """One such process, and the line to it."""

    def __init__(self, program: str) -> None:
        self.born = 0
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.setblocking(False)
        with theirs:
            command = [sys.executable, "-I", "-m", "telecine.worker.media.fork_child", program, str(theirs.fileno())]
            # Mute: what keeps it from loading is said by the child that is started instead.
            self.process = start_bare(command, Path("/"), None, [theirs.fileno()])

    @property
    def is_left(self) -> bool:
        return self._line.fileno() < 0

    async def bear(self, given: Given) -> Forked:
        """`TimeoutError`: it is stuck. `ConnectionError`: it is gone. Any other `OSError` is about this child alone."""
        # The nursery stands elsewhere: to it, a relative path would be another one.
        request = json.dumps({"folder": str(given.folder.absolute()), "nice": given.nice}).encode()
        report, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                handed = [given.channel, given.output, theirs.fileno(), *given.files.values()]
                socket.send_fds(self._line, [request], handed)
            child = Forked(self, report, *await _first_word(report))
        except BaseException:
            report.close()  # and the lines, by whoever asked: a child that nobody talks to ends
            raise
        self.born += 1
        return child

    def leave(self) -> None:
        """Ask for nothing more: it ends when its children have."""
        self._line.close()

    def end(self) -> None:
        """It does not answer: whatever lives there ends with it."""
        self.leave()
        if self.process.poll() is None:
            self.process.kill()


class Nursery:
    """Where a worker has its children of one program from. Belongs to the loop."""

    def __init__(self, program: str) -> None:
        self._program = program
        self._houses: list[House] = []  # the last one is asked; the others end with their last child
        self._failed = 0
        self._rests_until = 0.0
        self._closed = False

    def bears(self, program: str) -> bool:
        if self._closed or program != self._program or not can_fork():
            return False
        return asyncio.get_running_loop().time() >= self._rests_until

    async def bear(self, given: Given) -> Forked:
        """A child that was given these; it knows its line as 3, its files as 4 and on."""
        given.folder.stat()  # if it is not there, nobody can start a child in it
        if len(given.files) > MOST_FILES:
            raise NotBorn(f"the nursery hands on {MOST_FILES} files, not {len(given.files)}")
        house = self._open()
        try:
            child = await house.bear(given)
        except TimeoutError as error:
            self._give_up(house, house.end)
            raise NotBorn("the nursery does not answer") from error
        except ConnectionError as error:
            self._give_up(house, house.leave)
            raise NotBorn("the nursery is gone") from error
        except OSError as error:
            raise NotBorn(f"the nursery gave no child: {error}") from error
        self._failed = 0
        return child

    def _open(self) -> House:
        house = self._houses[-1] if self._houses else None
        if house is None or house.is_left or house.born >= MOST_BORN:
            if house is not None:
                house.leave()
            self._houses[:] = [one for one in self._houses if one.process.poll() is None]
            house = House(self._program)
            self._houses.append(house)
        return house

    def _give_up(self, house: House, leave: Callable[[], None]) -> None:
        """Several may have asked it at once: it has failed only once."""
        if not house.is_left and not house.born:
            self._failed += 1
            if self._failed >= MOST_FAILED:
                self._rests_until = asyncio.get_running_loop().time() + REST_SECONDS
        leave()

    async def close(self) -> None:
        self._closed = True
        for house in self._houses:
            house.leave()
        for house in self._houses:
            if not await asyncio.to_thread(waited, house.process, LAST_SECONDS):
                house.end()
                await asyncio.to_thread(house.process.wait)
        self._houses.clear()


async def _first_word(report: socket.socket) -> tuple[bytes, int]:
    """The child's number and its handle."""
    report.setblocking(False)
    loop = asyncio.get_running_loop()
    heard: asyncio.Future[None] = loop.create_future()
    loop.add_reader(report, lambda: None if heard.done() else heard.set_result(None))
    try:
        async with asyncio.timeout(BIRTH_SECONDS):
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
