"""The rows that one transaction writes: tasks, their history, stages, jobs and events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from telecine.engine.jobs.ready_tasks import Opening, add_tasks, open_stages
from telecine.facts import ERROR_CHARS, Done, Fact, Json, State
from telecine.graph import Graph
from telecine.json_text import dumps
from telecine.lifecycle import After
from telecine.store import Ask, Row, Steps, Write


class Move(NamedTuple):
    """One accepted word: the rows of the task and its job as they were, and what the rules say."""

    row: Row
    job: Row
    fact: Fact
    after: After
    digest: str


@dataclass(slots=True)
class Ledger:
    """What is to be written, gathered while words and jobs are looked at one by one."""

    now: int
    moves: list[dict[str, Any]] = field(default_factory=list)
    stages: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    subjects: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    publish: list[dict[str, Any]] = field(default_factory=list)
    opening: Opening = field(default_factory=Opening)
    ended: list[int] = field(default_factory=list)

    def say(self, kind: str, job_id: int, data: str | None = None, stage: int | None = None) -> None:
        self.events.append({"kind": kind, "job_id": job_id, "stage": stage, "data": data})

    def learn(self, subject: tuple[str, str], owner: str, facts: dict[str, Json]) -> None:
        """Facts about a subject; those of a later word in the same batch win."""
        self.subjects.setdefault(subject, {"owner": owner, "facts": {}})["facts"].update(facts)

    def write(self) -> Steps[None]:
        groups = {"moves": self.moves, "stages": self.stages, "jobs": self.jobs, "events": self.events}
        yield Write("settle", groups, {"at": self.now})
        if self.subjects:
            yield Write("subject_put", {"subjects": [_subject(*one) for one in sorted(self.subjects.items())]})
        for flip in self.publish:
            yield Ask("publish", flip)
        yield from open_stages(self.opening)
        yield from add_tasks(self.opening)


def is_required(graph: Graph, move: Move) -> bool:
    """Does an error of this task fail its job?"""
    return not (move.row["optional"] or graph.stages[move.row["stage"]].optional)


def job_error(graph: Graph, move: Move) -> dict[str, Json]:
    code, message = move.after.error or ("failed", "")
    stage = graph.stages[move.row["stage"]].name
    return {"code": code, "message": message[:ERROR_CHARS], "stage": stage, "attempt": move.row["tries"]}


def _subject(who: tuple[str, str], known: dict[str, Any]) -> dict[str, Any]:
    return {"kind": who[0], "id": who[1], "owner": known["owner"], "facts": dumps(known["facts"])}


_KINDS = {"lost": "task.lost", "released": "task.released"}


def write_task(ledger: Ledger, move: Move) -> None:
    """The task as it is afterwards; its history row and its event are taken from the same values."""
    row, after = move.row, move.after
    error = data = silent = None
    if after.error is not None:
        error = dumps({"code": after.error[0], "message": after.error[1][:ERROR_CHARS]})
    if after.state is State.DONE:
        kind = "task.done"
    else:
        kind = f"task.{after.state}" if after.ready_at is None else _KINDS.get(after.outcome, "task.retrying")
        silent = max(0, ledger.now - row["heard_at"]) if after.outcome == "lost" else None
        data = dumps(_told(row, after, silent))
    result = move.fact.result if isinstance(move.fact, Done) else None
    ledger.moves.append(
        {
            "id": row["id"],
            "token": row["token"],
            "state": after.state.value,
            "ready_at": after.ready_at,
            "tries": after.tries,
            "losses": after.losses,
            "releases": after.releases,
            "result": None if result is None else dumps(result),
            "error": error,
            "outcome": after.outcome,
            "digest": move.digest,
            "generation": move.job["generation"],
            "kind": kind,
            "data": data,
            "silent_ms": silent,
        }
    )


def _told(row: Row, after: After, silent: int | None) -> dict[str, Json]:
    """What an event says about a task that did not simply succeed."""
    told: dict[str, Json] = {"outcome": after.outcome, "attempt": row["tries"], "of": row["max_attempts"]}
    if after.error is not None:
        told |= {"code": after.error[0], "message": after.error[1][:ERROR_CHARS]}
    if after.ready_at is not None:
        told["ready_at"] = after.ready_at
    if silent is not None:
        told["silent_ms"] = silent
    return told
