"""Why a task waits, and how a subject stands: both are read off the queue, nothing is stored for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.leases.recovery import OFFLINE
from telecine.engine.queries.job_view import live_job, loads
from telecine.engine.queries.timeline import attempts_of_task, task_view
from telecine.engine.queries.view_models import StageView, SubjectStatus, TaskView, Waiting
from telecine.errors import NotFound
from telecine.facts import Instant, Json, Millis, State
from telecine.graph import Graph, lane_labels, satisfies
from telecine.plural import counted
from telecine.store import Ask, Row, Rows, Steps

MAX_AHEAD = 10_000
# What the guess of a start is made from: the last tasks of the stage, among so many jobs that completed last.
RECENT_TASKS = 50
RECENT_JOBS = 100
MAX_JOBS = 20


def task(task_id: int, graph_cache: GraphCache, *, history: bool = True) -> Steps[TaskView]:
    """One task with its attempts and, if it has not begun, the reason."""
    rows = yield Ask("view_task", {"id": task_id, "most": MAX_AHEAD})
    if not rows:
        raise NotFound(f"there is no task {task_id}")
    row = rows[0]
    graph = (yield from graph_cache.fetch([row["flow_id"]]))[row["flow_id"]]
    view = task_view(row, graph)
    if row["state"] in (State.NEW, State.READY):
        serving = yield Ask("view_serving", {"within": OFFLINE})
        waiting = why(row, graph, serving)
        if waiting.reason == "queue" and not waiting.capped:
            waiting = replace(waiting, starts_at=(yield from _start(row, serving)))
        view = replace(view, waiting=waiting)
    if history:
        view = replace(view, attempts=(yield from attempts_of_task(task_id, graph)))
    return view


def why(row: Row, graph: Graph, serving: Rows) -> Waiting:
    """The first reason that holds."""
    after = tuple(loads(row["waits_for"], []))
    needs = _unmet(row, graph)
    if row["halted"]:
        return Waiting(reason="stopping", text="its job is being stopped")
    if after:
        jobs = ", ".join(str(job) for job in after)
        return Waiting(reason="after", text=f"its job comes after: {jobs}", after=after)
    if needs:
        return Waiting(reason="needs", text=f"it needs: {', '.join(needs)}", needs=needs)
    if row["paused"]:
        return Waiting(reason="paused", text=f"flow {graph.flow!r} is paused")
    if row["parked"] and row["ready_at"] > row["now"]:
        error = loads(row["error"], {})
        text = f"attempt {row['tries']} failed: {error['message']}" if error else "it is not due yet"
        return Waiting(reason="parked", text=text, until=row["ready_at"])
    if not any(_serves(worker, row["lane"]) for worker in serving):
        return Waiting(reason="no_worker", text=f"no live worker serves {row['lane']}")
    ahead = row["ahead"]
    capped = ahead >= MAX_AHEAD
    text = "it is next in its lane"
    if ahead:
        count = f"{'at least ' if capped else ''}{counted(ahead, 'task')}"
        text = f"ahead in its lane: {count}"
    return Waiting(reason="queue", text=text, ahead=ahead, capped=capped)


def _start(row: Row, serving: Rows) -> Steps[Instant | None]:
    """When a task will begin, if such tasks go on taking as long as lately."""
    rows = yield Ask(
        "stage_times",
        {
            "job_id": row["job_id"],
            "stage": row["stage"],
            "flow_id": row["flow_id"],
            "recent": RECENT_JOBS,
            "wanted": RECENT_TASKS,
        },
    )
    slots = free = 0
    for worker in serving:
        if _serves(worker, row["lane"]):
            slots += worker["slots"]
            free += max(0, worker["slots"] - worker["load"])
    return starts_at(row["now"], row["ahead"], (slots, free), [found["took"] for found in rows])


def starts_at(now: Instant, ahead: int, slots: tuple[int, int], times: Sequence[Millis]) -> Instant | None:
    """At once while a slot is free; else when all that are ahead have had their turn. `slots`: all, and free ones."""
    every, free = slots
    if not every:
        return None
    if ahead < free:
        return now
    if not times:
        return None
    return now + round(median(times) * (ahead + 1 - free) / every)


def _unmet(row: Row, graph: Graph) -> tuple[str, ...]:
    if row["state"] != State.NEW:
        return ()
    states = {item["number"]: State(item["state"]) for item in loads(row["stages"], [])}
    needs = graph.stages[row["stage"]].needs
    numbers = [graph.numbers[need] for need in needs]
    return tuple(need for need, n in zip(needs, numbers, strict=True) if not satisfies(graph.stages[n], states[n]))


def _serves(worker: Row, lane: str) -> bool:
    """A worker names its lanes; one that has the labels serves the lane's narrower ones too."""
    lanes = json.loads(worker["lanes"])
    return lane in lanes or (lane.partition("+")[0] in lanes and lane_labels(lane) <= set(json.loads(worker["labels"])))


# -- Subjects ----------------------------------------------------------------------------------------

Judge = Callable[[dict[str, Json]], str]


def by_facts(facts: dict[str, Json]) -> str:
    """The rule for subjects whose flow has none of its own."""
    return "known" if facts else "unknown"


def subject(kind: str, subject_id: str, graph_cache: GraphCache, judge: Judge = by_facts) -> Steps[SubjectStatus]:
    """How the subject stands. What its jobs do comes first; `judge` speaks when none is open."""
    who = {"kind": kind, "id": subject_id}
    found = yield Ask("subject_get", who)
    facts = json.loads(found[0]["facts"]) if found else {}
    version = found[0]["current_version"] if found else None
    fronts = yield Ask("view_subject", {**who, "wanted": MAX_JOBS})
    if not fronts:
        last = yield Ask("subject_last_job", who)
        if not found and not last:
            raise NotFound(f"there is no {kind} {subject_id!r}")
        failed = bool(last) and last[0]["outcome"] == "failed"
        return SubjectStatus(
            status=judge(facts),
            job_id=last[0]["id"] if last else None,
            error=loads(last[0]["error"]) if failed else None,
            facts=facts,
            version=version,
        )
    status = yield from _in_play(fronts[0], graph_cache)
    return replace(status, facts=facts, version=version)


def _in_play(front: Row, graph_cache: GraphCache) -> Steps[SubjectStatus]:
    if front["state"] == State.RUNNING:
        job = yield from live_job(front["job_id"], graph_cache)
        if job is not None:
            activity = next((s.title for s in job.stages if s.state == State.RUNNING), _lowest(job.stages))
            return SubjectStatus(
                status="processing", job_id=job.id, activity=activity, progress=job.progress, error=job.error
            )
    view = yield from task(front["id"], graph_cache, history=False)
    if view.shown == "retrying":
        return SubjectStatus(
            status="retrying",
            job_id=view.job_id,
            activity=view.title,
            next_at=view.ready_at,
            attempt=view.attempt,
            max_attempts=view.max_attempts,
            error=view.error,
        )
    return SubjectStatus(status="queued", job_id=view.job_id, activity=view.title, waiting=view.waiting)


def _lowest(stages: tuple[StageView, ...]) -> str | None:
    return next((stage.title for stage in stages if stage.ended_at is None), None)
