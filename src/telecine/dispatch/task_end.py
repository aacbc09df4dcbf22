"""How tasks that listen or talk go on whatever happens, and are ended for sure."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from telecine.triage import Verdict, triage_driver

log = logging.getLogger(__name__)

AGAIN_SECONDS = 1.0  # hanging up takes a while, too, and shall not be disturbed
QUIET_SECONDS = 60.0
DUTY_SECONDS = 5.0  # nor shall a duty that lets go of its lock, on a slow database


class BugLog:
    """Logs errors that no outage explains, each class of error once a minute: a bell tries again every few seconds.

    Whoever needs an answer logs outages.
    """

    def __init__(self) -> None:
        self._told_at: dict[type[Exception], float] = {}

    def tell(self, error: Exception) -> None:
        """Call it in a running loop."""
        if triage_driver(error) is not Verdict.BUG:
            return
        now = asyncio.get_running_loop().time()
        if now - self._told_at.get(type(error), float("-inf")) >= QUIET_SECONDS:
            self._told_at[type(error)] = now
            log.error("a bell failed and goes on: %r", error, exc_info=error)


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
