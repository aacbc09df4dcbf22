"""A handler that begins at once behaves as it would in a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any

import pytest

from telecine.worker.handlers.inline_run import EagerCoroutine

mood: ContextVar[str] = ContextVar("mood", default="none")


async def finished(handler: EagerCoroutine) -> EagerCoroutine:
    if not handler.begin():
        await handler
    return handler


def run(coroutine: Coroutine[Any, Any, object]) -> EagerCoroutine:
    async def go() -> EagerCoroutine:
        return await finished(EagerCoroutine(coroutine))

    return asyncio.run(go())


async def waits(seconds: float, result: str) -> str:
    await asyncio.sleep(seconds)
    return result


async def fails(seconds: float | None) -> None:
    if seconds is not None:
        await asyncio.sleep(seconds)
    raise ValueError("no film")


def test_what_never_waits_is_over_at_once() -> None:
    async def handler() -> str:
        return "done"

    eager = EagerCoroutine(handler())

    assert eager.begin()
    assert (eager.result, eager.error) == ("done", None)


@pytest.mark.parametrize("seconds", [0, 0.001])
def test_what_waits_goes_on_to_its_end(seconds: float) -> None:
    eager = run(waits(seconds, "done"))

    assert (eager.result, eager.error) == ("done", None)


@pytest.mark.parametrize("seconds", [None, 0, 0.001])
def test_an_error_is_kept_wherever_it_is_raised(seconds: float | None) -> None:
    eager = run(fails(seconds))

    assert isinstance(eager.error, ValueError)


def test_a_time_limit_inside_the_handler_reaches_the_handler() -> None:
    async def handler() -> str:
        try:
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()
        except TimeoutError:
            return "too late"
        return "never"

    assert run(handler()).result == "too late"


def test_a_cancelled_task_cancels_its_handler() -> None:
    async def go() -> tuple[EagerCoroutine, list[str]]:
        heard: list[str] = []

        async def handler() -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                heard.append("cancelled")
                raise

        eager = EagerCoroutine(handler())
        task = asyncio.create_task(finished(eager))
        await asyncio.sleep(0)
        task.cancel()
        await task
        return eager, heard

    eager, heard = asyncio.run(go())

    assert heard == ["cancelled"]
    assert isinstance(eager.error, asyncio.CancelledError)


def test_each_handler_has_its_own_context_from_its_first_step_to_its_last() -> None:
    async def handler(value: str) -> tuple[str, str]:
        before = mood.get()
        mood.set(value)
        await asyncio.sleep(0)
        return before, mood.get()

    async def go() -> list[object]:
        return [(await finished(EagerCoroutine(handler(value)))).result for value in ("glad", "sad")]

    assert asyncio.run(go()) == [("none", "glad"), ("none", "sad")]


def test_the_task_is_the_same_before_and_after_the_first_wait() -> None:
    async def handler() -> bool:
        before = asyncio.current_task()
        await asyncio.sleep(0)
        return before is asyncio.current_task()

    assert run(handler()).result is True
