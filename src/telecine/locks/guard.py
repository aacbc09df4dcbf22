"""Hold a lock while a body runs: refreshed in the background, the body cancelled when the lock is lost.

    asked ───────── ttl/3: refresh ───────── ttl/3: refresh refused, or none answered ─── asked + 9/10 ttl
      │                                                                                        │
      └ own clock starts here, before the question, so a slow answer never stretches the lock  └ stop: lost

The keeper of the locks decides by its clock. Our own, monotonic one may only make us stop earlier: when
nothing could be refreshed for nine tenths of the time to live, the body is cancelled although the lock may
still be ours, and nobody else can have got it before that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from telecine.errors import LockHeld, LockLost, TelecineError
from telecine.facts import SECOND, Millis
from telecine.locks import HeldLock, Locks
from telecine.world import World

TRUSTED = 0.9
REFRESHES = 3
MAX_BETWEEN_LOOKS = 1.0


@asynccontextmanager
async def lock(
    locks: Locks,
    name: str,
    ttl: Millis,
    *,
    worker: str = "",
    patience: float = 0.0,
    world: World | None = None,
) -> AsyncIterator[HeldLock]:
    """Run the body under the named lock; `LockHeld` if somebody else has it for longer than `patience` seconds.

    When the lock is lost the body gets `CancelledError`, and `LockLost` is raised out of the `async with`.
    """
    mono = (world or World()).mono
    body = asyncio.current_task()
    assert body is not None, "a lock is held by a task"
    held, asked = await _acquire(locks, name, ttl, worker, (patience, mono))
    cancels = body.cancelling()
    keeper = LockRefresher(locks, held, ttl, asked=asked, mono=mono)
    keeping = asyncio.create_task(keeper.keep(body), name=f"lock {name}")
    try:
        yield held
    except BaseException as error:
        ours = await _leave(keeper, keeping, body) <= cancels
        if keeper.cancelled and ours and isinstance(error, asyncio.CancelledError):
            raise keeper.loss() from error
        raise
    await _leave(keeper, keeping, body)
    if keeper.lost:
        raise keeper.loss()


async def _acquire(
    locks: Locks, name: str, ttl: Millis, worker: str, waiting: tuple[float, Callable[[], float]]
) -> tuple[HeldLock, float]:
    patience, mono = waiting
    give_up = mono() + patience
    pause = min(MAX_BETWEEN_LOOKS, ttl / SECOND / 20)
    while True:
        asked = mono()
        held = await locks.try_acquire(name, ttl, worker)
        if held is not None:
            return held, asked
        left = give_up - mono()
        if left <= 0:
            other = await locks.holder(name)
            by = "somebody who has just let go" if other is None else other.worker or "somebody else"
            raise LockHeld(f"lock {name!r} is held by {by}")
        await asyncio.sleep(min(pause, left))


async def _leave(keeper: LockRefresher, keeping: asyncio.Task[None], body: asyncio.Task[object]) -> int:
    """End the refreshing and let go; how many cancels of the body are not ours."""
    keeper.over = True
    keeping.cancel()
    await asyncio.wait([keeping])
    if keeper.lost:
        return body.uncancel()
    # If nobody answers, the lock runs out by itself.
    with suppress(TelecineError):
        keeper.lost = not await keeper.locks.release(keeper.held)
    return body.cancelling()


class LockRefresher:
    """Refreshes one lock until it is lost or no longer needed."""

    def __init__(self, locks: Locks, held: HeldLock, ttl: Millis, *, asked: float, mono: Callable[[], float]) -> None:
        self.locks = locks
        self.held = held
        self.lost = False
        self.cancelled = False
        self.over = False
        self._ttl = ttl
        self._mono = mono
        self._trust(asked)

    def _trust(self, asked: float) -> None:
        seconds = self._ttl / SECOND
        self._due = asked + seconds / REFRESHES
        self._end = asked + seconds * TRUSTED

    async def keep(self, body: asyncio.Task[object]) -> None:
        # A cancel may be lost in whoever we ask (Redis's client, on Python 3.11): `over` is not.
        while not self.over and await self._refreshed():
            pass
        if not self.over:
            self.lost = self.cancelled = True
            body.cancel(f"lock {self.held.name!r} is lost")

    async def _refreshed(self) -> bool:
        await asyncio.sleep(max(0.0, self._due - self._mono()))
        asked = self._mono()
        if asked >= self._end:
            return False
        try:
            async with asyncio.timeout(self._end - asked):
                renewed = await self.locks.refresh(self.held, self._ttl)
        except Exception:
            # Whatever went wrong, nothing was promised: the old term stands, and we ask again while it lasts.
            self._due = min(self._end, self._mono() + self._ttl / SECOND / 20)
            return True
        if renewed is None:
            return False
        self.held = renewed
        self._trust(asked)
        return True

    def loss(self) -> LockLost:
        return LockLost(f"lock {self.held.name!r} (token {self.held.token}) ran out or was taken over")


__all__ = ["lock"]
