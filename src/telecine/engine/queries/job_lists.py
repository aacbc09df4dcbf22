"""Lists of jobs by what people ask for, newest first, page by page.

The order is that of the ids, which are given in the order of submits (but for a moment). Only a list of jobs that
ended in one way, without an owner, a subject or times, goes by their end: the latest failure first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.job_view import job_progress, loads, stage_rows, subject_of
from telecine.engine.queries.timeline import after, cursor_of, limited, task_view
from telecine.engine.queries.view_models import JobLine, Page, Subject, TaskView
from telecine.errors import BadSpec
from telecine.facts import MINUTE, Instant, Status
from telecine.graph import Graph
from telecine.store import Ask, Row, Rows, Steps

FOREVER = 2**62
# How far ids and times may be out of step: a stock of ids, a slow transaction.
SLACK = MINUTE
OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """`status` is one of the nine, or `open`: not ended yet. Times bound the submit: from `since`, before `until`."""

    status: str | None = None
    flow: str | None = None
    owner: str | None = None
    subject: Subject | None = None
    since: Instant | None = None
    until: Instant | None = None


def jobs(
    wanted: JobFilter, graph_cache: GraphCache, *, cursor: str | None = None, limit: int = 100
) -> Steps[Page[JobLine]]:
    """One page of the jobs that pass the filter."""
    if wanted.status is not None and wanted.status != OPEN and wanted.status not in set(Status):
        raise BadSpec(f"status {wanted.status!r} is unknown; use open, {', '.join(Status)}")
    ended, below = after(cursor, (FOREVER, FOREVER))
    above = 0
    if wanted.since is not None:
        above = yield from _id_at(wanted.since - SLACK)
    if wanted.until is not None:
        below = min(below, (yield from _id_at(wanted.until + SLACK)))
    kind, subject_id = wanted.subject or (None, None)
    params = {
        "status": None if wanted.status == OPEN else wanted.status,
        "open": wanted.status == OPEN,
        "flow": wanted.flow,
        "owner": wanted.owner,
        "subject_kind": kind,
        "subject_id": subject_id,
        "since": wanted.since or 0,
        "until": FOREVER if wanted.until is None else wanted.until,
        "above": above,
        "below": below,
        "ended": ended,
        "wanted": limited(limit) + 1,
    }
    found = yield Ask(way_in(wanted), params)
    shown = yield from lines([row["id"] for row in found[:limit]], graph_cache)
    last = found[limit - 1] if len(found) > limit else None
    return Page(shown, None if last is None else cursor_of((last["ended_at"] or 0, last["id"])))


def way_in(wanted: JobFilter) -> str:
    """The statement whose index leaves the least to look through."""
    timed = wanted.since is not None or wanted.until is not None
    ended = wanted.status in (Status.COMPLETED, Status.FAILED, Status.CANCELLED)
    if wanted.subject is not None:
        return "jobs_of_subject"
    if wanted.owner:  # where nobody is named there is one owner, and no index
        return "jobs_of_owner"
    if wanted.status is not None and not ended:
        return "jobs_open"
    if ended and not timed:
        return "jobs_ended"
    return "jobs_of_flow" if wanted.flow is not None else "jobs_all"


def _id_at(at: Instant) -> Steps[int]:
    """The first id that was given at or after `at`, found by halving."""
    [edges] = yield Ask("job_id_edges", {})
    if edges["first"] is None:
        return 0
    low, high = edges["first"], edges["last"] + 1
    while low < high:
        middle = (low + high) // 2
        rows = yield Ask("job_id_near", {"id": middle})
        if rows and rows[0]["created_at"] < at:
            low = rows[0]["id"] + 1
        else:
            high = middle
    return int(low)


def lines(ids: list[int], graph_cache: GraphCache) -> Steps[tuple[JobLine, ...]]:
    """These jobs as lists show them, in this order; those that were put away are left out."""
    if not ids:
        return ()
    # In this order: what is claimed between the two looks counts for nothing then, rather than twice.
    running = yield Ask("view_running", {})
    rows = yield Ask("view_jobs", {"ids": ids})
    graphs = yield from graph_cache.fetch(row["flow_id"] for row in rows)
    by_id = {row["id"]: row for row in rows}
    moving = _moving(running)
    # A job may have been put away between the two looks.
    return tuple(_line(by_id[id_], graphs[by_id[id_]["flow_id"]], moving.get(id_, {})) for id_ in ids if id_ in by_id)


def _moving(running: Rows) -> dict[int, dict[int, float]]:
    """How far running tasks are, by job and stage."""
    found: dict[int, dict[int, float]] = {}
    for row in running:
        stages = found.setdefault(row["job_id"], {})
        stages[row["stage"]] = stages.get(row["stage"], 0.0) + (row["progress"] or 0.0)
    return found


def _line(row: Row, graph: Graph, running: Mapping[int, float]) -> JobLine:
    rows = stage_rows(loads(row["stages"], []))
    moved = dict(running)
    for item in loads(row["held"], []):
        moved[item["stage"]] = moved.get(item["stage"], 0.0) + item["progress"]
    same = ("id", "flow", "owner", "status", "priority", "version", "generation", "run_at")
    return JobLine(
        **{name: row[name] for name in (*same, "created_at", "started_at", "ended_at")},
        subject=subject_of(row),
        progress=job_progress(graph, rows, moved, row["status"]),
        cancel_asked=bool(row["cancel_asked"]),
        warning_count=row["warnings"],
        error=loads(row["error"]),
    )


def failed_tasks(
    graph_cache: GraphCache, *, flow: str | None = None, cursor: str | None = None, limit: int = 100
) -> Steps[Page[TaskView]]:
    """The dead letters: what failed its job, the latest first. A page holds all of up to `limit` jobs."""
    ended, below = after(cursor, (FOREVER, FOREVER))
    where = {"ended": ended, "below": below, "flow": flow, "wanted": limited(limit)}
    rows = yield Ask("view_failed", where)
    graphs = yield from graph_cache.fetch(row["flow_id"] for row in rows)
    items = tuple(task_view(row, graphs[row["flow_id"]]) for row in rows)
    full = len({row["job_id"] for row in rows}) >= limit
    return Page(items, cursor_of((rows[-1]["job_ended_at"], rows[-1]["job_id"])) if full else None)
