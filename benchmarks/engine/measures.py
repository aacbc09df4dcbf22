"""What is measured, in the words that every side of the benchmark shares."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

JOBS_PER_CALL = 1_000
"""Bulk enqueue: so many jobs go into one call, on every side that has such a call."""

_PAYLOAD_CHARACTERS = 200
_INDEX_DIGITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """A queue that was full before the workers came, and how fast they emptied it.

    `seconds` runs from the first handler's start to the moment when an outsider saw the last job
    done in the database, or to the end of the window: then `done` is less than `jobs`.
    `once` is true when no handler was started twice for one job and the database agrees.
    """

    jobs: int
    done: int
    seconds: float
    once: bool

    @property
    def rate(self) -> float:
        return self.done / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Enqueued:
    """Jobs put into the queue, durably, from one connection."""

    jobs: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.jobs / self.seconds


def payload(index: int) -> str:
    """Text of 200 characters that every contender carries; its first eight tell which job it is."""
    return f"{index:0{_INDEX_DIGITS}d}".ljust(_PAYLOAD_CHARACTERS, ".")


def index_of(text: str | bytes) -> int:
    return int(text[:_INDEX_DIGITS])


class Calls:
    """The indexes of `jobs` jobs, in portions of one bulk call; iterated over once, by whoever makes the calls.

    `seconds` runs from before the first call to after the last: whoever is connected when he begins has his start-up
    left out.
    """

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.seconds = float("nan")

    def __iter__(self) -> Iterator[range]:
        begun = time.monotonic()
        for first in range(0, self.jobs, JOBS_PER_CALL):
            yield range(first, min(first + JOBS_PER_CALL, self.jobs))
        self.seconds = time.monotonic() - begun


def quantile(samples: Sequence[float], share: float) -> float:
    """The sample below which `share` of the samples lie (nearest rank)."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
