"""Locks with Redis at the door: whoever finds the door shut need not bother the database.

        try_acquire ──▶ door in Redis (SET NX PX) ── shut ──▶ refused, at the price of one message
                              └ open ──▶ row in SQL: holder, term and token ──▶ held, or refused and the door opened

A Redis lock alone fences nothing: it may be flushed, fail over to a copy that never heard of it, or run out while its
holder is stopped. So the row decides who holds the lock and gives the token, and the door only spares those who would
be refused anyway. Without Redis the door stands open. A door that stayed shut (Redis was cut off at the moment of the
release) opens by itself when the term has passed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from telecine.facts import Millis
from telecine.locks import HeldLock
from telecine.locks.sql import Ask, SqlLocks, check

# Runs a script in Redis; None if Redis is away.
Say = Callable[[str, Sequence[str], Sequence[Any]], Awaitable[Any]]

SHUT = """
if redis.call('set', KEYS[1], ARGV[1], 'nx', 'px', ARGV[2]) then return 1 end
return 0
"""
# Keep one's own door shut, and shut it again if it was lost: the row says that the lock is ours.
KEEP = """
local holder = redis.call('get', KEYS[1])
if holder == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end
if not holder then redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2]) return 1 end
return 0
"""
# Nobody opens another's door.
OPEN = """
if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
return 0
"""


class RedisLocks:
    """`Locks` whose refusals are cheap. `holder` and `list` ask the database, which knows."""

    def __init__(self, ask: Ask, say: Say, namespace: str, *, new_id: Callable[[], str]) -> None:
        self._sql = SqlLocks(ask, new_id=new_id)
        self._say = say
        self._prefix = f"telecine:{namespace}:lock:"
        self._new_id = new_id

    async def try_acquire(self, name: str, ttl: Millis, worker: str = "") -> HeldLock | None:
        check(name, ttl)
        holder = self._new_id()
        if await self._say(SHUT, [self._prefix + name], [holder, ttl]) == 0:
            return None
        held = None
        try:
            held = await self._sql.take(name, holder, ttl, worker)
        finally:
            if held is None:
                await self._open(name, holder)
        return held

    async def refresh(self, held: HeldLock, ttl: Millis) -> HeldLock | None:
        renewed = await self._sql.refresh(held, ttl)
        if renewed is None:
            await self._open(held.name, held.holder)
        else:
            await self._say(KEEP, [self._prefix + held.name], [held.holder, ttl])
        return renewed

    async def release(self, held: HeldLock) -> bool:
        try:
            return await self._sql.release(held)
        finally:
            await self._open(held.name, held.holder)

    async def holder(self, name: str) -> HeldLock | None:
        return await self._sql.holder(name)

    async def list(self) -> list[HeldLock]:
        return await self._sql.list()

    async def _open(self, name: str, holder: str) -> None:
        await self._say(OPEN, [self._prefix + name], [holder])
