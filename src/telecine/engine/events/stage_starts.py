"""With which event a stage begins: the first claim of one of its tasks after it was opened.

A stage of 5,000 tasks is claimed 5,000 times, and more often if some are lost; it begins once. A person's retry opens
it anew, so that it begins again. Remembered by job, for the jobs that were heard of last; what is not remembered is
read again from their events.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from telecine.engine.events.stream import Event
from telecine.store import Rows

MAX_JOBS = 5_000
NOBODY = 0


@dataclass(slots=True)
class _Job:
    upto: int = 0
    begun: set[str] = field(default_factory=set)
    firsts: set[int] = field(default_factory=set)

    def hear(self, seq: int, kind: str, stage: str) -> None:
        if seq <= self.upto:
            return
        self.upto = seq
        if kind == "stage.ready":
            self.begun.discard(stage)
        elif stage not in self.begun:
            self.begun.add(stage)
            self.firsts.add(seq)


class StageStarts:
    def __init__(self) -> None:
        self._jobs: OrderedDict[int, _Job] = OrderedDict()

    def knows(self, job_id: int | None) -> bool:
        return job_id in self._jobs

    def learn(self, jobs: Iterable[int], rows: Rows) -> None:
        """All that these jobs have said about it so far."""
        for job_id in jobs:
            if job_id not in self._jobs:  # somebody else may have learnt it meanwhile, and more
                self._put(job_id)
        for row in rows:
            self._jobs[row["job_id"]].hear(row["seq"], row["kind"], row["stage"])

    def hear(self, event: Event) -> bool:
        """The next event, of all that there are; does its stage begin with it?"""
        if event.kind == "job.created" and event.job_id is not None and event.job_id not in self._jobs:
            self._put(event.job_id)
        job = self._jobs.get(event.job_id or NOBODY)
        if job is None or event.stage is None or event.kind not in ("task.started", "stage.ready"):
            return False
        job.hear(event.seq, event.kind, event.stage)
        return event.kind == "task.started" and event.seq in job.firsts

    def begins(self, event: Event) -> bool:
        """The same about an event of the past, of a job that is known."""
        job = self._jobs.get(event.job_id or NOBODY)
        return job is not None and event.kind == "task.started" and event.seq in job.firsts

    def _put(self, job_id: int) -> None:
        self._jobs[job_id] = _Job()
        while len(self._jobs) > MAX_JOBS:
            self._jobs.popitem(last=False)
