"""What goes on beside requests and work, look by look: what the log is told when a look fails.

A database that is away fails all duties at once, every few seconds. That is one line when it begins, one a minute while
it lasts, and one when it is over, for all of them together. What only one duty meets is told of that one, in the same
way; a fault of our own is told each time, in full.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from telecine.errors import TelecineError, Unreachable
from telecine.triage import Verdict, triage

log = logging.getLogger(__name__)

QUIET_SECONDS = 60.0
DATABASE = "the database"


@dataclass(slots=True)
class _Outage:
    """Something that is away, and who misses it."""

    since: float = 0.0
    told_at: float = float("-inf")
    is_told: bool = False  # of this time that it is away
    missed_by: set[str] = field(default_factory=set)


class OutageLog:
    """Those of one process, in one loop. `mono` is a monotonic clock."""

    def __init__(self, mono: Callable[[], float]) -> None:
        self._mono = mono
        self._outages: dict[str, _Outage] = {}

    def at(self, duty: str) -> OutageWatch:
        """One look of a duty: `with duties.at("sweep"): …`"""
        return OutageWatch(self, duty)

    def lost(self, duty: str, error: Exception) -> None:
        """A look failed, and will be taken again."""
        now, what = self._mono(), DATABASE if isinstance(error, Unreachable) else duty
        outage = self._outages.setdefault(what, _Outage())
        if not outage.missed_by:
            outage.since, outage.is_told = now, False
        outage.missed_by.add(duty)
        if now - outage.told_at < QUIET_SECONDS:
            return
        away = "does not answer" if what == DATABASE else "fails"
        lasting = f", for {now - outage.since:.0f} s now" if outage.is_told else ""
        outage.told_at, outage.is_told = now, True
        log.warning("%s %s%s, trying on: %s", what, away, lasting, str(error) or type(error).__name__)

    def found(self, duty: str) -> None:
        """A look came to its end: whatever this duty missed is there again."""
        for what, outage in self._outages.items():
            if duty in outage.missed_by:
                outage.missed_by.clear()
                if outage.is_told:
                    back = "answers" if what == DATABASE else "works"
                    log.info("%s %s again after %.0f s", what, back, self._mono() - outage.since)

    def leave(self, duty: str) -> None:
        """Nobody does it any more."""
        for outage in self._outages.values():
            outage.missed_by.discard(duty)


class OutageWatch:
    """A look, whose failure costs nothing but itself. `failed` until it has come to its end."""

    def __init__(self, duties: OutageLog, duty: str) -> None:
        self._duties, self._duty = duties, duty
        self.failed = True

    def __enter__(self) -> OutageWatch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> bool:
        match error:
            case None:
                self.failed = False
                self._duties.found(self._duty)
            case TelecineError():
                self._duties.lost(self._duty, error)
            case Exception() if triage(error) is Verdict.OUTAGE:
                self._duties.lost(self._duty, error)
            case Exception():
                log.error("%s failed, and goes on", self._duty, exc_info=error)
            case _:
                self._duties.leave(self._duty)
                return False
        return True
