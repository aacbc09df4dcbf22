"""Named locks: one holder at a time, for as long as it keeps saying so.

    async with lock(locks, "project:42", ttl=30_000) as held:
        ...                     # refreshed in the background; cancelled when the lock is lost

The holder is a random id per acquisition, so a worker that asks twice is refused the second time and
nobody can release or refresh what is no longer his. `token` grows at every acquisition of a name and never
starts again: hand it to whatever the lock protects, and let that refuse a smaller one. The engine itself
needs no lock; these are for flows and for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from telecine.facts import Instant, Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldLock:
    """A lock as somebody holds it. Times are by the clock of whoever keeps the locks."""

    name: str
    holder: str
    worker: str
    token: int
    acquired_at: Instant
    until: Instant


class Locks(Protocol):
    """Where locks are kept."""

    async def try_acquire(self, name: str, ttl: Millis, worker: str = "") -> HeldLock | None:
        """Take the lock if nobody holds it; never waits."""

    async def refresh(self, held: HeldLock, ttl: Millis) -> HeldLock | None:
        """Hold it for another `ttl` from now; None if it ran out or was taken over."""

    async def release(self, held: HeldLock) -> bool:
        """Let go of what is still one's own; False if it was not."""

    async def holder(self, name: str) -> HeldLock | None:
        """Who holds it now?"""

    async def list(self) -> list[HeldLock]:
        """All locks that are held now, by name."""


__all__ = ["HeldLock", "Locks"]
