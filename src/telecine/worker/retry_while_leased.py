"""Ask until there is an answer, while the lease is held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from telecine.errors import ArtifactError, HandlerStopped, LeaseLost, NoSpace, Rejected, StoreError
from telecine.triage import Verdict, triage
from telecine.worker.attempts import Attempt
from telecine.world import World

MAX_PAUSE = 2.0
# A bucket that is away for longer than this, or was never right, costs the attempt: its error says why.
MAX_BUCKET_SECONDS = 120.0

T = TypeVar("T")


async def while_held(attempt: Attempt, world: World, what: str, ask: Callable[[], Awaitable[T]]) -> T:
    """Until the database, or the server before it, answers, or the lease is gone."""
    pause = 0.05
    while not attempt.killed and attempt.life == "working":
        try:
            return await ask()
        except LeaseLost as error:
            raise HandlerStopped(str(error)) from error
        except Rejected:
            raise
        except StoreError:
            await asyncio.sleep(pause * (0.5 + world.dice.random()))
            pause = min(2 * pause, MAX_PAUSE)
    raise HandlerStopped(f"task {attempt.lease.task_id}: the lease is gone, {what!r} was not recorded or read")


async def through_bucket_outage(
    world: World, ask: Callable[[], Awaitable[T]], wait: Callable[[ArtifactError], None]
) -> T:
    """Repeat a transfer of bytes while the bucket is away. `wait` hears of the first error.

    What is full, damaged or not there is an answer.
    """
    pause, since = 0.5, world.mono()
    while True:
        try:
            return await ask()
        except NoSpace:
            raise
        except ArtifactError as error:
            if triage(error) is not Verdict.OUTAGE or world.mono() - since > MAX_BUCKET_SECONDS:
                raise
            if pause == 0.5:
                wait(error)
        await asyncio.sleep(pause * (0.5 + world.dice.random()))
        pause = min(2 * pause, MAX_PAUSE)
