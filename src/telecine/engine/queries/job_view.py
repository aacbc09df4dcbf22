"""One job as people see it, from one statement, hence from one moment; and how far it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.view_models import JobView, OutputFile, Result, StageView, Subject, TaskProblem, WorkerName
from telecine.errors import NotFound
from telecine.facts import Json, State, Status
from telecine.graph import Graph, StageRow, StageSpec
from telecine.store import Ask, Row, Steps

MAX_SHOWN = 100
# What a job that waits has none of.
_NOT_BEGUN: Row = {
    **dict.fromkeys(("attempts", "running", "problems", "outputs", "results")),
    "output_count": 0,
}
_KEY = ("kind", "scope", "owner", "name", "secret_hash", "expires_at", "last_used_at", "revoked_at", "now")
_OF_KEY = {name: f"key_{name}" for name in _KEY}


def job(job_id: int, graph_cache: GraphCache) -> Steps[JobView]:
    """The job in full, also from the archive."""
    found = yield from live_job(job_id, graph_cache)
    if found is not None:
        return found
    document, archived_at = yield from archived(job_id)
    return job_from(document["job"], archived_at)


def live_job(job_id: int, graph_cache: GraphCache, most: int = MAX_SHOWN) -> Steps[JobView | None]:
    rows = yield Ask("view_job", {"id": job_id, "most": most})
    if not rows:
        return None
    graph = (yield from graph_cache.fetch([rows[0]["flow_id"]]))[rows[0]["flow_id"]]
    return _job(rows[0], graph, rows[0])


def asked(job_id: int, key_id: str) -> Steps[tuple[Row | None, Row | None]]:
    """The row of a key, and that of the job that is asked for by it if it waits: in one round trip, since nothing is
    asked more often. Nothing is judged here, hence nothing made of the job: without a valid key, nobody may see it, nor
    what is wrong with it."""
    rows = yield Ask("view_job_asked", {"id": job_id, "key_id": key_id})
    if not rows:
        return None, None
    row = rows[0]
    key = {name: row[column] for name, column in _OF_KEY.items()}
    return key, None if row["id"] is None else row


def waiting_job(row: Row, graph: Graph) -> JobView:
    """The job of such a row."""
    return _job(row, graph, _NOT_BEGUN)


def archived(job_id: int) -> Steps[tuple[dict[str, Any], int]]:
    """The document of a job that retention has put away, and when it did."""
    rows = yield Ask("view_archived", {"id": job_id})
    if not rows:
        raise NotFound(f"there is no job {job_id}")
    return json.loads(rows[0]["document"]), rows[0]["archived_at"]


def loads(text: str | None, default: Json = None) -> Any:
    return default if text is None else json.loads(text)


def subject_of(row: Row) -> Subject | None:
    return None if row["subject_kind"] is None else (row["subject_kind"], row["subject_id"])


def worker_name(worker: int | None, name: str | None) -> WorkerName | None:
    return None if worker is None else WorkerName(worker, name)


# -- How far -----------------------------------------------------------------------------------------


def stage_progress(spec: StageSpec, row: StageRow, running: float) -> float:
    """Ended tasks and how far the others are, of all; what was cancelled or failed the job counts for nothing."""
    if row.state is State.SKIPPED:
        return 1.0
    if not row.total:
        return 0.0
    failed = 0 if spec.optional else row.failed
    ended = row.total - row.remaining - row.cancelled - failed
    return min(1.0, max(0.0, (ended + running) / row.total))


def job_progress(graph: Graph, rows: Mapping[int, StageRow], running: Mapping[int, float], status: str) -> float:
    """The stages' progress by their weights."""
    if status == Status.COMPLETED:
        return 1.0
    weights = sum(stage.weight for stage in graph.stages)
    done = sum(
        stage.weight * stage_progress(stage, rows[number], running.get(number, 0.0))
        for number, stage in enumerate(graph.stages)
        if number in rows
    )
    return done / weights if weights else 0.0


def stage_rows(items: Iterable[Mapping[str, Any]]) -> dict[int, StageRow]:
    names = ("waits", "total", "remaining", "failed", "cancelled")
    return {
        item["number"]: StageRow(item["number"], State(item["state"]), *(item[name] for name in names))
        for item in items
    }


# -- The parts ---------------------------------------------------------------------------------------


def _job(row: Row, graph: Graph, begun: Row) -> JobView:
    """`begun` has what a job has only when somebody has begun with it."""
    stored = loads(row["stages"], [])
    rows = stage_rows(stored)
    counts: dict[int, dict[str, int]] = {}
    running: dict[int, float] = {}
    for item in loads(row["tasks"], []):
        counts.setdefault(item["stage"], {})[item["state"]] = item["count"]
        if item["state"] in (State.RUNNING, State.READY):
            running[item["stage"]] = running.get(item["stage"], 0.0) + item.get("progress", 0.0)
    seen = [*loads(begun["attempts"], []), *loads(begun["running"], [])]
    problems = loads(begun["problems"], [])
    return JobView(
        **{**_plain(row), "phase": _phase(row, graph)},
        flow_version=graph.version,
        progress=job_progress(graph, rows, running, row["status"]),
        plan={graph.stages[n].name: r.total for n, r in rows.items() if graph.stages[n].fan_out and r.total},
        stages=tuple(
            _stage(graph.stages[item["number"]], item, rows[item["number"]], TaskCounts(counts, running, seen))
            for item in stored
        ),
        output_count=begun["output_count"],
        outputs=tuple(output_of(item, graph) for item in loads(begun["outputs"], [])),
        warnings=tuple(_problem(p, graph) for p in problems if p["optional"] or graph.stages[p["stage"]].optional),
        retries=_retries(seen, counts),
        workers=_workers(seen),
        waits_for=tuple(loads(row["waits_for"], [])),
        results=tuple(
            Result(stage=item["name"], position=item["position"], value=item["result"])
            for item in loads(begun["results"], [])
        ),
    )


def _plain(row: Row) -> dict[str, Any]:
    """The columns that are shown as they are."""
    same = ("id", "flow", "owner", "status", "phase", "priority", "version", "generation", "dedupe_key", "run_at")
    times = ("created_at", "started_at", "ended_at")
    return {
        **{name: row[name] for name in (*same, *times)},
        "subject": subject_of(row),
        "spec": json.loads(row["spec"]),
        "error": loads(row["error"]),
        "cancel_asked": bool(row["cancel_asked"]),
        "warning_count": row["warnings"],
    }


def _phase(row: Row, graph: Graph) -> str:
    """Where the job is, or was when it failed: what was never reached is no place where it stands."""
    failed_in = loads(row["error"], {}).get("stage") if row["status"] == Status.FAILED else None
    return next((stage.phase.value for stage in graph.stages if stage.name == failed_in), str(row["phase"]))


def _retries(seen: list[dict[str, Any]], counts: Mapping[int, Mapping[str, int]]) -> int:
    """Failed attempts after which another one was made or follows: not the last one of a task that was given up."""
    given_up = sum(states.get(State.ERROR, 0) for states in counts.values())
    return max(0, sum(int(item.get("bad", 0)) for item in seen) - given_up)


class TaskCounts:
    """What is known about the tasks of a job, by stage."""

    def __init__(
        self, counts: dict[int, dict[str, int]], running: dict[int, float], seen: list[dict[str, Any]]
    ) -> None:
        self.counts, self.running = counts, running
        self.started: dict[int, int] = {}
        for item in seen:
            at = item["started_at"]
            if at is not None:
                self.started[item["stage"]] = min(at, self.started.get(item["stage"], at))


def _stage(spec: StageSpec, item: Mapping[str, Any], row: StageRow, tally: TaskCounts) -> StageView:
    counts = tally.counts.get(row.number, {})
    return StageView(
        name=spec.name,
        title=spec.title or spec.name,
        phase=spec.phase.value,
        state=State.RUNNING.value if counts.get(State.RUNNING) else row.state.value,
        needs=spec.needs,
        optional=spec.optional,
        fan_out=spec.fan_out,
        total=row.total,
        counts=counts,
        progress=stage_progress(spec, row, tally.running.get(row.number, 0.0)),
        started_at=tally.started.get(row.number),
        ended_at=item["ended_at"],
    )


def _workers(seen: list[dict[str, Any]]) -> tuple[WorkerName, ...]:
    names = {item["worker"]: item["name"] for item in seen if item["worker"] is not None}
    return tuple(WorkerName(worker, names[worker]) for worker in sorted(names))


def _problem(item: Mapping[str, Any], graph: Graph) -> TaskProblem:
    error = item["error"] or {}
    return TaskProblem(
        stage=graph.stages[item["stage"]].name,
        position=item["position"],
        code=error.get("code", ""),
        message=error.get("message", ""),
        attempt=item["tries"],
    )


def output_of(item: Mapping[str, Any], graph: Graph) -> OutputFile:
    facts = item["facts"]
    return OutputFile(
        stage=graph.stages[item["stage"]].name,
        facts=(json.loads(facts) if isinstance(facts, str) else facts) or {},
        **{name: item[name] for name in ("name", "position", "key", "size", "sha256")},
    )


def job_from(document: dict[str, Any], archived_at: int) -> JobView:
    """The same value again, out of the archive."""
    parts: dict[str, Any] = {
        "subject": None if document["subject"] is None else tuple(document["subject"]),
        "stages": tuple(StageView(**{**s, "needs": tuple(s["needs"])}) for s in document["stages"]),
        "outputs": tuple(OutputFile(**o) for o in document["outputs"]),
        "results": tuple(Result(**r) for r in document.get("results", ())),
        "warnings": tuple(TaskProblem(**p) for p in document["warnings"]),
        "workers": tuple(WorkerName(**w) for w in document["workers"]),
        "waits_for": tuple(document["waits_for"]),
        "archived_at": archived_at,
    }
    return JobView(**{**document, **parts})
