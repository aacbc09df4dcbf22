"""What new jobs begin with: their stages and first tasks, the same for all that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from telecine.engine.jobs import job_rows
from telecine.engine.jobs.ready_tasks import boost
from telecine.errors import BadSpec
from telecine.facts import Instant, State
from telecine.graph import Graph, StageRow, advance
from telecine.store import Ask, Columns, Steps, Write

MAX_KINDS = 256


class Alike(NamedTuple):
    """What new jobs have in common that are written together."""

    flow_id: int
    skip: tuple[str, ...]
    waiting: bool
    priority: int
    plain: bool  # nothing is known of it but owner and spec, and it is due at once


class NewJobRows(NamedTuple):
    """What is a new job's own. `waits`: for how many others, None for none."""

    id: int
    owner: str
    subject_kind: str | None
    subject_id: str | None
    spec: str
    dedupe_key: str | None
    run_at: Instant | None
    waits: int | None


# The same as plain tuples, which take half the time to make.
AsAlike = tuple[int, tuple[str, ...], bool, int, bool]
AsNewJob = tuple[int, str, str | None, str | None, str, str | None, Instant | None, int | None]


class JobBatch:
    """New jobs on their way to the database: jobs that are alike in one statement, each by its own columns."""

    def __init__(self) -> None:
        self.lanes: set[str] = set()
        self._graphs: dict[int, Graph] = {}
        self._jobs: dict[AsAlike, list[AsNewJob]] = {}
        self._after: list[dict[str, Any]] = []

    def add(self, graph: Graph, alike: AsAlike, job: AsNewJob, waiting: Sequence[int]) -> None:
        """`waiting`: the unfinished jobs that it comes after."""
        jobs = self._jobs.get(alike)
        if jobs is None:
            self._graphs[alike[0]] = graph
            jobs = self._jobs[alike] = []
        jobs.append(job)
        if waiting:
            self._after.extend({"job_id": job[0], "after_id": other} for other in waiting)

    def write(self, *, alone: bool) -> Steps[None]:
        """`alone`: nothing else happens in this transaction."""
        for kind, jobs in self._jobs.items():
            alike = Alike(*kind)
            begun = begin(self._graphs[alike.flow_id], alike)
            self.lanes |= begun.lanes
            whole = alone and len(self._jobs) == 1
            if len(jobs) == 1 and alike.plain and begun.lone is not None:
                job = NewJobRows(*jobs[0])
                yield begun.write(job.id, job.owner, job.spec, whole=whole)
                continue
            lists = dict(zip(NewJobRows._fields, zip(*jobs, strict=True), strict=True))
            common = {**begun.common, "ids": lists["id"], "same_owner": _same_owner(lists)}
            common |= job_rows.storage(is_plain=alike.plain, has_one_task=begun.lone is not None)
            yield Write("submit", {"jobs": Columns(lists), "stages": begun.stages}, common, whole=whole)
        if self._after:
            yield Write("after_add", {"after": self._after})


def _same_owner(lists: dict[str, tuple[Any, ...]]) -> str | None:
    """Whose all of them are, which is then said once and not by each; None if they are not one's."""
    owners = lists["owner"]
    if owners.count(owners[0]) < len(owners):
        return None
    lists["owner"] = (None,) * len(owners)
    return str(owners[0])


class JobTemplate(NamedTuple):
    """What is written of every job of a kind, and the lanes that get work by it. `lone`: that, if it is one task."""

    common: dict[str, Any]
    stages: Columns
    lone: dict[str, Any] | None
    lanes: frozenset[str]

    def write(self, job_id: int, owner: str, spec: str, *, whole: bool) -> Ask:
        """One job that is one plain task."""
        assert self.lone is not None
        params = {**self.lone, "id": job_id, "owner": owner, "spec": spec}
        return Ask("submit_lone", params, whole=whole, rings=bool(self.lanes))


_kinds: dict[tuple[int, Alike], tuple[Graph, JobTemplate]] = {}


def begin(graph: Graph, alike: Alike) -> JobTemplate:
    """Remembered by the graph itself: to compare graphs by value would cost more than it saves."""
    known = _kinds.get((id(graph), alike))
    if known is not None and known[0] is graph:
        return known[1]
    skip = frozenset(graph.numbers[name] for name in alike.skip)
    rows, phase = first_stages(graph, skip, alike.waiting)
    stages = [_stage(graph, row, alike.priority) for row in rows]
    common = {"flow_id": alike.flow_id, "flow": graph.flow, "phase": phase, "priority": alike.priority}
    begun = JobTemplate(
        common,
        Columns({column: [stage[column] for stage in stages] for column in stages[0]}),
        common | stages[0] if len(stages) == 1 and rows[0].total == 1 else None,
        frozenset(graph.lanes[row.number] for row in rows if row.total and row.state is State.READY),
    )
    if len(_kinds) >= MAX_KINDS:
        _kinds.clear()
    _kinds[id(graph), alike] = (graph, begun)
    return begun


def _stage(graph: Graph, row: StageRow, priority: int) -> dict[str, Any]:
    """A stage of every new job, and its task if it has one from the start."""
    stage = graph.stages[row.number]
    return {
        "number": row.number,
        "name": stage.name,
        "state": row.state.value,
        "waits": row.waits,
        "total": row.total,
        "lane": graph.lanes[row.number],
        "boost": boost(priority, stage.priority_offset),
        "max_attempts": stage.policy.max_attempts,
        "stall_ms": stage.policy.stall,
        "limit_ms": stage.policy.limit,
    }


@lru_cache(maxsize=1024)
def first_stages(graph: Graph, skip: frozenset[int], waiting: bool) -> tuple[tuple[StageRow, ...], str]:
    """The stage rows of a new job, and its first phase: what needs nothing is ready, unless the job waits."""
    totals = [0 if stage.fan_out or number in skip else 1 for number, stage in enumerate(graph.stages)]
    new = tuple(
        StageRow(number, State.NEW, len(stage.needs), totals[number], totals[number])
        for number, stage in enumerate(graph.stages)
    )
    begun = advance(graph, new, halted=False, cancelled=False, skip=skip)
    if begun.status.is_final:
        raise BadSpec(f"nothing would be left to do: every stage of flow {graph.flow!r} is skipped")
    if not waiting:
        return begun.stages, begun.phase.value
    closed = (row._replace(state=State.NEW) if row.state is State.READY else row for row in begun.stages)
    return tuple(closed), begun.phase.value
