"""The second look: whatever is stored twice is compared, and every difference is said out loud.

The engine moves counters and states together with the tasks that they are derived from. If they ever
differ, then by a fault of ours, of the disk or of somebody with an SQL prompt, and a job may hang without
a word. So a slow duty walks through all jobs, a batch at a time, recomputes what can be recomputed by the
rules of `graph`, and looks for rows whose parent is gone. It repairs nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.job_view import loads, stage_rows
from telecine.facts import State, Status
from telecine.graph import Graph, StageRow, StageSpec, job_phase, job_status, satisfies
from telecine.store import Ask, Row, Steps, Store

BATCH = 500
MAX_KNOWN = 10_000
_ALIVE = (State.NEW, State.READY, State.RUNNING)

# Which rows belong to which: the index that is walked, the sentence for a row that belongs to nothing.
_ORPHANS = {
    "stage": "stage rows exist for job {}, which does not",
    "task": "tasks exist for job {}, which does not",
    "job_log": "log lines exist for job {}, which does not",
    "job_after": "job {} waits for others, but does not exist",
    "attempt": "attempts exist for task {}, which does not",
    "artifact": "artifacts exist for job {}, which is neither there nor in the archive",
    "idempotency": "an idempotency key names job {}, which is neither there nor in the archive",
    "subject_version": "version {} belongs to a subject that does not exist",
    "version_of_artifact": "artifacts are given to version {}, which does not exist",
    "current_version": "a subject shows version {}, which does not exist",
}
_PARTS = ("jobs", *_ORPHANS)


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """One difference in one sentence. `check` names the column or the kind of row."""

    check: str
    message: str
    job_id: int | None = None
    task_id: int | None = None


@dataclass(frozen=True, slots=True)
class AuditPosition:
    """How far the audit is: which kind of rows, after which id."""

    part: str = "jobs"
    after: int = 0


@dataclass(frozen=True, slots=True)
class AuditBatch:
    """What one batch showed, and where the next one begins; None: everything was looked at."""

    findings: tuple[AuditFinding, ...]
    next: AuditPosition | None


class Auditor:
    """Looks at one batch after the other, round and round, and says each finding once."""

    def __init__(self, store: Store, graph_cache: GraphCache) -> None:
        self._store = store
        self._graph_cache = graph_cache
        self._place = AuditPosition()
        self._known: set[AuditFinding] = set()

    async def look(self, batch: int = BATCH) -> AuditBatch:
        """One batch. New findings become events `audit.finding`."""
        here = self._place
        found = await self._store.read(lambda: look(here, self._graph_cache, batch))
        fresh = [finding for finding in found.findings if finding not in self._known]
        if fresh:
            await self._store.run(lambda: _say(fresh))
        if len(self._known) < MAX_KNOWN:
            self._known.update(fresh)
        self._place = found.next or AuditPosition()
        return found

    async def look_at_everything(self, batch: int = BATCH) -> tuple[AuditFinding, ...]:
        """The whole database, from the beginning."""
        self._place = AuditPosition()
        findings: list[AuditFinding] = []
        while True:
            found = await self.look(batch)
            findings.extend(found.findings)
            if found.next is None:
                return tuple(findings)


def look(place: AuditPosition, graph_cache: GraphCache, batch: int) -> Steps[AuditBatch]:
    """Look at one batch of rows."""
    if place.part != "jobs":
        return (yield from _look_for_orphans(place, batch))
    rows = yield Ask("audit_jobs", {"after": place.after, "wanted": batch})
    graphs = yield from graph_cache.fetch(row["flow_id"] for row in rows if row["has_flow"])
    findings = [finding for row in rows for finding in of_job(row, graphs.get(row["flow_id"]))]
    return AuditBatch(
        tuple(findings), AuditPosition("jobs", rows[-1]["id"]) if len(rows) == batch else _after(place.part)
    )


def _look_for_orphans(place: AuditPosition, batch: int) -> Steps[AuditBatch]:
    rows = yield Ask(f"orphans_{place.part}", {"after": place.after, "wanted": batch})
    last = max((row["last"] for row in rows if row["last"] is not None), default=None)
    missing = sorted(row["missing"] for row in rows if row["missing"] is not None)
    findings = tuple(AuditFinding(f"{place.part}.orphan", f"{_ORPHANS[place.part].format(id_)}.") for id_ in missing)
    return AuditBatch(findings, _after(place.part) if last is None else AuditPosition(place.part, last))


def _after(part: str) -> AuditPosition | None:
    number = _PARTS.index(part) + 1
    return AuditPosition(_PARTS[number]) if number < len(_PARTS) else None


def _say(findings: Iterable[AuditFinding]) -> Steps[None]:
    for finding in findings:
        data = json.dumps({"check": finding.check, "message": finding.message})
        where = {"job_id": finding.job_id, "task_id": finding.task_id, "stage": None, "token": None, "worker": None}
        yield Ask("event_say", {"kind": "audit.finding", **where, "data": data})


# -- One job -----------------------------------------------------------------------------------------


def of_job(row: Row, graph: Graph | None) -> list[AuditFinding]:
    """Every difference within one job."""
    job_id = row["id"]
    if graph is None:
        return [
            AuditFinding("job.flow_id", f"job {job_id} runs flow row {row['flow_id']}, which does not exist.", job_id)
        ]
    if row["told"] > 1:
        return [
            AuditFinding("job", f"job {job_id} is told twice: by a row, and by a task that is the whole of it.", job_id)
        ]
    found = loads(row["stages"], [])
    stages, numbers = stage_rows(found), sorted(item["number"] for item in found)
    if numbers != list(range(len(graph.stages))):  # one may be told twice: by a row, and by a task that is its job
        text = f"job {job_id} has stage rows {numbers}; its graph has {len(graph.stages)} stages."
        return [AuditFinding("stage", text, job_id)]
    counts: dict[int, Counts] = {number: Counts() for number in stages}
    for item in loads(row["tasks"], []):
        if item["stage"] not in counts:
            return [
                AuditFinding(
                    "task.stage", f"job {job_id} has tasks of a stage {item['stage']} that is not there.", job_id
                )
            ]
        counts[item["stage"]].add(item)
    for item in loads(row["passed_over"], []):
        counts[item["stage"]].passed_over = item["count"]
    told = [
        *_of_stages(row, graph, stages, counts),
        *_of_the_job(row, graph, stages, counts),
    ]
    findings = [AuditFinding(check, f"job {job_id}: {text}.", job_id) for check, text in told]
    return [*findings, *(f for item in loads(row["odd"], []) for f in _of_task(job_id, item))]


Told = Iterator[tuple[str, str]]


class Counts:
    """The tasks of one stage, counted."""

    def __init__(self) -> None:
        self.by_state: dict[State, int] = {}
        self.failed = 0
        self.passed_over = 0

    def add(self, item: Mapping[str, Any]) -> None:
        state = State(item["state"])
        self.by_state[state] = self.by_state.get(state, 0) + item["count"]
        if state is State.ERROR and not item["optional"]:
            self.failed += item["count"]

    def of(self, *states: State) -> int:
        return sum(self.by_state.get(state, 0) for state in states)

    def columns(self) -> dict[str, int]:
        return {
            "total": self.of(*State),
            "remaining": self.of(*_ALIVE),
            "failed": self.failed,
            "cancelled": self.of(State.CANCELLED),
        }


def _of_stages(row: Row, graph: Graph, stages: Mapping[int, StageRow], counts: Mapping[int, Counts]) -> Told:
    halted = bool(row["cancel_asked"]) or bool(row["failing"])
    for number, spec in enumerate(graph.stages):
        stored, count = stages[number], counts[number]
        for column, truth in count.columns().items():
            if getattr(stored, column) != truth:
                yield f"stage.{column}", _differs(f"{column} of stage {spec.name!r}", getattr(stored, column), truth)
        unmet = _unmet(graph, stages, spec)
        if stored.waits != unmet:
            yield "stage.waits", _differs(f"the number of unmet needs of stage {spec.name!r}", stored.waits, unmet)
        held = halted or bool(row["waits"])
        if stored.state not in _states(count, waiting=held or unmet > 0, halted=halted):
            yield "stage.state", f"stage {spec.name!r} is {stored.state}, which its tasks ({_told(count)}) do not allow"


def _differs(what: str, stored: object, truth: object) -> str:
    return f"{what} is stored as {stored}, and is {truth}"


def _told(count: Counts) -> str:
    return ", ".join(f"{n} {state}" for state, n in sorted(count.by_state.items())) or "none"


def _unmet(graph: Graph, stages: Mapping[int, StageRow], spec: StageSpec) -> int:
    needs = (graph.numbers[need] for need in spec.needs)
    return sum(not satisfies(graph.stages[n], stages[n].state) for n in needs)


def _states(count: Counts, *, waiting: bool, halted: bool) -> set[State]:
    """The states that a stage with these tasks may have."""
    if count.of(State.READY, State.RUNNING):
        return {State.READY}
    if count.of(State.NEW):
        return {State.NEW} if waiting else set()
    allowed = {State.NEW} if waiting else set()
    if count.failed:
        return allowed | {State.ERROR}
    if count.of(State.CANCELLED):
        return allowed | {State.CANCELLED}
    if count.of(State.SKIPPED) == count.of(*State):
        allowed.add(State.SKIPPED)
    if count.of(*State) and count.of(State.SKIPPED) == count.passed_over:
        allowed.add(State.DONE)  # the sweep skips single tasks whose patience has ended; the stage is done without them
    return allowed | {State.CANCELLED} if halted else allowed


def _of_the_job(row: Row, graph: Graph, stages: Mapping[int, StageRow], counts: Mapping[int, Counts]) -> Told:
    optional = {number for number, spec in enumerate(graph.stages) if spec.optional}
    required = sum(count.failed for number, count in counts.items() if number not in optional)
    warnings = sum(count.of(State.ERROR) for count in counts.values()) - required
    rows = [stages[number] for number in sorted(stages)]
    phase = job_phase(graph, rows)
    status = job_status(graph, rows, phase, bool(row["cancel_asked"]))
    if not status.is_final and row["started_at"] is None:
        status = Status.PENDING
    truths = {
        "phase": phase.value,
        "status": status.value,
        "outcome": status.value if status.is_final else None,
        "failing": required > 0,
        "warnings": warnings,
        "waits": row["after"],
    }
    for column, truth in truths.items():
        stored = bool(row[column]) if column == "failing" else row[column]
        if stored != truth:
            yield f"job.{column}", _differs(column, stored, truth)
    if row["started_at"] is None and (running := sum(count.of(State.RUNNING) for count in counts.values())):
        yield "job.started_at", f"it has not begun, and {running} of its tasks run"
    if row["after_lost"]:
        yield "job_after.orphan", f"{row['after_lost']} of the jobs that it comes after do not exist"


def _of_task(job_id: int, item: Mapping[str, Any]) -> Iterator[AuditFinding]:
    """One of the tasks that the statement found odd."""

    def finding(check: str, text: str) -> AuditFinding:
        return AuditFinding(check, f"task {item['id']} {text}.", job_id, item["id"])

    running = item["state"] == State.RUNNING
    ended = item["token"] - running
    if item["attempts"] != ended or (item["last_token"] or 0) != ended:
        history = f"{item['attempts']} attempts up to {item['last_token']}"
        yield finding("task.token", f"is {item['state']} with token {item['token']}, and has {history}")
    if item["done"] != (item["state"] == State.DONE):
        yield finding("task.state", f"is {item['state']}, and its history knows of {item['done']} successes")
    if running != (item["lease_until"] is not None) or running != (item["worker"] is not None):
        yield finding("task.lease", f"is {item['state']} with lease {item['lease_until']} of worker {item['worker']}")
    elif running and not item["has_worker"]:
        yield finding("task.worker", f"is held by worker {item['worker']}, which does not exist")
    if item["parked"] and item["state"] != State.READY:
        yield finding("task.parked", f"is parked although it is {item['state']}")
    if (item["kept"] > 0) != bool(item["has_kept"]):
        text = "says that something is kept for it, and nothing is" if item["kept"] else "has kept things and says none"
        yield finding("task.kept", text)
