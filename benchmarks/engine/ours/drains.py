"""How fast a full queue empties, and how fast it fills."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path

from benchmarks.engine import crew
from benchmarks.engine.measures import JOBS_PER_CALL, Calls, Drained, Enqueued, payload
from benchmarks.engine.ours.noop import FLOW, noop_flow, submissions, work
from benchmarks.engine.ours.place import DONE, Outsider, at_rest, is_sound, opened, run

WINDOW_S = 60.0


def drain_postgres(url: str, *, jobs: int, processes: int, batch: int) -> Drained:
    """Drain `jobs` no-op inline jobs with `processes` worker programs of `batch` slots."""
    return _drain(url, jobs=jobs, processes=processes, batch=batch)


def drain_sqlite(path: Path, *, jobs: int, batch: int) -> Drained:
    """The same on SQLite (WAL, synchronous=FULL) with one worker process."""
    return _drain(f"sqlite:///{path}", jobs=jobs, processes=1, batch=batch)


def _drain(url: str, *, jobs: int, processes: int, batch: int) -> Drained:
    _fill(url, jobs)
    place = f"{batch}@{url}"
    with Outsider(url) as outsider:
        drained = crew.drain(
            work, place, jobs=jobs, processes=processes, window=WINDOW_S, done=lambda: outsider.ask(DONE)
        )
    return dataclasses.replace(drained, once=drained.once and is_sound(url, jobs))


def _fill(url: str, jobs: int) -> float:
    """Seconds that the calls took."""
    calls = Calls(jobs)

    async def fill() -> float:
        async with opened(url) as parts:
            await parts.engine.jobs.register(noop_flow())
            for indexes in calls:
                await parts.engine.jobs.submit_many(submissions(indexes))
        await at_rest(url)
        return calls.seconds

    return run(fill)


def bulk_postgres(url: str, *, jobs: int, per_call: int = JOBS_PER_CALL) -> Enqueued:
    """Submit `jobs` jobs, a thousand in one call, from one connection; only the calls are timed."""
    assert per_call == JOBS_PER_CALL
    return Enqueued(jobs=jobs, seconds=_fill(url, jobs))


def submit_singly(url: str, *, seconds: float) -> Enqueued:
    """Submit one job per call, each durably committed, from one connection for about `seconds`."""

    async def submit() -> Enqueued:
        async with opened(url) as parts:
            await parts.engine.jobs.register(noop_flow())
            await parts.engine.jobs.submit(FLOW, {"text": payload(0)})
            begun, count = time.monotonic(), 0
            while (taken := time.monotonic() - begun) < seconds:
                await parts.engine.jobs.submit(FLOW, {"text": payload(count)})
                count += 1
            return Enqueued(jobs=count, seconds=taken)

    return run(submit)
