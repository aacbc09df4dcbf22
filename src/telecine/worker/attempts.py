"""What a worker holds: shared by the loop, which works, and the heart, which renews."""

from __future__ import annotations

from asyncio import TimerHandle
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from telecine.facts import Fact, HeldLease, Json, Lease, LogEntry, WorkerId
from telecine.worker.contact import Contact
from telecine.worker_facts import Totals

MAX_LINES = 5_000

Key = tuple[int, int]
Interrupt = Callable[[bool], None]
Life = Literal["working", "ended", "mute"]


class Attempt:
    """One lease in this worker's hands, from the claim to the answer of its last word.

    `until` is when the lease ends by this worker's own clock, counted from before the request that granted it.
    """

    __slots__ = (
        "_fetched", "farewell", "interrupt", "key", "killed", "lease", "life", "news", "note", "progress", "stopping",
        "task", "timer", "until",
    )  # fmt: skip

    def __init__(self, lease: Lease, until: float) -> None:
        self.lease = lease
        self.key: Key = (lease.task_id, lease.token)
        self.until = until
        self.progress: float | None = None
        self.note: str | None = None
        self.news = False
        self.stopping = False  # the handler was asked to end
        self.killed = False  # it was asked for the last time
        self.life: Life = "working"
        self.farewell: Fact | None = None  # what is said instead of the handler's own outcome
        self.interrupt: Interrupt | None = None  # makes the handler end; from any thread; True: at once
        self.timer: TimerHandle | None = None  # for the hard time limit
        self.task: object = None  # the asyncio task of an inline handler
        self._fetched: dict[str, Path] | None = None

    @property
    def fetched(self) -> dict[str, Path]:
        """Artifacts that were fetched and hashed for this attempt, by key."""
        if self._fetched is None:
            self._fetched = {}
        return self._fetched


class HeldAttempts:
    """All attempts that beats must name. Plain dict operations, each atomic under the interpreter's lock."""

    def __init__(self) -> None:
        self.contact = Contact()
        self.worker: WorkerId | None = None
        self.attempts: dict[Key, Attempt] = {}
        self.lines: deque[LogEntry] = deque(maxlen=MAX_LINES)
        self.news = False
        self.running = 0
        self.done = 0
        self.failed = 0

    def snapshot(self) -> list[Attempt]:
        return list(self.attempts.values())

    def totals(self) -> Totals:
        return Totals(load=self.running, done=self.done, failed=self.failed)

    def report(self, attempt: Attempt, progress: float, note: str | None) -> None:
        attempt.progress = progress
        if note is not None:
            attempt.note = note
        attempt.news = self.news = True

    def line(self, attempt: Attempt, message: str, level: str = "info", kind: str = "log", data: Json = None) -> None:
        lease = attempt.lease
        text = message.replace("\0", "")  # which PostgreSQL does not take
        self.lines.append(
            LogEntry(task_id=lease.task_id, token=lease.token, message=text, level=level, kind=kind, data=data)
        )
        self.news = True

    def take_lines(self) -> list[LogEntry]:
        taken: list[LogEntry] = []
        with suppress(IndexError):  # the loop and the heart may both be taking
            while True:
                taken.append(self.lines.popleft())
        return taken

    def give_back_lines(self, lines: list[LogEntry]) -> None:
        self.lines.extendleft(reversed(lines))


def holding_of(attempt: Attempt) -> HeldLease:
    """Name the lease. Progress that was told already is not told again: repeating it is no progress."""
    if not attempt.news:
        return HeldLease(task_id=attempt.lease.task_id, token=attempt.lease.token)
    attempt.news = False
    return HeldLease(
        task_id=attempt.lease.task_id, token=attempt.lease.token, progress=attempt.progress, note=attempt.note
    )
