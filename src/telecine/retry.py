"""How long until the next attempt."""

from __future__ import annotations

from typing import Protocol

from telecine.facts import Millis, Policy


class Dice(Protocol):
    """The one thing that retries need of chance; `random.Random` is one."""

    def random(self) -> float: ...


def backoff(policy: Policy, tries: int, dice: Dice) -> Millis:
    """Wait after attempt number `tries` (from 1): base × 2ⁿ, capped, with ± jitter.

    The cap holds before the jitter, so a fleet that failed together does not come back together.
    """
    doublings = min(max(tries - 1, 0), 40)
    plain = min(policy.cap, policy.base << doublings)
    return max(0, round(plain * (1 + policy.jitter * (2 * dice.random() - 1))))
