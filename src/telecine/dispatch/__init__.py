"""Wake-ups: a bell says only "look again". Drop every ring and all work still finishes, only later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Bell(Protocol):
    """Rung when lanes have got work; waited for by idle workers.

    `vague` says that a ring may mean nothing at all (SQLite tells of every commit): a cheap look comes before
    the claim then.
    """

    vague: bool

    def ring(self, lanes: Iterable[str]) -> None:
        """Never blocks, never raises; from any thread. No lanes, no ring."""

    async def wait(self, timeout: float) -> None:
        """Return when somebody rang since this task last waited, or after `timeout`; the caller cannot tell which."""

    async def close(self) -> None: ...
