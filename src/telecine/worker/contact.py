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
# A question that fails is asked again within 3 s. One that has not failed for longer waits for its answer: a claim
# may wait half a minute for work.
SETTLED_SECONDS = 4.0


class WorkerShutOut(Unreachable):
    """The server does not let this worker in: whoever waits for that tells it, and ends the worker."""


class Contact:
    """Used from two threads. `who` is one question that has no answer yet; `now` is a monotonic clock's."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._missing: set[object] = set()
        self._since: float | None = None  # when the loss began
        self._lost_at = 0.0  # when a question failed last
        self._answered_at: float | None = None  # the first answer after that
        self._told_at = float("-inf")
        self._is_told = False  # the log says that contact is lost, and not yet that it is back
        self._stumbles: dict[tuple[str, str], float] = {}  # what, and by which class of error: when it was told

    def lost(self, who: object, why: Exception, now: float) -> None:
        """This question was not answered, and is asked again."""
        if isinstance(why, WorkerShutOut):
            return
        with self._lock:
            since = self._since = now if self._since is None else self._since
            self._lost_at, self._answered_at = now, None
            self._missing.add(who)
            if now - self._told_at < QUIET_SECONDS:
                return
            is_first, self._is_told, self._told_at = not self._is_told, True, now
        reason = str(why) or "no answer in time"
        if is_first:
            log.warning("contact is lost, trying on: %s", reason)
        else:
            log.warning("no contact for %.0f s, trying on: %s", now - since, reason)

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
        """It was answered. That ends the loss, unless another question has failed just now and may fail again.

        The loss has lasted until the first answer after the last failure.
        """
        with self._lock:
            self._missing.discard(who)
            if self._since is None:
                return
            self._answered_at = now if self._answered_at is None else self._answered_at
            if self._missing and now - self._lost_at < SETTLED_SECONDS:
                return
            lasted, was_told = self._answered_at - self._since, self._is_told
            self._since, self._is_told = None, False
            self._missing.clear()
        if was_told:
            log.info("contact is back after %.0f s", lasted)

    def forget(self, who: object) -> None:
        """Nobody asks it any more."""
        with self._lock:
            self._missing.discard(who)
