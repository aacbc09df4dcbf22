"""What follows from settled tasks: counters, opened stages, the job's status. Runs under the job's row lock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from telecine.engine.ledger import Ledger, Move, job_error, write_task
from telecine.engine.opening import pieces_of
from telecine.facts import Done, Json, State, Status
from telecine.graph import Graph, StageRow, advance
from telecine.store import Ask, Row, Steps


@dataclass(frozen=True, slots=True)
class Ripple:
    lanes: frozenset[str] = frozenset()
    ended: tuple[int, ...] = ()


def ripple(moves: Sequence[Move], graphs: Mapping[int, Graph]) -> Steps[Ripple]:
    """Write the moves and all that follows from them."""
    now = moves[0].job["now"]
    ledger = Ledger(now)
    by_job: dict[int, list[Move]] = {}
    for move in moves:
        by_job.setdefault(move.row["job_id"], []).append(move)
    rows = yield Ask("stages_of", {"ids": sorted(by_job)})
    stages = stages_by_job(rows)
    for job_id, some in by_job.items():
        graph = graphs[some[0].job["flow_id"]]
        yield from _job(ledger, graph, stages[job_id], some)
    yield from ledger.write()
    return Ripple(frozenset(ledger.opening.lanes), tuple(ledger.ended))


def stages_by_job(rows: Iterable[Row]) -> dict[int, dict[int, StageRow]]:
    found: dict[int, dict[int, StageRow]] = {}
    for r in rows:
        row = StageRow(
            r["number"],
            State(r["state"]),
            r["waits"],
            r["total"],
            r["remaining"],
            r["failed"],
            r["cancelled"],
        )
        found.setdefault(r["job_id"], {})[r["number"]] = row
    return found


def _job(ledger: Ledger, graph: Graph, before: dict[int, StageRow], moves: list[Move]) -> Steps[None]:
    job = moves[0].job
    rows = dict(before)
    warnings, error, failing = job["warnings"], None, bool(job["failing"])
    skip: set[int] = set()
    for move in moves:
        write_task(ledger, move)
        number, after = move.row["stage"], move.after
        if after.state.is_final:
            rows[number] = counted(rows[number], after.state, optional=bool(move.row["optional"]))
        elif after.ready_at is not None:
            ledger.opening.lanes.add(graph.lane(number))
        if after.state is State.ERROR:
            if move.row["optional"] or graph.stages[number].optional:
                warnings += 1
            elif not failing:
                failing, error = True, job_error(graph, move)
        if isinstance(move.fact, Done) and after.state is State.DONE:
            _take_result(ledger, graph, rows, move, skip)
    if failing and not job["failing"]:
        rows = yield from cancel_waiting(rows, job["id"], ledger.now)
    close_job(ledger, graph, before, rows, Standing(job, warnings, failing, error, frozenset(skip)))


def _take_result(ledger: Ledger, graph: Graph, rows: dict[int, StageRow], move: Move, skip: set[int]) -> None:
    """What a handler's `Done` asks for: fan-out, facts, publishing, skipping."""
    done, job = move.fact, move.job
    assert isinstance(done, Done)
    for name, items in (done.plan or {}).items():
        number = graph.numbers[name]
        row = rows[number]
        if row.state is State.NEW:
            ledger.opening.plan(graph, job["id"], number, row.total, pieces_of(items))
            rows[number] = row._replace(total=row.total + len(items), remaining=row.remaining + len(items))
    skip.update(graph.numbers[name] for name in done.skip)
    if done.stop:
        skip.update(n for n, row in rows.items() if row.state is State.NEW)
    if job["subject_kind"] is not None:
        subject = {"kind": job["subject_kind"], "id": job["subject_id"]}
        if done.facts or done.publish:
            ledger.subjects.append({**subject, "owner": job["owner"], "facts": json.dumps(done.facts or {})})
        if done.publish:
            ledger.publish.append({**subject, "job_id": job["id"]})


@dataclass(frozen=True, slots=True)
class Standing:
    """The job as it is known so far in this transaction: its row, and what the moves changed."""

    row: Row
    warnings: int
    failing: bool
    error: Json = None
    skip: frozenset[int] = frozenset()


def close_job(
    ledger: Ledger, graph: Graph, before: dict[int, StageRow], rows: dict[int, StageRow], job: Standing
) -> None:
    """Ask `advance` what becomes of the job, and put it into the ledger."""
    cancelled = bool(job.row["cancel_asked"])
    job_id = job.row["id"]
    stopped = bool(job.row["stopped"]) or bool(job.skip)
    stages = tuple(rows[number] for number in range(len(rows)))
    result = advance(graph, stages, halted=cancelled or job.failing, cancelled=cancelled, skip=job.skip)
    for row in result.stages:
        old = before[row.number]
        if row != old:
            ledger.stages.append(_stage_delta(job_id, old, row))
            _say_stage(ledger, job_id, old, row)
    for number in result.opened:
        ledger.opening.open(graph, job.row, number, ledger.now)
    for number in result.skipped:
        ledger.opening.skip(job_id, number, ledger.now)
    status = result.status if result.status.is_final or job.row["status"] != Status.PENDING else Status.PENDING
    now = (status, result.phase, job.failing, job.warnings, stopped)
    was = (
        job.row["status"],
        job.row["phase"],
        bool(job.row["failing"]),
        job.row["warnings"],
        bool(job.row["stopped"]),
    )
    if now != was:
        ledger.jobs.append(_job_row(job, status, result.phase, stopped))
    if status.is_final:
        ledger.ended.append(job_id)
        data = {"warnings": job.warnings} if job.warnings else None
        ledger.say(f"job.{status}", job_id, data if job.error is None else job.error)


def _job_row(job: Standing, status: Status, phase: Status, stopped: bool) -> dict[str, Any]:
    return {
        "id": job.row["id"],
        "status": status.value,
        "phase": phase.value,
        "failing": job.failing,
        "stopped": stopped,
        "warnings": job.warnings,
        "error": None if job.error is None else json.dumps(job.error),
    }


def _stage_delta(job_id: int, was: StageRow, now: StageRow) -> dict[str, Any]:
    added = now.total - was.total
    return {
        "job_id": job_id,
        "number": now.number,
        "state": now.state.value,
        "waits": now.waits,
        "added": added,
        "ended": was.remaining + added - now.remaining,
        "failed": now.failed - was.failed,
        "cancelled": now.cancelled - was.cancelled,
    }


def _say_stage(ledger: Ledger, job_id: int, was: StageRow, now: StageRow) -> None:
    """A stage of one task is told by its task; only what a task's event does not say is an event of its own."""
    if was.state is now.state:
        return
    if now.state is State.READY or now.total != 1 or now.state is State.SKIPPED:
        ledger.say(f"stage.{now.state}", job_id, {"tasks": now.total}, stage=now.number)


def counted(row: StageRow, state: State, *, optional: bool) -> StageRow:
    """The stage after one of its tasks has ended in `state`."""
    failed = row.failed + (state is State.ERROR and not optional)
    cancelled = row.cancelled + (state is State.CANCELLED)
    return row._replace(remaining=row.remaining - 1, failed=failed, cancelled=cancelled)


def cancel_waiting(rows: dict[int, StageRow], job_id: int, now: int) -> Steps[dict[int, StageRow]]:
    """Cancel what has not begun. The counters move with it; running tasks are told by their next beat."""
    gone = yield Ask("cancel_waiting", {"job_id": job_id, "at": now})
    for item in gone:
        row = rows[item["stage"]]
        n = item["count"]
        rows[item["stage"]] = row._replace(remaining=row.remaining - n, cancelled=row.cancelled + n)
    return rows
