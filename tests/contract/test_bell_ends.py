"""A bell can be taken down in the very moment in which it hears for the first time."""

import asyncio
import random
import sys

import pytest

from telecine.dispatch.postgres import PostgresBell


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
        bell = PostgresBell(postgres_schema_url, dice=random.Random())
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
