"""How a task that listens or talks is ended for sure."""

from __future__ import annotations

import asyncio
from typing import Any

AGAIN_SECONDS = 1.0  # hanging up takes a while, too, and shall not be disturbed


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel it until it has ended.

    Once is not enough: on Python 3.11 `asyncio.wait_for`, which the client of Redis uses, loses a cancellation that
    comes together with the result, and the task goes on as if nobody had said anything.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=AGAIN_SECONDS)
