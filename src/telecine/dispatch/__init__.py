"""Wake-ups: a bell says only "look again". Drop every ring and all work still finishes, only later.

There are two kinds of news, and a bell for each: lanes got work (idle workers wait for that), and events were
written (whoever shows them live waits for that; `EVENTS` rings then).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

EVENTS = ("events",)


class Bell(Protocol):
    """Rings when lanes have got work; idle workers wait for it.

    `vague` says that a ring may mean nothing at all (SQLite tells of every commit): a cheap look comes before
    the claim then.
    """

    vague: bool

    def ring(self, lanes: Iterable[str]) -> None:
        """Never blocks, never raises; from any thread. No lanes, no ring."""

    async def wait(self, timeout: float) -> None:
        """Return when somebody rang since this task last waited, or after `timeout`; only the clock tells which."""

    async def close(self) -> None: ...


class LocalRingBell(Bell, Protocol):
    """A bell that can also ring for this process alone."""

    def nudge(self, lanes: Iterable[str]) -> None:
        """Wake who waits here, and nobody elsewhere."""
