"""A bell between processes on one SQLite file: the file itself says when somebody has committed.

`pragma data_version` changes with every commit of another connection and costs a few microseconds, no lock and
no disk. It tells of every commit, whatever it wrote, hence `vague`. A ring in this process needs no look at the file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from telecine.dispatch.local import LocalBell

BUSY_LOOK = 0.005
IDLE_LOOK = 0.010
BUSY_LOOKS = 400  # how many looks in a row without news make the file idle


class SqliteBell:
    vague = True

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._local = LocalBell()
        self._connection: sqlite3.Connection | None = None
        self._version = -1
        self._quiet = 0
        self._closed = False

    def ring(self, lanes: Iterable[str]) -> None:
        self._local.ring(lanes)

    def nudge(self, lanes: Iterable[str]) -> None:
        """Wake who waits here, and nobody elsewhere."""
        self._local.ring(lanes)

    async def wait(self, timeout: float) -> None:
        left = timeout
        while left > 0 and not self._closed:
            if self._changed():
                self._quiet = 0
                self._local.wake()  # whoever else waits here has not seen it
            look = min(left, BUSY_LOOK if self._quiet < BUSY_LOOKS else IDLE_LOOK)
            if await self._local.heard(look):
                return
            self._quiet += 1
            left -= look

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
        self._version = version
        return bool(changed)

    def _close(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
            self._connection = None

    async def close(self) -> None:
        self._closed = True
        self._close()
        await self._local.close()
