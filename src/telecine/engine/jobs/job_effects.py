"""What follows from settled tasks: counters, opened stages, the job's status. Runs under the job's row lock."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from telecine.engine.jobs.ledger import Ledger, Move, is_required, job_error, write_task
from telecine.engine.jobs.ready_tasks import pieces_of
from telecine.facts import STATES, Done, Json, Piece, State, Status
from telecine.graph import Graph, StageRow, advance
from telecine.json_text import dumps
from telecine.store import Ask, Row, Steps

_STAGE = ("job_id", "number", "state", "waits", "total", "remaining", "failed", "cancelled")
Stages = tuple[StageRow, ...]


@dataclass(frozen=True, slots=True)
class Ripple:
    lanes: frozenset[str] = frozenset()
    ended: tuple[int, ...] = ()


def ripple(moves: Sequence[Move], graphs: Mapping[int, Graph]) -> Steps[Ripple]:
    """Write the moves and all that follows from them."""
    ledger = Ledger(moves[0].job["now"])
    by_job: dict[int, list[Move]] = {}
    for move in moves:
        by_job.setdefault(move.row["job_id"], []).append(move)
    stages = stages_by_job((yield Ask("stages_of", {"ids": sorted(by_job)})))
    for job_id, some in by_job.items():
        graph, before = graphs[some[0].job["flow_id"]], stages[job_id]
        change = JobChange(some[0].job, list(before))
        for move in some:
            change.take(ledger, graph, move)
        change.follow(ledger, graph)
        if change.failing and not change.job["failing"]:
            yield from cancel_waiting(change.rows, job_id, ledger.now)
        close_job(ledger, graph, before, change)
    yield from ledger.write()
    return Ripple(frozenset(ledger.opening.lanes), tuple(ledger.ended))


def stages_by_job(rows: Iterable[Row]) -> dict[int, Stages]:
    """Stage rows by job, in the order of their numbers."""
    found: dict[int, list[StageRow]] = {}
    for row in rows:
        job_id, number, state, *counts = (row[name] for name in _STAGE)
        found.setdefault(job_id, []).append(StageRow(number, STATES[state], *counts))
    return {job_id: tuple(some) for job_id, some in found.items()}


class JobChange:
    """A job while its words are counted in: its row, its stages, and what else became of it."""

    def __init__(self, job: Row, rows: list[StageRow]) -> None:
        self.job, self.rows = job, rows
        self.warnings: int = job["warnings"]
        self.failing = bool(job["failing"])
        self.stopped = bool(job["stopped"])
        self.error: Json = None
        self.skip: set[int] = set()
        self.results: list[Done] = []

    def take(self, ledger: Ledger, graph: Graph, move: Move) -> None:
        write_task(ledger, move)
        number, state = move.row["stage"], move.after.state
        if move.after.ready_at is not None:
            ledger.opening.lanes.add(graph.lanes[number])
            return
        self.rows[number] = counted(self.rows[number], state, optional=bool(move.row["optional"]))
        if state is State.DONE:
            if isinstance(move.fact, Done) and move.digest != "done":
                self.results.append(move.fact)
        elif state is State.ERROR:
            if not is_required(graph, move):
                self.warnings += 1
            elif not self.failing:
                self.failing, self.error = True, job_error(graph, move)

    def follow(self, ledger: Ledger, graph: Graph) -> None:
        """Only once all words are counted in is it known whether the job goes on."""
        for done in self.results:
            self._take_result(ledger, graph, done)

    def _plan(self, ledger: Ledger, graph: Graph, number: int, pieces: list[Piece]) -> None:
        """Of a job that fails, planned tasks are cancelled from the start: a person's retry finds them."""
        row, n = self.rows[number], len(pieces)
        if row.state is State.NEW:
            state = State.CANCELLED if self.failing else State.NEW
            ledger.opening.plan(graph, (self.job["id"], number, row.total), pieces, state, ledger.now)
            lost = n if self.failing else 0
            self.rows[number] = row._replace(
                total=row.total + n, remaining=row.remaining + n - lost, cancelled=row.cancelled + lost
            )

    def _take_result(self, ledger: Ledger, graph: Graph, done: Done) -> None:
        """What a handler's `Done` asks for: fan-out, skipping, facts, publishing."""
        job = self.job
        for name, items in (done.plan or {}).items():
            self._plan(ledger, graph, graph.numbers[name], pieces_of(items))
        self.skip.update(graph.numbers[name] for name in done.skip)
        if done.stop:
            self.stopped = True
            self.skip.update(row.number for row in self.rows if row.state is State.NEW)
        if job["subject_kind"] is not None and (done.facts or done.publish):
            subject = {"kind": job["subject_kind"], "id": job["subject_id"]}
            ledger.learn((job["subject_kind"], job["subject_id"]), job["owner"], done.facts or {})
            if done.publish:
                named = {"carry": list(done.carry), "leave": list(done.leave)}
                ledger.publish.append({**subject, "job_id": job["id"], **named})


def close_job(ledger: Ledger, graph: Graph, before: Stages, change: JobChange) -> None:
    """Ask what becomes of the job, and put it into the ledger."""
    job, job_id = change.job, change.job["id"]
    was = JobStanding(job["status"], job["phase"], bool(job["failing"]), bool(job["stopped"]), job["warnings"])
    now = was._replace(failing=change.failing, stopped=change.stopped, warnings=change.warnings)
    flags = Flags(bool(job["cancel_asked"]), frozenset(change.skip))
    effect = effect_of(graph, (before, tuple(change.rows)), (was, now), flags)
    for stage in effect.stages:
        ledger.stages.append({"job_id": job_id, **stage})
    for kind, number, told in effect.said:
        ledger.say(kind, job_id, told, number)
    for number in effect.opened:
        ledger.opening.open(graph, job, number, ledger.now)
    for number in effect.skipped:
        ledger.opening.skip(job_id, number, ledger.now)
    if effect.job is not None:
        error = None if change.error is None else dumps(change.error)
        ledger.jobs.append({"id": job_id, **effect.job, "error": error})
    if effect.ended is not None:
        ledger.ended.append(job_id)
        warned = json.dumps({"warnings": now.warnings}) if now.warnings else None
        ledger.say(f"job.{effect.ended}", job_id, warned if change.error is None else dumps(change.error))


class JobStanding(NamedTuple):
    """The columns of a job that its tasks can move."""

    status: str
    phase: str
    failing: bool
    stopped: bool
    warnings: int


class Flags(NamedTuple):
    cancelled: bool = False
    skip: frozenset[int] = frozenset()


class Effect(NamedTuple):
    """What becomes of a job, free of ids and times, so that a thousand alike jobs share one answer."""

    stages: tuple[dict[str, Any], ...]
    job: dict[str, Any] | None
    said: tuple[tuple[str, int, str], ...]
    opened: tuple[int, ...]
    skipped: tuple[int, ...]
    ended: Status | None


@lru_cache(maxsize=4096)
def effect_of(graph: Graph, rows: tuple[Stages, Stages], job: tuple[JobStanding, JobStanding], flags: Flags) -> Effect:
    """Pure: the rows to write for a job whose stages went from `rows[0]` to `rows[1]`, tasks counted in."""
    (before, counted_in), (was, now) = rows, job
    halted = flags.cancelled or now.failing
    result = advance(graph, counted_in, halted=halted, cancelled=flags.cancelled, skip=flags.skip)
    changed = [(old, new) for old, new in zip(before, result.stages, strict=True) if old != new]
    started = result.status.is_final or was.status != Status.PENDING
    now = now._replace(status=result.status.value if started else was.status, phase=result.phase.value)
    return Effect(
        stages=tuple(_stage_delta(old, new) for old, new in changed),
        job=None if now == was else now._asdict(),
        said=tuple(told for old, new in changed for told in _told(old, new)),
        opened=result.opened,
        skipped=result.skipped,
        ended=result.status if result.status.is_final else None,
    )


def _stage_delta(was: StageRow, now: StageRow) -> dict[str, Any]:
    added = now.total - was.total
    return {
        "number": now.number,
        "state": now.state.value,
        "waits": now.waits,
        "added": added,
        "ended": was.remaining + added - now.remaining,
        "failed": now.failed - was.failed,
        "cancelled": now.cancelled - was.cancelled,
    }


def _told(was: StageRow, now: StageRow) -> list[tuple[str, int, str]]:
    """A stage of one task is told by its task; only what a task's event does not say is an event of its own."""
    if was.state is now.state or (now.total == 1 and now.state not in (State.READY, State.SKIPPED)):
        return []
    return [(f"stage.{now.state}", now.number, json.dumps({"tasks": now.total}))]


def counted(row: StageRow, state: State, *, optional: bool) -> StageRow:
    """The stage after one of its tasks has ended in `state`."""
    number, now, waits, total, remaining, failed, cancelled = row
    failed += state is State.ERROR and not optional
    return StageRow(number, now, waits, total, remaining - 1, failed, cancelled + (state is State.CANCELLED))


def cancel_waiting(rows: list[StageRow], job_id: int, now: int) -> Steps[None]:
    """Cancel what has not begun. The counters move with it; running tasks are told by their next beat."""
    gone = yield Ask("cancel_waiting", {"job_id": job_id, "at": now})
    for item in gone:
        row, n = rows[item["stage"]], item["count"]
        rows[item["stage"]] = row._replace(remaining=row.remaining - n, cancelled=row.cancelled + n)
