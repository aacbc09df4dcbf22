"""Ask until there is an answer, while the lease is held."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from telecine.errors import HandlerStopped, LeaseLost, Rejected, StoreError
from telecine.worker.held import Attempt
from telecine.world import World

MOST_PAUSE = 2.0

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
            pause = min(2 * pause, MOST_PAUSE)
    raise HandlerStopped(f"task {attempt.lease.task_id}: the lease is gone, {what!r} was not recorded or read")
