"""A bell between processes on one SQLite file: the file itself says when somebody has committed.

`pragma data_version` changes with every commit of another connection and costs a few microseconds, no lock and
no disk. It tells of every commit, whatever it wrote, hence `vague`. A ring in this process needs no look at the file.

When to look: the system says when somebody writes to the file (`Ear`). The commit is to be seen a moment after that,
when its pages have reached the disk, so the file is looked at closely for a while. Who cannot hear looks all the time.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from telecine.dispatch.inotify import Ear
from telecine.dispatch.local import LocalBell

BUSY_LOOK = 0.005
IDLE_LOOK = 0.010
BUSY_LOOKS = 400  # how many looks in a row without news make the file idle
# With an ear: how often to look after something was heard, and then how seldom; and how many commits in a row may be
# seen that were not heard. A slow disk can be the cause of one.
HEARD_LOOKS = 40
LISTENING_LOOK = 0.250
MOST_MISSED = 3


class SqliteBell:
    vague = True

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._local = LocalBell()
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._quiet = 0
        self._closed = False
        self._ear: Ear | None = None
        self._missed = 0
        self._waiting = 0

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
                if self._changed():
                    self._quiet = 0
                    self._local.wake()  # whoever else waits here has not seen it
                if await self._local.heard(min(left, self._pause())):
                    return
                self._quiet += 1

    def _pause(self) -> float:
        if self._ear is not None:
            return BUSY_LOOK if self._quiet < HEARD_LOOKS else LISTENING_LOOK
        return BUSY_LOOK if self._quiet < BUSY_LOOKS else IDLE_LOOK

    @contextmanager
    def _listening(self) -> Iterator[None]:
        """Nobody is disturbed by what is written while nobody waits here."""
        loop = asyncio.get_running_loop()
        if self._ear is None and self._missed < MOST_MISSED and not self._closed:
            self._ear = Ear.at(self._path)
            self._missed = 0 if self._ear else MOST_MISSED
        self._waiting += 1
        if self._ear is not None and self._waiting == 1:
            loop.add_reader(self._ear.descriptor, self._hear)
        try:
            yield
        finally:
            self._waiting -= 1
            if self._ear is not None and not self._waiting:
                loop.remove_reader(self._ear.descriptor)

    def _hear(self) -> None:
        if self._ear is not None and self._ear.heard():
            self._missed = self._quiet = 0
            self._local.stir()

    def _changed(self) -> bool:
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
        changed = version != self._version
        if changed:
            self._check_ear()
        self._version = version
        return bool(changed)

    def _check_ear(self) -> None:
        """What is seen was heard before: pages are written first. If not, this file is none that one can listen to."""
        if self._ear is None or self._quiet < HEARD_LOOKS or self._ear.heard():
            return
        self._missed += 1
        if self._missed == MOST_MISSED:
            self._cover_ear()

    def _cover_ear(self) -> None:
        if self._ear is not None:
            if self._waiting:
                asyncio.get_running_loop().remove_reader(self._ear.descriptor)
            self._ear.close()
            self._ear = None

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    async def close(self) -> None:
        self._closed = True
        self._cover_ear()
        self._close()
        await self._local.close()
