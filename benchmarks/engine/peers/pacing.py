"""One job per call, for a while."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from benchmarks.engine.measures import payload


def singly(seconds: float, enqueue: Callable[[str], object]) -> tuple[int, float]:
    """Return how many payloads were enqueued, and in which time."""
    jobs, begun = 0, time.monotonic()
    while (took := time.monotonic() - begun) < seconds:
        enqueue(payload(jobs))
        jobs += 1
    return jobs, took


async def singly_awaited(seconds: float, enqueue: Callable[[str], Awaitable[object]]) -> tuple[int, float]:
    """The same for a peer that is asynchronous."""
    jobs, begun = 0, time.monotonic()
    while (took := time.monotonic() - begun) < seconds:
        await enqueue(payload(jobs))
        jobs += 1
    return jobs, took
