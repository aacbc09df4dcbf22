"""A bell between processes on one SQLite file: the file itself says when somebody has committed.

`pragma data_version` changes with every commit of another connection and costs a few microseconds, no lock and
no disk. It tells of every commit, whatever it wrote, hence `vague`. A ring in this process needs no look at the file.

When to look: the system says when somebody writes to the log beside the file (`FileListener`). The commit is to be seen
a while after that, when its pages have reached the disk, so one looks closely at first and then less and less: what
took long may be noticed a little later. Who cannot hear looks all the time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from telecine.dispatch.inotify import FileListener
from telecine.dispatch.local import LocalBell

BUSY_LOOK = 0.005
IDLE_LOOK = 0.010
BUSY_SECONDS = 2.0  # without news for so long, the file is idle
# With an ear: the longest pause, and its length in proportion to the time since something was heard.
LISTENING_LOOK = 0.250
PATIENCE = 1 / 20
# After it heard something it is covered for so long: somebody who writes all the time shall not wake us all the time.
COVERED_SECONDS = 0.1
# What is seen so long after the last sound was not heard. After so many of these in a row nobody listens any more.
UNHEARD_SECONDS = 1.0
MAX_MISSED = 3


class SqliteBell:
    vague = True

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._local = LocalBell()
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._heard_at = self._seen_at = 0.0  # by the loop's clock
        self._closed = False
        self._ear: FileListener | None = None
        self._missed = 0
        self._waiting = 0
        self._timer: asyncio.TimerHandle | None = None

    def ring(self, lanes: Iterable[str]) -> None:
        self._local.ring(lanes)

    def nudge(self, lanes: Iterable[str]) -> None:
        """Wake who waits here, and nobody elsewhere."""
        self._local.ring(lanes)

    async def wait(self, timeout: float) -> None:
        clock = asyncio.get_running_loop().time
        until = clock() + timeout
        with self._listening():
            while (left := until - clock()) > 0 and not self._closed:
                if self._changed(clock()):
                    self._seen_at = clock()
                    self._local.wake()  # whoever else waits here has not seen it
                if await self._local.heard(min(left, self._pause(clock()))):
                    return

    def _pause(self, now: float) -> float:
        quiet = now - max(self._heard_at, self._seen_at)
        if self._ear is not None:
            return min(LISTENING_LOOK, max(BUSY_LOOK, PATIENCE * quiet))
        return BUSY_LOOK if quiet < BUSY_SECONDS else IDLE_LOOK

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Nobody is disturbed by what is written while nobody waits here."""
        self._waiting += 1
        try:
            if self._waiting == 1:
                self._uncover()
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._cover()

    def _uncover(self) -> None:
        """Listen, as long as somebody waits; where that cannot be, do without."""
        self._timer = None
        if not self._waiting or self._closed or self._missed == MAX_MISSED:
            return
        if self._ear is None:
            self._ear = FileListener.at(
                Path(f"{self._path.resolve()}-wal")
            )  # where the file really lies, as SQLite has it
        if self._ear is None:
            return
        loop = asyncio.get_running_loop()
        if (left := self._heard_at + COVERED_SECONDS - loop.time()) > 0:
            self._timer = loop.call_later(left, self._uncover)
            return
        try:
            loop.add_reader(self._ear.descriptor, self._hear)
        except OSError:
            self._missed = MAX_MISSED
            self._take_down()

    def _cover(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._ear is not None:
            asyncio.get_running_loop().remove_reader(self._ear.descriptor)

    def _hear(self) -> None:
        self._cover()
        if self._heard():
            self._local.stir()
        self._uncover()

    def _heard(self) -> bool:
        if self._ear is None or not self._ear.heard():
            return False
        self._heard_at = asyncio.get_running_loop().time()
        if self._ear.is_gone:  # so is the file, perhaps
            self._take_down()
            self._close()
        return True

    def _changed(self, now: float) -> bool:
        """Has anybody committed since the last look? When in doubt, yes."""
        try:
            if self._connection is None:
                self._connection = sqlite3.connect(
                    f"file:{self._path}?mode=ro", uri=True, timeout=0, isolation_level=None, check_same_thread=False
                )
            version = self._connection.execute("pragma data_version").fetchone()[0]
        except sqlite3.Error:
            # No file yet, or it is being recovered: let the caller look for himself, but not in a tight loop.
            self._close()
            return False
        if version == self._version:
            return False
        if self._version != -1:
            self._check_ear(now)
        self._version = version
        return True

    def _check_ear(self, now: float) -> None:
        """What is seen was heard before: pages are written first. If not, this file is none that one can listen to."""
        if self._ear is None:
            return
        if self._heard() or now - self._heard_at < UNHEARD_SECONDS:
            self._missed = 0
            return
        self._missed += 1
        if self._missed == MAX_MISSED:
            self._take_down()

    def _take_down(self) -> None:
        if self._ear is not None:
            self._cover()
            self._ear.close()
            self._ear = None

    def _close(self) -> None:
        self._version = -1  # another connection counts from the beginning
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    async def close(self) -> None:
        self._closed = True
        self._take_down()
        self._close()
        await self._local.close()
