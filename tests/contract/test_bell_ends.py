"""A bell can be taken down in the very moment in which it hears for the first time."""

import asyncio
import random
import sys
from collections.abc import Iterator

import pytest

from telecine.dispatch.postgres import PostgresBell
from telecine.dispatch.redis_subscriber import RedisSubscriber
from telecine.dispatch.task_end import end
from telecine.world import World
from tests.support.redis import PrivateRedis


@pytest.mark.parametrize("turns", range(6))
def test_a_bell_that_is_closed_when_its_first_answer_comes_ends(
    postgres_schema_url: str, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    # On Python 3.11 `asyncio.wait_for` loses a cancellation if what it waits for is done in the same turn of the loop.
    answered = False

    class Telltale(asyncio.Event):
        def set(self) -> None:
            nonlocal answered
            super().set()
            answered = answered or sys._getframe(1).f_code.co_name == "heard"

    async def scene() -> None:
        monkeypatch.setattr(asyncio, "Event", Telltale)
        bell = PostgresBell(postgres_schema_url, World())
        bell.listen()
        while not answered:
            await asyncio.sleep(0)
        for _ in range(turns):
            await asyncio.sleep(0)
        await bell.close()

    async def within_limits() -> None:
        async with asyncio.timeout(20):
            await scene()

    asyncio.run(within_limits())

    assert answered


def test_a_cancellation_that_a_library_loses_is_said_again() -> None:
    async def deaf_once() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)

    async def scene() -> None:
        async with asyncio.timeout(20):
            task = asyncio.create_task(deaf_once())
            await asyncio.sleep(0)
            await end(task)
            assert task.cancelled()

    asyncio.run(scene())


@pytest.mark.parametrize("turns", range(0, 60, 3))
def test_an_ear_ends_whenever_it_is_closed(turns: int, a_redis: PrivateRedis) -> None:
    async def scene() -> None:
        async with asyncio.timeout(20):
            ear = RedisSubscriber(a_redis.url, {"news": lambda: None}, me="me", timeout=1.0, dice=random.Random(turns))
            ear.listen()
            for _ in range(turns):
                await asyncio.sleep(0)
            await ear.close()

    asyncio.run(scene())


@pytest.fixture(scope="module")
def a_redis() -> Iterator[PrivateRedis]:
    with PrivateRedis() as server:
        yield server
