"""A circuit breaker: after a few errors in a row nobody is kept waiting any more.

closed ── `after` errors in a row ──▶ open ── a pause, doubled each time, jittered ──▶ half open
  ▲                                    ▲                                                │
  │                                    └──────────── the one probe fails ───────────────┤
  └───────────────────────────────────────────────── it succeeds ───────────────────────┘
"""

from __future__ import annotations

from typing import Literal

from telecine.retry import Dice

State = Literal["closed", "open", "half_open"]


class CircuitBreaker:
    """Counts; who asks whom, and when, is the caller's business. `opened` says how often it opened."""

    def __init__(self, dice: Dice, *, after: int = 3, first: float = 0.25, most: float = 15.0) -> None:
        self.state: State = "closed"
        self.opened = 0
        self._dice = dice
        self._after, self._first, self._most = after, first, most
        self._errors = 0
        self._probes = 0

    @property
    def is_closed(self) -> bool:
        return self.state == "closed"

    def ok(self) -> bool:
        """It answered; was that the end of an outage?"""
        was, self.state = self.state, "closed"
        self._errors = self._probes = 0
        return was != "closed"

    def failed(self) -> bool:
        """It did not answer; did an outage begin with that?"""
        if self.state == "half_open":
            self.state = "open"
        self._errors += 1
        if self.state == "open" or self._errors < self._after:
            return False
        self.state = "open"
        self.opened += 1
        return True

    def pause(self) -> float:
        """Seconds until the next probe: no two processes come back at the same moment."""
        whole: float = min(self._most, self._first * 2 ** min(self._probes, 20))
        self._probes += 1
        return whole * (0.5 + 0.5 * self._dice.random())

    def probe(self) -> None:
        self.state = "half_open"
