"""How tasks that listen or talk are ended for sure."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0  # hanging up takes a while, too, and shall not be disturbed
DUTY_SECONDS = 5.0  # nor shall a duty that lets go of its lock, on a slow database


async def end(*tasks: asyncio.Task[Any], again: float = AGAIN_SECONDS) -> None:
    """Cancel them every `again` seconds until they have ended. What had ended before is left to the caller.

    Once is not enough: on Python 3.11 `asyncio.wait_for`, which the client of Redis uses, loses a cancellation that
    comes together with the result, and the task goes on as if nobody had said anything.
    """
    running = {task for task in tasks if not task.done()}
    left = running
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=again)
    for task in running:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("%s stumbled when it was ended: %r", task.get_name(), error)
