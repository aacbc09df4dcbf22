"""Events with what their readers need beside them: whose they are, what they are about, how a stage fared.

An event row is short: a kind, ids, what cannot be looked up later. Whoever passes events on to people needs the
owner (to know who may see it), the subject, the tasks of its stage and whether its stage begins with it. All of that is
read here for a whole batch, in a few statements, whatever its size.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from telecine.engine.events.stage_starts import StageStarts
from telecine.engine.events.stream import AT_ONCE, Event, Reset, Stream
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.job_lists import lines
from telecine.engine.queries.live_progress import Moving, OwnerCounts, moving, standing, valid_keys
from telecine.engine.queries.view_models import JobLine, Subject
from telecine.facts import Instant, Json
from telecine.store import Ask, Row, Rows, Steps, Store

# Families of events that belong to the owner of a job or a subject; all others are for administrators.
OF_A_JOB = ("job", "task", "stage")
OF_A_SUBJECT = "subject"
MAX_NAMES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class JobContext:
    """A job, as far as its events need it. `first` are the stages that were ready from the start."""

    owner: str
    flow: str
    subject: Subject | None
    priority: int
    created_at: Instant
    stages: Mapping[str, int]
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFault:
    """Why a stage ended in error: that of its first task that did."""

    code: str
    message: str
    attempt: int
    max_attempts: int


@dataclass(slots=True, kw_only=True, eq=False)
class DescribedEvent:
    """An event and what stands beside it. Without an `owner` it is for administrators only.

    `begins`: with it, its stage begins. `forms` is for whoever passes it on: each form is made once for all readers.
    """

    event: Event
    owner: str | None
    subject: Subject | None
    about: JobContext | None
    worker_name: str | None = None
    begins: bool = False
    fault: TaskFault | None = None
    forms: dict[str, Any] = field(default_factory=dict)

    @property
    def tasks(self) -> int | None:
        """How many tasks its stage has."""
        return None if self.about is None or self.event.stage is None else self.about.stages.get(self.event.stage)


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events, and the number up to which that is all."""

    told: tuple[DescribedEvent, ...]
    seq: int


class Announcer:
    """Reads events together with what belongs to them."""

    def __init__(self, store: Store, stream: Stream, graph_cache: GraphCache) -> None:
        self._store = store
        self._stream = stream
        self._graph_cache = graph_cache
        self._begun = StageStarts()
        self._names: OrderedDict[int, str] = OrderedDict()

    async def after(
        self, seq: int, *, job_id: int | None = None, limit: int = AT_ONCE, in_order: bool = False
    ) -> EventPage | Reset:
        """Up to `limit` events after this number. `in_order`: the caller reads all, one batch after the other."""
        batch = await self._stream.after(seq, job_id=job_id, limit=limit)
        if isinstance(batch, Reset):
            return batch
        told = await self._store.read(lambda: self._told(batch.events, in_order)) if batch.events else ()
        return EventPage(told, batch.seq)

    async def moving(self) -> tuple[Moving, ...]:
        """The jobs that somebody works on now."""
        return await self._store.read(lambda: moving(self._graph_cache))

    async def line(self, job_id: int) -> JobLine | None:
        """One job as lists show it; None once it was put away."""
        found = await self._store.read(lambda: lines([job_id], self._graph_cache))
        return found[0] if found else None

    async def standing(self, owner: str, most: int) -> OwnerCounts:
        """How one owner's jobs stand."""
        return await self._store.read(lambda: standing(owner, most))

    async def valid_keys(self, ids: Iterable[str]) -> set[str]:
        """Those of these keys that still open something."""
        asked = sorted(ids)
        return await self._store.read(lambda: valid_keys(asked))

    def _told(self, events: Sequence[Event], in_order: bool) -> Steps[tuple[DescribedEvent, ...]]:
        jobs = yield from self._jobs({e.job_id for e in events if e.job_id is not None})
        subjects = yield from _owners({who for e in events if (who := _subject_in(e)) is not None})
        failed = sorted({e.job_id for e in events if e.kind == "stage.error" and e.job_id is not None})
        faults = _faults((yield Ask("live_errors", {"ids": failed}))) if failed else {}
        yield from self._learn_names({e.worker for e in events if e.worker is not None})
        if not in_order:
            yield from self._learn_begun({e.job_id for e in events if e.kind == "task.started"})
        found: list[DescribedEvent] = []
        for event in events:
            about = jobs.get(event.job_id) if event.job_id is not None else None
            subject = _subject_in(event) or (about.subject if about is not None else None)
            if in_order and event.kind == "task.started" and not self._begun.knows(event.job_id):
                yield from self._learn_begun({event.job_id})
            found.append(
                DescribedEvent(
                    event=event,
                    owner=_owner(event, about, subjects),
                    subject=subject,
                    about=about,
                    worker_name=self._names.get(event.worker or 0),
                    begins=self._begun.hear(event) if in_order else self._begun.begins(event),
                    fault=faults.get((event.job_id or 0, event.stage or "")),
                )
            )
        return tuple(found)

    def _jobs(self, ids: set[int]) -> Steps[dict[int, JobContext]]:
        if not ids:
            return {}
        rows = yield Ask("live_jobs", {"ids": sorted(ids)})
        graphs = yield from self._graph_cache.fetch(row["flow_id"] for row in rows if row["flow_id"] is not None)
        found: dict[int, JobContext] = {}
        for row in rows:
            graph = graphs.get(row["flow_id"])
            needs = {} if graph is None else {stage.name: stage.needs for stage in graph.stages}
            found.setdefault(row["id"], _about(row, needs))
        return found

    def _learn_names(self, workers: set[int]) -> Steps[None]:
        if unknown := sorted(workers - self._names.keys()):
            for row in (yield Ask("live_workers", {"ids": unknown})):
                self._names[row["id"]] = row["name"]
        while len(self._names) > MAX_NAMES:
            self._names.popitem(last=False)

    def _learn_begun(self, jobs: Iterable[int | None]) -> Steps[None]:
        unknown = sorted(job_id for job_id in jobs if job_id is not None and not self._begun.knows(job_id))
        if unknown:
            self._begun.learn(unknown, (yield Ask("live_begun", {"ids": unknown})))


def _about(row: Row, needs: Mapping[str, Sequence[str]]) -> JobContext:
    stages: list[dict[str, Json]] = json.loads(row["stages"] or "[]")
    never = {stage["name"] for stage in stages if stage["never"]}
    first = tuple(
        stage["name"]
        for stage in stages
        if stage["name"] not in never and stage["name"] in needs and never.issuperset(needs[stage["name"]])
    )
    return JobContext(
        owner=row["owner"],
        flow=row["flow"],
        subject=None if row["subject_kind"] is None else (row["subject_kind"], row["subject_id"]),
        priority=row["priority"],
        created_at=row["created_at"],
        stages={stage["name"]: stage["total"] for stage in stages},
        first=first,
    )


def _owners(subjects: set[Subject]) -> Steps[dict[Subject, str]]:
    if not subjects:
        return {}
    named = sorted(subjects)
    rows: Rows = yield Ask("live_subjects", {"kinds": [who[0] for who in named], "ids": [who[1] for who in named]})
    return {(row["kind"], row["id"]): row["owner"] for row in rows}


def family(kind: str) -> str:
    return kind.partition(".")[0]


def _owner(event: Event, about: JobContext | None, subjects: Mapping[Subject, str]) -> str | None:
    """Whoever may see it beside administrators. What belongs to nobody that we know belongs to nobody."""
    of = family(event.kind)
    if of in OF_A_JOB:
        return None if about is None else about.owner
    if of == OF_A_SUBJECT:
        who = _subject_in(event)
        return None if who is None else subjects.get(who)
    return None


def _subject_in(event: Event) -> Subject | None:
    if family(event.kind) != OF_A_SUBJECT or not isinstance(event.data, dict):
        return None
    kind, subject_id = event.data.get("kind"), event.data.get("id")
    return (kind, subject_id) if isinstance(kind, str) and isinstance(subject_id, str) else None


def _faults(rows: Rows) -> dict[tuple[int, str], TaskFault]:
    found: dict[tuple[int, str], TaskFault] = {}
    for row in rows:
        error = json.loads(row["error"] or "{}")
        fault = TaskFault(
            code=error.get("code", "failed"),
            message=error.get("message", ""),
            attempt=row["tries"],
            max_attempts=row["max_attempts"],
        )
        found.setdefault((row["job_id"], row["stage"]), fault)
    return found
