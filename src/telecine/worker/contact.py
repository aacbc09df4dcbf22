"""Contact with the engine: one line when it is lost, one now and then while it is, one when it is back.

Whoever asks in vain tells it here: the heart in its thread, the claims, the outbox. Otherwise each would write a line
at each try, and an outage of a minute would bury everything else in the log. A bug is told with its traceback, and
not more often.
"""

from __future__ import annotations

import logging
import threading

from telecine.errors import TelecineError, Unreachable
from telecine.triage import Verdict, triage

log = logging.getLogger(__name__)

QUIET_SECONDS = 30.0


class WorkerShutOut(Unreachable):
    """The server does not let this worker in: whoever waits for that tells it, and ends the worker."""


class Contact:
    """Used from two threads. `who` is one question that has no answer yet; `now` is a monotonic clock's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._missing: set[object] = set()
        self._since = 0.0
        self._told_at = float("-inf")
        self._is_told = False  # the log says that contact is lost, and not yet that it is back
        self._stumbles: dict[tuple[str, str], float] = {}  # what, and by which class of error: when it was told

    def lost(self, who: object, why: Exception, now: float) -> None:
        """This question was not answered, and is asked again."""
        if isinstance(why, WorkerShutOut):
            return
        with self._lock:
            if not self._missing and not self._is_told:
                self._since = now
            self._missing.add(who)
            if now - self._told_at < QUIET_SECONDS:
                return
            is_first, self._is_told, self._told_at = not self._is_told, True, now
        reason = str(why) or "no answer in time"
        if is_first:
            log.warning("contact is lost, trying on: %s", reason)
        else:
            log.warning("no contact for %.0f s, trying on: %s", now - self._since, reason)

    def stumbled(self, what: str, why: Exception, now: float) -> None:
        """A step of the worker failed by something else than an outage; it is tried again."""
        if triage(why) is Verdict.OUTAGE:
            self.lost(what, why, now)
            self.forget(what)  # this step reports no success: the next answer to any question says that contact is back
            return
        key = (what, type(why).__name__)
        with self._lock:
            if now - self._stumbles.get(key, float("-inf")) < QUIET_SECONDS:
                return
            self._stumbles[key] = now
        fault = None if isinstance(why, TelecineError) else why
        log.error("%s failed, trying on: %s", what, str(why) or type(why).__name__, exc_info=fault)

    def found(self, who: object, now: float) -> None:
        """It was answered. Any answer ends a loss that was told if no other question waits: see `stumbled`."""
        with self._lock:
            self._missing.discard(who)
            if self._missing or not self._is_told:
                return
            self._is_told = False
        log.info("contact is back after %.0f s", now - self._since)

    def forget(self, who: object) -> None:
        """Nobody asks it any more."""
        with self._lock:
            self._missing.discard(who)
