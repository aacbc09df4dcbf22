"""How long until the next attempt."""

import random

from telecine.retry import backoff
from tests.support.builders import Loaded, a_policy


def test_the_defaults_are_ten_seconds_doubling_to_five_minutes() -> None:
    waits = [backoff(a_policy(), tries, Loaded()) for tries in range(1, 8)]

    assert waits == [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]


def test_jitter_is_a_fifth_to_either_side() -> None:
    assert backoff(a_policy(), 1, Loaded(0.0)) == 8_000
    assert backoff(a_policy(), 1, Loaded(0.999999)) == 12_000


def test_those_who_failed_together_do_not_come_back_together() -> None:
    dice = random.Random(1)

    assert len({backoff(a_policy(), 9, dice) for _ in range(100)}) > 90


def test_a_thousandth_attempt_overflows_nothing() -> None:
    assert backoff(a_policy(cap=10**15), 1_000, Loaded()) == 10**15


def test_a_stage_may_retry_at_once() -> None:
    assert backoff(a_policy(base=0), 5, Loaded(0.9)) == 0
