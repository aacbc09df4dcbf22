"""Redis at the door of the locks: it spares the database refusals, and decides nothing.

The contract of locks itself is in `test_locks.py`, which is played with Redis too.
"""

import ast
import asyncio
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import telecine.engine
from telecine.errors import Unreachable
from telecine.facts import SECOND
from telecine.locks.redis import RedisLocks
from telecine.locks.sql import SqlLocks
from telecine.store import Rows, ask
from telecine.world import World
from tests.support.lock_backends import line_to
from tests.support.redis import PrivateRedis
from tests.support.scene import Scene, played

TTL = 30 * SECOND
NOBODY = "redis://127.0.0.1:1/0"
REDIS = Path(telecine.engine.__file__).parent


class Asked:
    """The database, and how often it was asked what."""

    def __init__(self, scene: Scene) -> None:
        self.names: list[str] = []
        self.broken = False
        self._ask = partial(ask, scene.store)

    async def __call__(self, name: str, params: Mapping[str, Any]) -> Rows:
        self.names.append(name)
        if self.broken:
            raise Unreachable("the line is dead")
        return await self._ask(name, params)


@pytest.fixture(scope="module")
def server() -> Any:
    with PrivateRedis() as server:
        yield server


def on_redis(story: Any) -> Any:
    """Play the story on each database with a Redis that it may treat badly."""

    def test(server: PrivateRedis, request: pytest.FixtureRequest, dialect: str) -> None:
        played(lambda scene: story(scene, server), (dialect,))(request, dialect)

    test.__name__ = story.__name__
    return pytest.mark.parametrize("dialect", ["sqlite", "postgres"])(test)


@on_redis
async def test_a_refusal_at_the_door_costs_the_database_nothing(scene: Scene, server: PrivateRedis) -> None:
    asked, line = Asked(scene), line_to(server.url)
    locks = RedisLocks(asked, line.try_script, uuid4().hex, new_id=World().new_id)
    assert await locks.try_acquire("project:1", TTL)

    assert [await locks.try_acquire("project:1", TTL) for _ in range(20)] == [None] * 20

    assert asked.names == ["lock_try"]
    await line.close()


@on_redis
async def test_a_flushed_redis_makes_no_second_holder_and_the_first_keeps_the_lock(
    scene: Scene, server: PrivateRedis
) -> None:
    line = line_to(server.url)
    locks = RedisLocks(Asked(scene), line.try_script, uuid4().hex, new_id=World().new_id)
    held = await locks.try_acquire("project:1", TTL, "ann")
    assert held is not None

    server.say("FLUSHALL")

    assert await locks.try_acquire("project:1", TTL, "bob") is None
    renewed = await locks.refresh(held, TTL)
    assert renewed is not None
    assert renewed.token == held.token
    assert len(server.say("KEYS", "telecine:*")) == 1, "its door is shut again"
    assert await locks.release(held)
    await line.close()


@on_redis
async def test_tokens_grow_whatever_becomes_of_redis(scene: Scene, server: PrivateRedis) -> None:
    line, away = line_to(server.url), line_to(NOBODY, timeout=0.2)
    namespace, new_id = uuid4().hex, World().new_id
    here = RedisLocks(Asked(scene), line.try_script, namespace, new_id=new_id)
    cut_off = RedisLocks(Asked(scene), away.try_script, namespace, new_id=new_id)
    tokens = []

    for locks in (here, cut_off, here, SqlLocks(Asked(scene), new_id=new_id), here):
        held = await locks.try_acquire("project:1", TTL)
        assert held is not None
        tokens.append(held.token)
        server.say("FLUSHALL")
        assert await locks.release(held)

    assert tokens == [1, 2, 3, 4, 5]
    await line.close()
    await away.close()


@on_redis
async def test_whoever_cannot_reach_redis_and_whoever_can_exclude_each_other(
    scene: Scene, server: PrivateRedis
) -> None:
    line, away = line_to(server.url), line_to(NOBODY, timeout=0.2)
    namespace, new_id = uuid4().hex, World().new_id
    both = [RedisLocks(Asked(scene), one.try_script, namespace, new_id=new_id) for one in (line, away)]

    for _ in range(5):
        got = await asyncio.gather(*(locks.try_acquire("project:1", TTL) for locks in both * 5))
        [winner] = [held for held in got if held is not None]
        assert await both[0].release(winner)

    await line.close()
    await away.close()


@on_redis
async def test_a_door_is_not_left_shut_when_the_database_does_not_answer(scene: Scene, server: PrivateRedis) -> None:
    asked, line, namespace = Asked(scene), line_to(server.url), uuid4().hex
    locks = RedisLocks(asked, line.try_script, namespace, new_id=World().new_id)
    asked.broken = True

    with pytest.raises(Unreachable):
        await locks.try_acquire("project:1", TTL)

    asked.broken = False
    assert await locks.try_acquire("project:1", TTL)
    await line.close()


@on_redis
async def test_nobody_opens_the_door_of_another(scene: Scene, server: PrivateRedis) -> None:
    line, namespace = line_to(server.url), uuid4().hex
    locks = RedisLocks(Asked(scene), line.try_script, namespace, new_id=World().new_id)
    late = await locks.try_acquire("project:1", TTL)
    assert late is not None
    server.say("FLUSHALL")
    scene.pass_time(TTL)
    current = await locks.try_acquire("project:1", TTL)
    assert current is not None

    assert not await locks.release(late)
    assert await locks.refresh(late, TTL) is None

    assert server.say("GET", f"telecine:{namespace}:lock:project:1") == current.holder
    await line.close()


def test_no_path_of_the_engine_relies_on_a_lock() -> None:
    imported = {
        name
        for path in REDIS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }

    assert {name for name in imported if "locks" in name or "redis" in name} == set()
