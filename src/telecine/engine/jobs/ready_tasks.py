"""Tasks that come to life: stages that open, positions that a plan adds, and where they stand in the queue."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from telecine.facts import HOUR, Instant, Json, Millis, Piece, State
from telecine.graph import Graph
from telecine.json_text import dumps
from telecine.store import Row, Steps, Write


def boost(priority: int, offset: int) -> Millis:
    """How far forward in the queue a priority carries: an hour per step, so nothing starves for ever."""
    return max(0, min(10, priority + offset)) * HOUR


@dataclass(slots=True)
class Opening:
    """What one transaction opens. Planned tasks are written as they end up: ready at once, or waiting."""

    lanes: set[str] = field(default_factory=set)
    stages: list[dict[str, Any]] = field(default_factory=list)
    added: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=dict)

    def plan(  # where: job, stage, first position
        self, graph: Graph, where: tuple[int, int, int], pieces: Sequence[Piece], state: State, now: Instant
    ) -> None:
        """Add positions to a fanned-out stage, new, or cancelled from the start."""
        job_id, number, first = where
        stage = graph.stages[number]
        tasks = self.added.setdefault((job_id, number), [])
        for position, piece in enumerate(pieces, first):
            tasks.append(
                {
                    "job_id": job_id,
                    "stage": number,
                    "position": position,
                    "lane": graph.lane(number, piece.labels),
                    "state": state.value,
                    "parked": False,
                    "optional": piece.optional,
                    "ready_at": None,
                    "rank": None,
                    "max_attempts": stage.policy.max_attempts,
                    "stall_ms": stage.policy.stall,
                    "limit_ms": stage.policy.limit,
                    "patience_ms": piece.patience,
                    "ended_at": now if state.is_final else None,
                    "input": None if piece.input is None else dumps(piece.input),
                }
            )

    def open(self, graph: Graph, job: Row, number: int, now: Instant) -> None:
        """Let the stage's tasks be claimed: rank = ready time + position × cost − priority × 1 h."""
        stage = graph.stages[number]
        ready_at = max(now, job["run_at"] or 0)
        rank = ready_at - boost(job["priority"], stage.priority_offset)
        job_id = job["id"]
        self.lanes.add(graph.lane(number))
        if (job_id, number) in self.added:
            for task in self.added[job_id, number]:
                task.update(
                    state=State.READY.value,
                    ready_at=ready_at,
                    parked=ready_at > now,
                    rank=rank + task["position"] * stage.cost,
                )
                self.lanes.add(task["lane"])
        self.stages.append(
            {
                "job_id": job_id,
                "number": number,
                "state": State.READY.value,
                "ready_at": ready_at,
                "parked": ready_at > now,
                "ended_at": None,
                "rank": rank,
                "cost": stage.cost,
            }
        )

    def skip(self, job_id: int, number: int, now: Instant) -> None:
        for task in self.added.get((job_id, number), ()):
            task.update(state=State.SKIPPED.value, ended_at=now)
        self.stages.append(
            {
                "job_id": job_id,
                "number": number,
                "state": State.SKIPPED.value,
                "ready_at": None,
                "parked": False,
                "ended_at": now,
                "rank": None,
                "cost": None,
            }
        )


def open_stages(opening: Opening) -> Steps[None]:
    if opening.stages:
        yield Write("open_stages", {"stages": opening.stages})


def add_tasks(opening: Opening) -> Steps[None]:
    tasks = [task for some in opening.added.values() for task in some]
    if tasks:
        yield Write("task_add", {"tasks": tasks})


def pieces_of(items: Iterable[Json]) -> list[Piece]:
    return [item if isinstance(item, Piece) else Piece(input=item) for item in items]
