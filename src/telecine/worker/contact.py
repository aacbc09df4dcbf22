"""Contact with the engine: one line when it is lost, one now and then while it is, one when it is back.

Whoever asks in vain tells it here: the heart in its thread, the claims, the outbox. Otherwise each would write a line
at each try, and an outage of a minute would bury everything else in the log.
"""

from __future__ import annotations

import logging
import threading

from telecine.errors import Unreachable

log = logging.getLogger(__name__)

QUIET_SECONDS = 30.0


class ShutOut(Unreachable):
    """The server does not let this worker in: whoever waits for that tells it, and ends the worker."""


class Contact:
    """Used from two threads. `who` is one question that has no answer yet; `now` is a monotonic clock's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._missing: set[object] = set()
        self._since = 0.0
        self._told_at = float("-inf")
        self._is_told = False  # of this loss

    def lost(self, who: object, why: Exception, now: float) -> None:
        """This question was not answered, and is asked again."""
        if isinstance(why, ShutOut):
            return
        with self._lock:
            if not self._missing:
                self._since, self._is_told = now, False
            self._missing.add(who)
            if now - self._told_at < QUIET_SECONDS:
                return
            is_first, self._is_told, self._told_at = not self._is_told, True, now
        reason = str(why) or "no answer in time"
        if is_first:
            log.warning("contact is lost, trying on: %s", reason)
        else:
            log.warning("no contact for %.0f s, trying on: %s", now - self._since, reason)

    def found(self, who: object, now: float) -> None:
        """It was answered."""
        with self._lock:
            was_missing = who in self._missing
            self._missing.discard(who)
            if not was_missing or self._missing or not self._is_told:
                return
            self._is_told = False
        log.info("contact is back after %.0f s", now - self._since)

    def forget(self, who: object) -> None:
        """Nobody asks it any more."""
        with self._lock:
            self._missing.discard(who)
