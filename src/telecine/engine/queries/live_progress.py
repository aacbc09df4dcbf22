"""How far running jobs are, and how one owner's jobs stand: what live readers are told between two events."""

from __future__ import annotations

from dataclasses import dataclass

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.job_lists import lines
from telecine.engine.queries.view_models import JobLine
from telecine.store import Ask, Steps

MAX_MOVING = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """A job of which something runs now. `stage` and `note` are those of the task that said something last."""

    job: JobLine
    stage: str
    note: str | None
    running: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerCounts:
    """Jobs by how they stand, each count exact up to the newest 10,000; `lately` completed in the last minute."""

    pending: int
    active: int
    completed: int
    failed: int
    lately: int


def moving(graph_cache: GraphCache, *, job_id: int | None = None) -> Steps[tuple[Moving, ...]]:
    """The jobs that somebody works on, or one of them."""
    running = yield Ask("view_running", {})
    tasks = [row for row in running if job_id is None or row["job_id"] == job_id]
    ids = sorted({row["job_id"] for row in tasks})[-MAX_MOVING:]
    found: list[Moving] = []
    for line in (yield from lines(ids, graph_cache)):
        mine = [row for row in tasks if row["job_id"] == line.id]
        said = [row for row in mine if row["note"]] or mine
        found.append(Moving(job=line, stage=said[-1]["stage_name"], note=said[-1]["note"], running=len(mine)))
    return tuple(found)


def standing(owner: str, most: int) -> Steps[OwnerCounts]:
    [row] = yield Ask("live_owner_stats", {"owner": owner, "most": most})
    return OwnerCounts(**{name: row[name] for name in OwnerCounts.__slots__})


def valid_keys(ids: list[str]) -> Steps[set[str]]:
    """Those of these keys that are neither revoked nor expired."""
    rows = yield Ask("live_keys", {"ids": ids})
    return {row["id"] for row in rows}
