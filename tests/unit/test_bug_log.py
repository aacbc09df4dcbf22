"""A bug of a bell is in the log with its traceback, and does not fill it while the bell tries again."""

import asyncio

import asyncpg
import pytest
from asyncpg import PostgresSyntaxError, UndefinedFunctionError

from telecine.dispatch.postgres import PostgresBell
from telecine.dispatch.task_end import QUIET_SECONDS, BugLog
from telecine.world import World


def test_each_class_of_error_is_told_once_a_minute(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        loop, bugs = asyncio.get_running_loop(), BugLog()
        begin = loop.time()
        for second in (0.0, 5.0, QUIET_SECONDS - 1, QUIET_SECONDS):
            monkeypatch.setattr(loop, "time", lambda at=begin + second: at)
            bugs.tell(PostgresSyntaxError(str(second)))
            bugs.tell(ConnectionResetError("an outage"))
        bugs.tell(UndefinedFunctionError("another"))
        monkeypatch.undo()

    asyncio.run(story())

    assert caplog.messages == [
        "a bell failed and goes on: PostgresSyntaxError('0.0')",
        "a bell failed and goes on: PostgresSyntaxError('60.0')",
        "a bell failed and goes on: UndefinedFunctionError('another')",
    ]
    assert all(record.exc_info for record in caplog.records)


def test_a_bell_that_fails_again_and_again_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    async def connect(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise PostgresSyntaxError("near listen")

    async def story() -> None:
        bell = PostgresBell("postgresql://nowhere", World())
        bell.listen()
        async with asyncio.timeout(20):
            while tries < 3:
                await asyncio.sleep(0.01)
        await bell.close()

    monkeypatch.setattr(asyncpg, "connect", connect)
    asyncio.run(story())

    assert caplog.messages == ["a bell failed and goes on: PostgresSyntaxError('near listen')"]
