"""Bytes on their way are a sign of life, and end with whoever waits for them."""

import pytest

from telecine.errors import HandlerStopped
from telecine.facts import Instant, JobId, Lease, TaskId, WorkerId
from telecine.worker.attempts import Attempt
from telecine.worker.handlers.transfer_progress import QUIET, SHARE, TransferProgress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


LEASE = Lease(
    TaskId(1), 1, WorkerId(1), Instant(0), JobId(1), "film", "cut", version=1, position=0, attempt=1, max_attempts=3,
    spec=None,
)  # fmt: skip


def an_attempt(progress: float | None = None) -> Attempt:
    attempt = Attempt(LEASE, until=60.0)
    attempt.progress = progress
    return attempt


@pytest.mark.parametrize("progress", [None, 0.0, 0.5, 1.0])
def test_progress_creeps_on_while_bytes_move(progress: float | None) -> None:
    attempt, clock = an_attempt(progress), Clock()
    moving = TransferProgress(attempt, clock)

    told = []
    for done in range(1, 5):
        clock.now += QUIET
        moving(done, 4)
        told.append(attempt.progress)

    assert told == sorted(set(told))  # type: ignore[type-var]
    assert told[-1] == pytest.approx(min((progress or 0.0) + SHARE, 1.0))
    assert attempt.news


def test_what_is_over_soon_is_not_worth_a_word() -> None:
    attempt, clock = an_attempt(0.3), Clock()
    moving = TransferProgress(attempt, clock)
    clock.now += QUIET / 2

    moving(1, 1)

    assert (attempt.progress, attempt.news) == (0.3, False)


def test_what_the_handler_says_meanwhile_counts() -> None:
    attempt, clock = an_attempt(0.1), Clock()
    moving = TransferProgress(attempt, clock)
    clock.now += QUIET
    moving(1, 2)

    attempt.progress = 0.7
    clock.now += QUIET
    moving(2, 2)

    assert attempt.progress == pytest.approx(0.7 + SHARE)


@pytest.mark.parametrize("end", ["over", "killed", "mute"])
def test_bytes_for_which_nobody_waits_stop(end: str) -> None:
    attempt = an_attempt()
    moving = TransferProgress(attempt, Clock())
    moving(1, 9)
    if end == "mute":
        attempt.life = "mute"
    elif end == "killed":
        attempt.killed = True
    else:
        moving.over = True

    with pytest.raises(HandlerStopped):
        moving(2, 9)
