"""What people ask of a job: cancel, retry, edit, pause. And what follows for jobs that wait for others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from telecine.engine.jobs import job_rows
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.jobs.job_effects import JobChange, Stages, cancel_waiting, close_job, stages_by_job
from telecine.engine.jobs.ledger import Ledger
from telecine.engine.jobs.ready_tasks import boost
from telecine.engine.jobs.submit import checked_time, priority_of
from telecine.engine.queries.ownership import no_job, owners
from telecine.errors import DedupeTaken, NotFound, VersionMismatch, WrongState
from telecine.facts import Instant, JobId, State, Status
from telecine.graph import Graph, StageRow, job_phase, satisfies
from telecine.json_text import dumps
from telecine.store import Ask, Row, Steps, Write


def _hold(job_id: int) -> Steps[Row]:
    rows = yield from job_rows.hold([job_id])
    if not rows:
        known = yield from owners([job_id], None)
        if job_id in known:
            known[job_id].must_be_here()
        raise no_job(job_id)
    return dict(rows[0])


def cancel(job_id: JobId, graph_cache: GraphCache, *, reason: str = "cancelled", actor: str = "") -> Steps[Status]:
    """Ask for the end: what has not begun ends now, what runs is told by its next beat.

    A second cancel of the same job changes nothing. The answer is the job's status afterwards.
    """
    job = yield from _hold(job_id)
    if job["outcome"] is not None:
        if job["outcome"] == Status.CANCELLED:
            return Status.CANCELLED
        raise WrongState(f"job {job_id} is {job['status']}: there is nothing left to cancel")
    if not job["cancel_asked"]:
        error = {"code": "cancelled", "message": reason, "actor": actor}
        yield Ask("job_cancel", {"id": job_id, "error": dumps(error)})
        yield Ask("event_say", _event("job.cancel_asked", job_id, {"reason": reason, "actor": actor}))
    return (yield from wind_down(job_id, graph_cache))


def wind_down(job_id: int, graph_cache: GraphCache) -> Steps[Status]:
    """Cancel what waits in a job that was cancelled or has failed; end the job if nothing runs."""
    job = yield from _hold(job_id)
    if job["outcome"] is not None or not (job["cancel_asked"] or job["failing"]):
        return Status(job["status"])
    graph = (yield from graph_cache.fetch([job["flow_id"]]))[job["flow_id"]]
    before = stages_by_job((yield Ask("stages_of", {"ids": [job_id]})))[job_id]
    ledger = Ledger(job["now"])
    change = JobChange(job, list(before))
    yield from cancel_waiting(change.rows, job_id, job["now"])
    close_job(ledger, graph, before, change)
    yield from ledger.write()
    return Status(ledger.jobs[0]["status"] if ledger.jobs else job["status"])


@dataclass(frozen=True, slots=True)
class Passed:
    """What became of a job whose tasks nobody took: the lanes that have work now, and whether it has ended."""

    lanes: frozenset[str] = frozenset()
    ended: bool = False


def pass_over(job_id: int, lanes: Collection[str], graph_cache: GraphCache) -> Steps[Passed]:
    """Skip ready tasks in these lanes whose patience has ended; the stages after them decide how to go on."""
    job = yield from _hold(job_id)
    if job["outcome"] is not None or job["cancel_asked"] or job["failing"]:
        return Passed()
    graph = (yield from graph_cache.fetch([job["flow_id"]]))[job["flow_id"]]
    before = stages_by_job((yield Ask("stages_of", {"ids": [job_id]})))[job_id]
    ledger = Ledger(job["now"])
    change = JobChange(job, list(before))
    for item in (yield Ask("pass_over", {"job_id": job_id, "lanes": sorted(lanes), "at": job["now"]})):
        row, count = change.rows[item["stage"]], item["count"]
        change.rows[item["stage"]] = row._replace(remaining=row.remaining - count)
        ledger.say("stage.passed_over", job_id, dumps({"tasks": count}), item["stage"])
    close_job(ledger, graph, before, change)
    yield from ledger.write()
    return Passed(frozenset(ledger.opening.lanes), bool(ledger.ended))


def retry(
    job_id: JobId, graph_cache: GraphCache, *, generation: int | None = None, actor: str = ""
) -> Steps[frozenset[str]]:
    """A person's retry: a new generation. Failed and cancelled tasks reopen, done ones stay done.

    `generation` is the one that is to be followed. If that has happened, this is a repeat whose first answer was lost,
    or somebody was quicker with the same wish: there is nothing left to do.
    """
    job = yield from _hold(job_id)
    if generation is not None and generation + 1 == job["generation"]:
        return frozenset()
    if generation is not None and generation != job["generation"]:
        raise VersionMismatch(f"job {job_id} is at generation {job['generation']}, not {generation}: read it again")
    if job["outcome"] not in (Status.FAILED, Status.CANCELLED):
        raise WrongState(f"job {job_id} is {job['status']}: only a failed or cancelled job can be retried")
    if job["dedupe_key"] is not None:
        taken = yield Ask("dedupe_find", {"owner": job["owner"], "keys": [job["dedupe_key"]]})
        if taken:
            raise DedupeTaken(job["dedupe_key"], taken[0]["id"])
    return (yield from _reopen(job, graph_cache, actor))


def resume(job_id: JobId, graph_cache: GraphCache, *, actor: str = "") -> Steps[tuple[Status, frozenset[str]]]:
    """A person asks again for what this job makes: it goes on, whatever happened to its workers before.

    A failed or cancelled job is retried, and so is one that winds down because a task has failed: it need not fail
    first. In any other open one the losses so far no longer count: the worker that was just killed may be the third in
    a row, which the sweep has yet to notice. A cancelled job that winds down stays cancelled. The answer is the status
    before, and lanes.
    """
    # What has ended is locked only under its job, by everybody: a retry or the archive may be at it right now.
    yield Ask("task_hold_all", {"job_id": job_id})
    job = yield from _hold(job_id)
    status = Status(job["status"])
    if job["outcome"] in (Status.FAILED, Status.CANCELLED):
        return status, (yield from retry(job_id, graph_cache, actor=actor))
    if job["outcome"] is None and job["failing"] and not job["cancel_asked"]:
        return status, (yield from _reopen(job, graph_cache, actor))
    if job["outcome"] is None:
        yield Ask("losses_forget", {"job_id": job_id})
    return status, frozenset()


def _reopen(job: Row, graph_cache: GraphCache, actor: str) -> Steps[frozenset[str]]:
    """Open a new generation of a job that has ended, or that winds down and whose last tasks still run.

    In the latter case what runs is the first attempt of its task in the new generation. Stages that are satisfied stay
    as they are, also with errors of optional tasks: what follows them may be running.
    """
    job_id, has_ended = job["id"], job["outcome"] is not None
    graph = (yield from graph_cache.fetch([job["flow_id"]]))[job["flow_id"]]
    old = stages_by_job((yield Ask("stages_of", {"ids": [job_id]})))[job_id]
    unmet = [row.number for row in old if has_ended or not satisfies(graph.stages[row.number], row.state)]
    yield Ask("task_reopen", {"job_id": job_id, "stages": unmet})
    if not has_ended:
        yield Ask("task_renew", {"job_id": job_id})
    counts = {row["stage"]: row for row in (yield Ask("stage_count", {"job_id": job_id}))}
    rows = reopened(graph, old, counts)
    phase = job_phase(graph, rows).value
    status = Status.PENDING.value if has_ended else phase
    warnings = sum(count["failed"] for count in counts.values())
    yield Ask("job_reopen", {"id": job_id, "phase": phase, "status": status, "warnings": warnings})
    yield Write("stage_reset", {"stages": [_reset(job_id, rows[number]) for number in unmet]})
    ledger = Ledger(job["now"])
    ledger.say("job.retried", job_id, dumps({"actor": actor, "generation": job["generation"] + 1}))
    flags = {"cancel_asked": False, "stopped": False, "failing": False, "warnings": warnings}
    if not job["waits"]:
        close_job(ledger, graph, rows, JobChange({**job, "status": status, "phase": phase, **flags}, list(rows)))
    yield from ledger.write()
    return frozenset(ledger.opening.lanes)


def reopened(graph: Graph, old: Stages, counts: Mapping[int, Row]) -> Stages:
    """Stage rows of a new generation: what is satisfied or under way stays so, the rest waits for its needs."""
    rows: list[StageRow] = []
    for number, stage in enumerate(graph.stages):
        count = counts.get(number)
        total, left, new = (count["total"], count["remaining"], count["new"]) if count else (0, 0, 0)
        waits = sum(
            not satisfies(graph.stages[n], rows[n].state) for n in (graph.numbers[need] for need in stage.needs)
        )
        if not left and satisfies(stage, old[number].state):
            rows.append(old[number]._replace(waits=waits))
        else:
            rows.append(StageRow(number, State.READY if left and not new else State.NEW, waits, total, left))
    return tuple(rows)


def _reset(job_id: int, row: StageRow) -> dict[str, object]:
    place = {"job_id": job_id, "number": row.number, "state": row.state.value}
    return {**place, "waits": row.waits, "total": row.total, "remaining": row.remaining}


def edit(
    job_id: JobId, graph_cache: GraphCache, *, version: int | None, priority: int | str | None, run_at: Instant | None
) -> Steps[None]:
    """Change priority or run_at of a job that has not ended, if nobody else edited it meanwhile.

    The tasks are locked before the job, as everywhere: a claim that has just taken one of them waits for the job.
    """
    checked_time(run_at)
    yield Ask("task_hold_all", {"job_id": job_id})
    job = yield from _hold(job_id)
    if job["outcome"] is not None:
        raise WrongState(f"job {job_id} is {job['status']}: it can no longer be changed")
    if version is not None and version != job["version"]:
        raise VersionMismatch(f"job {job_id} is at version {job['version']}, not {version}: read it again")
    graph = (yield from graph_cache.fetch([job["flow_id"]]))[job["flow_id"]]
    now_priority = job["priority"] if priority is None else priority_of(priority)
    shifts = [
        {
            "number": number,
            "shift": boost(job["priority"], stage.priority_offset) - boost(now_priority, stage.priority_offset),
        }
        for number, stage in enumerate(graph.stages)
    ]
    yield Ask(
        "job_edit", {"id": job_id, "priority": now_priority, "run_at": job["run_at"] if run_at is None else run_at}
    )
    yield Write("task_rerank", {"stages": shifts}, {"job_id": job_id})
    if run_at is not None:
        yield Ask("task_reschedule", {"job_id": job_id, "run_at": run_at})
    yield Ask("event_say", _event("job.edited", job_id, {"priority": now_priority, "run_at": run_at}))


def pause(flow: str, paused: bool) -> Steps[None]:
    rows = yield Ask("flow_pause", {"name": flow, "paused": paused})
    if not rows:
        raise NotFound(f"there is no flow {flow!r}")
    yield Ask("event_say", _event("flow.paused" if paused else "flow.resumed", None, {"flow": flow}))


def resolve_after(job_id: int, ended: Sequence[tuple[int, str]], graph_cache: GraphCache) -> Steps[frozenset[str]]:
    """Jobs that this one waits for have ended: open it, or cancel it with the reason."""
    job = yield from _hold(job_id)
    resolved = yield Ask("after_resolve", {"job_id": job_id, "after": [other for other, _ in ended]})
    mine = {row["after_id"] for row in resolved}
    bad = next(((other, outcome) for other, outcome in ended if other in mine and outcome != Status.COMPLETED), None)
    if job["outcome"] is not None or not mine:
        return frozenset()
    if bad is not None:
        yield from cancel(JobId(job_id), graph_cache, reason=f"job {bad[0]}, which it comes after, is {bad[1]}")
        return frozenset()
    if resolved[0]["waits"] > 0 or job["cancel_asked"]:
        return frozenset()
    graph = (yield from graph_cache.fetch([job["flow_id"]]))[job["flow_id"]]
    rows = stages_by_job((yield Ask("stages_of", {"ids": [job_id]})))[job_id]
    ledger = Ledger(job["now"])
    close_job(ledger, graph, rows, JobChange(job, list(rows)))
    yield from ledger.write()
    return frozenset(ledger.opening.lanes)


def _event(kind: str, job_id: int | None, data: object) -> dict[str, object]:
    place = {"task_id": None, "stage": None, "token": None, "worker": None}
    return {"kind": kind, "job_id": job_id, **place, "data": dumps(data)}
