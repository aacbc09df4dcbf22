"""Locks for stories that are played with each keeper: the database alone, and the database behind a door in Redis."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from uuid import uuid4

import pytest

from telecine.dispatch.redis_pool import RedisPool
from telecine.locks import Locks
from telecine.locks.redis import RedisLocks
from telecine.locks.sql import SqlLocks
from telecine.store import ask
from telecine.world import World
from tests.support.redis import age
from tests.support.scene import DIALECTS, Scene, played

KEEPERS = ("sql", "redis")
_doors: dict[Scene, tuple[RedisPool, str]] = {}


def locks_of(scene: Scene) -> Locks:
    """The locks of the story's keeper."""
    if scene not in _doors:
        return SqlLocks(partial(ask, scene.store), new_id=World().new_id)
    line, namespace = _doors[scene]
    return RedisLocks(partial(ask, scene.store), line.try_script, namespace, new_id=World().new_id)


def line_to(url: str, timeout: float = 5.0) -> RedisPool:
    return RedisPool(url, size=4, timeout=timeout, dice=Random(), mono=time.monotonic)


def kept(story: Callable[[Scene], Awaitable[None]]) -> Callable[..., None]:
    """Turn a story into a test on each database, with each keeper of locks."""

    @pytest.mark.parametrize("dialect", DIALECTS)
    @pytest.mark.parametrize("keeper", KEEPERS)
    def test(request: pytest.FixtureRequest, dialect: str, keeper: str) -> None:
        url = request.getfixturevalue("redis_url") if keeper == "redis" else None

        async def with_keeper(scene: Scene) -> None:
            if url is None:
                await story(scene)
                return
            namespace, line = uuid4().hex, line_to(url)
            scene.ageing.append(lambda ms: age(url, ms, namespace))
            _doors[scene] = (line, namespace)
            try:
                await story(scene)
            finally:
                del _doors[scene]
                await line.close()

        play = played(with_keeper, (dialect,))
        play(request, dialect)

    test.__name__ = story.__name__
    test.__doc__ = story.__doc__
    test.__module__ = story.__module__
    return test
