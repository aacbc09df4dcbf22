"""Bytes on their way, as a sign of life.

The stall watch ends an attempt whose progress stands still, and a large file is on its way for longer than that. So
its progress creeps on, by a hundredth for the whole file: the same bytes give the same progress, and a task that moves
them again after a crash has not come further by it.
"""

from __future__ import annotations

from collections.abc import Callable

from telecine.errors import HandlerStopped
from telecine.worker.attempts import Attempt

SHARE = 0.01
QUIET = 1.0  # seconds; what is over by then is not worth a word


class TransferProgress:
    """Called for each piece, in any thread; raises once nobody waits for the bytes any more."""

    def __init__(self, attempt: Attempt, mono: Callable[[], float]) -> None:
        self._attempt = attempt
        self._mono = mono
        self._told_at = mono()
        self._said: float | None = None
        self._base = 0.0
        self.over = False

    def __call__(self, done: int, of: int) -> None:
        attempt = self._attempt
        if self.over or attempt.killed or attempt.life != "working":
            raise HandlerStopped(f"task {attempt.lease.task_id}: nobody waits for these bytes any more")
        now = self._mono()
        if now - self._told_at < QUIET:
            return
        self._told_at = now
        if self._said is None or attempt.progress != self._said:  # the handler itself has said something since
            self._base = min(attempt.progress or 0.0, 1.0 - SHARE)
        self._said = self._base + SHARE * done / max(of, done, 1)
        attempt.progress, attempt.news = self._said, True
