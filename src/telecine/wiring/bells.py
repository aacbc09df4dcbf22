"""How wake-ups, hints and news travel: by the database alone, or by Redis with the database behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from telecine.dispatch import Bell, LocalRingBell
from telecine.dispatch.postgres import PostgresBell
from telecine.dispatch.sqlite import SqliteBell
from telecine.errors import BadSpec, Unreachable
from telecine.locks import Locks
from telecine.locks.sql import SqlLocks
from telecine.settings import Settings
from telecine.store import Ask, Rows, Steps, Store, ask
from telecine.store.open import dialect_of
from telecine.store.postgres import Postgres
from telecine.world import World

if TYPE_CHECKING:
    from telecine.dispatch.hints import LaneHead
    from telecine.dispatch.redis import RedisBell

PROBE_SECONDS = 5.0


async def hang_bell(settings: Settings, store: Store, world: World, *, required: bool = True) -> Bell:
    """The bell that the settings ask for.

    `queue_mode` redis: Redis must be there now. Not `required`: neither it nor our tables, it is only looked at.
    """
    fallback = database_bell(settings.database_url, world)
    if settings.queue_mode == "database":
        if isinstance(fallback, PostgresBell) and isinstance(store, Postgres):
            store.doorbell = fallback
        return fallback
    namespace = await namespace_of(store) if required else ""
    bell = _redis_bell(settings, store, world, (fallback, namespace))
    if settings.queue_mode == "redis" and required and await bell.ping() is None:
        reason = bell.vitals().last_error
        await bell.close()
        raise Unreachable(
            f"Redis at {settings.shown('redis_url')} does not answer ({reason}): start it, or set queue_mode to "
            "`hybrid`, which does without while it is away"
        )
    return bell


def database_bell(url: str, world: World) -> LocalRingBell:
    """How wake-ups travel between processes that share this database."""
    if dialect_of(url) == "sqlite":
        return SqliteBell(Path(url.removeprefix("sqlite:///")))
    return PostgresBell(url, world)


def _redis_bell(settings: Settings, store: Store, world: World, own: tuple[LocalRingBell, str]) -> RedisBell:
    from telecine.dispatch.redis import RedisBell, RedisOptions  # noqa: PLC0415 - for whoever uses Redis

    assert settings.redis_url is not None
    fallback, namespace = own
    options = RedisOptions(
        url=settings.redis_url,
        namespace=namespace,
        pool_size=settings.redis_pool_size,
        timeout=settings.redis_timeout_seconds,
    )
    me = world.new_id()
    try:
        return RedisBell(options, fallback, partial(heads, store), me=me, dice=world.dice, mono=world.mono)
    except ValueError as error:
        place = settings.shown("redis_url")
        raise BadSpec(f"redis_url {place!r} is not understood: use redis://host:6379/0 ({error})") from None


async def namespace_of(store: Store) -> str:
    """What keeps two Telecines on one Redis apart: a digest of what the database says about itself."""

    def steps() -> Steps[Rows]:
        rows: Rows = yield Ask("installation", {})
        return rows

    [row] = await store.read(steps)
    return sha256(f"{row['place']}\n{row['room']}\n{row['since']}".encode()).hexdigest()[:16]


async def heads(store: Store, lanes: Sequence[str], wanted: int) -> Sequence[LaneHead]:
    """The most urgent tasks of these lanes."""
    from telecine.dispatch.hints import LaneHead  # noqa: PLC0415 - for whoever uses Redis

    def steps() -> Steps[Rows]:
        rows: Rows = yield Ask("lane_heads", {"lanes": list(lanes), "wanted": wanted})
        return rows

    return [LaneHead(row["lane"], row["id"], row["rank"]) for row in await store.read(steps)]


def redis_of(bell: Bell) -> RedisBell | None:
    """The bell as one of Redis, if it is one: with `vitals()` and `ping()`."""
    return bell if hasattr(bell, "vitals") else None  # type: ignore[return-value]


def locks_on(bell: Bell, store: Store, world: World) -> Locks:
    """Named locks, by the database; with Redis, refusals cost the database nothing."""
    redis = redis_of(bell)
    if redis is None:
        return SqlLocks(partial(ask, store), new_id=world.new_id)
    from telecine.locks.redis import RedisLocks  # noqa: PLC0415 - for whoever uses Redis

    return RedisLocks(partial(ask, store), redis.line.try_script, redis.namespace, new_id=world.new_id)


async def wakeups_work(bell: Bell) -> bool | None:
    """Does a ring by the database reach other processes? None where none has to travel."""
    redis = redis_of(bell)
    own = bell if redis is None else redis.fallback
    if not isinstance(own, PostgresBell):
        return None
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await own.probe()
    except TimeoutError:
        return False
