"""How tasks that listen or talk are ended for sure."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_SECONDS = 1.0  # hanging up takes a while, too, and shall not be disturbed


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancel them until they have ended, however they end.

    Once is not enough: on Python 3.11 `asyncio.wait_for`, which the client of Redis uses, loses a cancellation that
    comes together with the result, and the task goes on as if nobody had said anything.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_SECONDS)
    for task in tasks:
        if not task.cancelled():
            task.exception()  # looked at, so that nobody reports it as overlooked
