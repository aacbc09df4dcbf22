"""Worker processes that start together, and a tally of what they did.

        crew                            worker 0 .. n-1
         │  spawn ─────────────────────▶ import, connect
         │  gate ◀─────── ready() ──────┤           start-up ends here and is not counted
         │                              ├─ started(index)   at the start of every handler
         │  all handled? ask the database until it says "all done" ── the clock ends when that question was asked
         └─ kill ──────────────────────▶ ×           nothing is left that could change a result

Each worker writes into memory of its own, so a job that two workers started shows up as two.
Only the standard library is used here: our own side measures with the same crew.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_int64, c_uint8
from multiprocessing.context import SpawnProcess
from multiprocessing.sharedctypes import RawArray, RawValue
from typing import Any

from benchmarks.engine.measures import Drained

START_UP_S = 60.0
FIRST_JOB_S = 20.0
LOOK_EVERY_S = 0.005
REST = 1  # times the question; more would be counted as part of the drain, and most where counting is slow

_spawn = multiprocessing.get_context("spawn")


class Post:
    """A worker's end of the crew. Its methods are called in the worker process."""

    def __init__(self, gate: Any, jobs: int) -> None:
        self._gate = gate
        self._times = RawArray(c_uint8, jobs)
        self._first_ns = RawValue(c_int64, 0)

    def ready(self) -> None:
        """Wait until every worker is connected; work may begin when this returns."""
        self._gate.wait(START_UP_S)

    def started(self, index: int) -> None:
        """Note that the handler of the job with this index has begun."""
        if not self._first_ns.value:
            self._first_ns.value = time.monotonic_ns()
        self._times[index] += 1

    def lost(self) -> None:
        """Let the whole crew know that this worker will never be ready."""
        self._gate.abort()

    @property
    def first_ns(self) -> int:
        return int(self._first_ns.value)

    def times(self) -> bytes:
        """How many times each job was started here, one byte per job."""
        return bytes(self._times)


Work = Callable[[str, Post], None]


def drain(
    work: Work,
    place: str,
    *,
    jobs: int,
    processes: int,
    window: float,
    done: Callable[[], int],
) -> Drained:
    """Let `processes` workers run `work(place, post)` on a full queue; see the module's picture."""
    done()  # so that whoever is asked knows the question
    with _crew(work, place, jobs=jobs, processes=processes) as (posts, workers):
        begun = _first_start(posts, workers)
        finished, ended = _until_done(posts, workers, jobs=jobs, until=begun + window, done=done)
    starts = [sum(column) for column in zip(*(post.times() for post in posts), strict=True)]
    return Drained(jobs=jobs, done=finished, seconds=ended - begun, once=max(starts) <= 1)


@contextmanager
def _crew(work: Work, place: str, *, jobs: int, processes: int) -> Iterator[tuple[list[Post], list[SpawnProcess]]]:
    gate = _spawn.Barrier(processes + 1)
    posts = [Post(gate, jobs) for _ in range(processes)]
    workers = [_spawn.Process(target=_stand_at, args=(work, place, post), daemon=True) for post in posts]
    for worker in workers:
        worker.start()
    try:
        gate.wait(START_UP_S)
        yield posts, workers
    except threading.BrokenBarrierError:
        raise RuntimeError("a worker ended before it was ready; its own words are above") from None
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def _stand_at(work: Work, place: str, post: Post) -> None:
    try:
        work(place, post)
    except BaseException:
        traceback.print_exc()
        post.lost()
        raise


def _first_start(posts: Sequence[Post], workers: Sequence[SpawnProcess]) -> float:
    give_up = time.monotonic() + FIRST_JOB_S
    while time.monotonic() < give_up:
        firsts = [post.first_ns for post in posts if post.first_ns]
        if firsts:
            return min(firsts) / 1e9
        _insist_on(workers)
        time.sleep(LOOK_EVERY_S)
    raise RuntimeError(f"no job was started within {FIRST_JOB_S:.0f} s")


def _until_done(
    posts: Sequence[Post],
    workers: Sequence[SpawnProcess],
    *,
    jobs: int,
    until: float,
    done: Callable[[], int],
) -> tuple[int, float]:
    """Return the jobs seen done in the database, all of them or those at the window's end, and when it was asked.

    The database is asked only when every handler has begun, and after each question there is a
    rest of its length, so that counting does not slow what is counted. How long the last count takes is not counted:
    it sees the database as it was a moment after it was asked, and what is in a table makes it long, not how it came
    there.
    """
    while time.monotonic() < until:
        begun = sum(jobs - post.times().count(0) for post in posts)
        asked = time.monotonic()
        if begun >= jobs and (seen := done()) >= jobs:
            return seen, asked
        _insist_on(workers)
        time.sleep(max(LOOK_EVERY_S, REST * (time.monotonic() - asked)))
    asked = time.monotonic()
    return done(), asked


def _insist_on(workers: Sequence[SpawnProcess]) -> None:
    if any(worker.exitcode is not None for worker in workers):
        raise RuntimeError("a worker ended in the middle of the work; its own words are above")
