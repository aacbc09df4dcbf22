"""Telecine's own side, to be filled in with the engine.

The rules are the peers' rules. Everything here uses the shipped defaults and public interfaces,
with no switch that exists only for the benchmark. A drain goes through `crew.drain`, which is
what the peers go through: jobs are enqueued and the database is at rest (`vacuum analyze`) before
the workers start, each worker process calls `post.ready()` when it is connected and registered,
its inline no-op handler calls `post.started(index)`, and `done` counts the finished jobs over a
connection of its own. Jobs carry `measures.payload(index)` in their spec. Afterwards the engine's
audit must agree: one attempt and one outcome per job, nothing else (`Drained.once`).

`url` is always an empty database on the run's PostgreSQL, `path` a file that does not exist yet;
each function migrates it first, outside of the clock.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.engine.measures import Drained, Enqueued


def drain_postgres(url: str, *, jobs: int, processes: int, batch: int) -> Drained:
    """Drain `jobs` no-op inline jobs with `processes` worker programs that claim `batch` at once."""
    raise NotImplementedError


def drain_sqlite(path: Path, *, jobs: int, batch: int) -> Drained:
    """The same on SQLite (WAL, synchronous=FULL) with one worker process."""
    raise NotImplementedError


def bulk_postgres(url: str, *, jobs: int, per_call: int) -> Enqueued:
    """Submit `jobs` jobs, `per_call` in one call, from one connection; only the calls are timed."""
    raise NotImplementedError


def single_postgres(url: str, *, seconds: float) -> Enqueued:
    """Submit one job per call, each durably committed, from one connection for about `seconds`."""
    raise NotImplementedError


def pickup_postgres(url: str, *, samples: int) -> list[float]:
    """Return milliseconds from before the submit call to the handler's start, one per sample.

    One idle worker with default settings in another process; both read time.monotonic_ns().
    As in `notify.py`: at least 10 ms between samples, the next one only after the last was
    picked up, and the first 20 are warm-up that is thrown away.
    """
    raise NotImplementedError


def pickup_sqlite(path: Path, *, samples: int) -> list[float]:
    """The same across two processes on one SQLite file."""
    raise NotImplementedError


def claim_cost(few_url: str, many_url: str, *, few: int, many: int) -> tuple[float, float]:
    """Return the median milliseconds of one claim with `few` and with `many` rows queued.

    Of the rows 0.1 % match the worker's lanes; in the larger database 100,000 are parked and
    100,000 paused. The claims on both take turns, so that noise meets both.
    """
    raise NotImplementedError


def claim_pinned(url: str, *, claims: int) -> tuple[float, float]:
    """Return the milliseconds per claim in the first and in the last tenth of `claims` claims.

    All the while one other transaction that has written stays open, so nothing can be vacuumed.
    """
    raise NotImplementedError


def recovery(url: str, *, workers: int, local: bool) -> list[float]:
    """Return, per worker killed with kill -9 in mid-task, the seconds until its task ran again.

    Defaults everywhere. `local`: the survivors are on the dead worker's host and may see that it
    is gone; otherwise they live under another host name and have to wait for the lease.
    """
    raise NotImplementedError
