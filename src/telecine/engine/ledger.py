"""The rows that one transaction writes: tasks, their history, stages, jobs and events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from telecine.engine.opening import Opening, add_tasks, open_stages
from telecine.facts import ERROR_CHARS, Done, Fact, Json
from telecine.graph import Graph
from telecine.lifecycle import After
from telecine.store import Ask, Row, Steps, Write


@dataclass(frozen=True, slots=True)
class Move:
    """One accepted word: the task's row as it was, and what the rules say about it."""

    row: Row
    fact: Fact
    after: After
    digest: str


@dataclass(slots=True)
class Ledger:
    """The rows that one transaction writes, gathered while jobs are looked at one by one."""

    now: int
    tasks: list[dict[str, Any]] = field(default_factory=list)
    attempts: list[dict[str, Any]] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    subjects: list[dict[str, Any]] = field(default_factory=list)
    publish: list[dict[str, Any]] = field(default_factory=list)
    opening: Opening = field(default_factory=Opening)
    ended: list[int] = field(default_factory=list)

    def say(self, kind: str, job_id: int, data: Json = None, **where: Any) -> None:
        place = {"task_id": None, "stage": None, "token": None, "worker": None, **where}
        text = None if data is None else json.dumps(data)
        self.events.append({"at": self.now, "kind": kind, "job_id": job_id, "data": text, **place})

    def write(self) -> Steps[None]:
        groups = {
            "tasks": self.tasks,
            "attempts": self.attempts,
            "stages": self.stages,
            "jobs": self.jobs,
            "events": self.events,
        }
        yield Write("settle", groups)
        if self.subjects:
            yield Write("subject_put", {"subjects": self.subjects})
        for flip in self.publish:
            yield Ask("publish", flip)
        yield from open_stages(self.opening)
        yield from add_tasks(self.opening)


def job_error(graph: Graph, move: Move) -> dict[str, Json]:
    code, message = move.after.error or ("failed", "")
    stage = graph.stages[move.row["stage"]].name
    return {"code": code, "message": message[:ERROR_CHARS], "stage": stage, "attempt": move.row["tries"]}


_KINDS = {"lost": "task.lost", "released": "task.released"}


def write_task(ledger: Ledger, move: Move) -> None:
    """The task's new row, its history row, and its event."""
    row, after, now = move.row, move.after, ledger.now
    error = None
    if after.error is not None:
        error = {"code": after.error[0], "message": after.error[1][:ERROR_CHARS]}
    text = None if error is None else json.dumps(error)
    final = after.state.is_final
    result = move.fact.result if isinstance(move.fact, Done) else None
    ledger.tasks.append(
        {
            "id": row["id"],
            "state": after.state.value,
            "parked": after.ready_at is not None and after.ready_at > now,
            "ready_at": after.ready_at,
            "tries": after.tries,
            "losses": after.losses,
            "releases": after.releases,
            "result": None if result is None else json.dumps(result),
            "error": text,
            "ended_at": now if final else None,
        }
    )
    silent = now - row["lease_until"] if after.outcome == "lost" else None
    ledger.attempts.append(
        {
            "task_id": row["id"],
            "token": row["token"],
            "job_id": row["job_id"],
            "generation": row["generation"],
            "try": row["tries"],
            "worker": row["worker"],
            "outcome": after.outcome,
            "digest": move.digest,
            "state": after.state.value,
            "ready_at": after.ready_at,
            "error": text,
            "silent_ms": silent,
            "started_at": row["claimed_at"],
            "ended_at": now,
        }
    )
    kind = f"task.{after.state}" if final else _KINDS.get(after.outcome, "task.retrying")
    data: dict[str, Json] | None = None
    if error is not None or not final:
        data = {
            "error": error,
            "ready_at": after.ready_at,
            "attempt": row["tries"],
            "of": row["max_attempts"],
        }
        if silent is not None:
            data["silent_ms"] = silent
    where = {"task_id": row["id"], "stage": row["stage"], "token": row["token"], "worker": row["worker"]}
    ledger.say(kind, row["job_id"], data, **where)
