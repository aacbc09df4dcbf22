"""Locks as rows of the database, by the database's clock. Rows stay, so that a name's token only grows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from telecine.errors import BadSpec
from telecine.facts import Millis
from telecine.locks import HeldLock

LONGEST_NAME = 255

# Runs one named statement as a transaction of its own, for example `partial(store.ask, a_store)`.
Ask = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[Mapping[str, Any]]]]


class SqlLocks:
    """`Locks` in a table."""

    def __init__(self, ask: Ask, *, new_id: Callable[[], str]) -> None:
        self._ask = ask
        self._new_id = new_id

    async def try_acquire(self, name: str, ttl: Millis, worker: str = "") -> HeldLock | None:
        check(name, ttl)
        return await self.take(name, self._new_id(), ttl, worker)

    async def take(self, name: str, holder: str, ttl: Millis, worker: str) -> HeldLock | None:
        """The same, for a holder who knows already what he is called."""
        wanted = {"name": name, "holder": holder, "worker": worker}
        rows = await self._ask("lock_try", {**wanted, "ttl": ttl})
        return _held({**wanted, **rows[0]}) if rows else None

    async def refresh(self, held: HeldLock, ttl: Millis) -> HeldLock | None:
        rows = await self._ask("lock_refresh", {"name": held.name, "holder": held.holder, "ttl": ttl})
        return _held(rows[0]) if rows else None

    async def release(self, held: HeldLock) -> bool:
        return bool(await self._ask("lock_release", {"name": held.name, "holder": held.holder}))

    async def holder(self, name: str) -> HeldLock | None:
        rows = await self._ask("lock_get", {"name": name})
        return _held(rows[0]) if rows else None

    async def list(self) -> list[HeldLock]:
        return [_held(row) for row in await self._ask("lock_list", {})]


def check(name: str, ttl: Millis) -> None:
    if not 0 < len(name) <= LONGEST_NAME or ttl <= 0:
        raise BadSpec(f"a lock needs a name of 1 to {LONGEST_NAME} characters and a time to live above zero")


def _held(row: Mapping[str, Any]) -> HeldLock:
    return HeldLock(
        name=row["name"],
        holder=row["holder"],
        worker=row["worker"],
        token=row["token"],
        acquired_at=row["acquired_at"],
        until=row["until"],
    )
