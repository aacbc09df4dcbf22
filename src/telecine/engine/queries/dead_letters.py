"""Tasks that need a person: those that failed their job, and those that nobody takes."""

from __future__ import annotations

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.job_lists import FOREVER, failed_tasks
from telecine.engine.queries.timeline import after, cursor_of, limited, task_view
from telecine.engine.queries.view_models import Page, TaskView
from telecine.errors import BadSpec
from telecine.facts import Millis
from telecine.store import Ask, Rows, Steps

# How many rows of the index of the claim one page looks at: a backlog of a million is gone through page by page.
MAX_WALKED = 5_000
_CURSOR_PARTS = 3


def failed(
    graph_cache: GraphCache, *, owner: str | None, flow: str | None = None, cursor: str | None = None, limit: int = 100
) -> Steps[Page[TaskView]]:
    """What failed its job: the latest first, or, for one owner, of the newest job first. A page holds all such tasks
    of up to `limit` jobs."""
    if owner is None:
        return (yield from failed_tasks(graph_cache, flow=flow, cursor=cursor, limit=limit))
    [below] = after(cursor, [FOREVER])
    where = {"owner": owner, "flow": flow, "below": below, "wanted": limited(limit)}
    rows = yield Ask("failed_of_owner", where)
    items = yield from tasks_by_id([row["id"] for row in rows], graph_cache)
    full = len({row["job_id"] for row in rows}) >= limit
    return Page(items, cursor_of([rows[-1]["job_id"]]) if full else None)


def stale(
    graph_cache: GraphCache,
    age: Millis,
    *,
    owner: str | None,
    flow: str | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Steps[Page[TaskView]]:
    """What can be claimed and was not for so long, lane by lane in the order of the queue.

    A page may hold less than it could, even nothing, and still name a next one: then the queue is long.
    """
    lane, rank, task_id = _place(cursor)
    where = {"lane": lane, "rank": rank, "after": task_id, "age": age, "owner": owner, "flow": flow}
    rows = yield Ask("stale_tasks", {**where, "most": MAX_WALKED, "wanted": limited(limit) + 1})
    found = [row for row in rows if row["stale"]]
    items = yield from tasks_by_id([row["id"] for row in found[:limit]], graph_cache)
    return Page(items, _next(rows, found, limit))


def _next(rows: Rows, found: Rows, limit: int) -> str | None:
    if len(found) > limit:
        last = found[limit - 1]
    elif rows and rows[-1]["last"] and rows[-1]["walked"] >= MAX_WALKED:
        last = rows[-1]
    else:
        return None
    return f"{last['lane'].encode().hex()}.{last['rank']}.{last['id']}"


def _place(cursor: str | None) -> tuple[str, int, int]:
    if cursor is None:
        return "", -FOREVER, 0
    parts = cursor.split(".")
    try:
        if len(parts) != _CURSOR_PARTS:
            raise ValueError
        lane, rank, task_id = bytes.fromhex(parts[0]).decode(), int(parts[1]), int(parts[2])
    except ValueError:
        raise BadSpec(f"cursor {cursor!r} is not one that this list gave") from None
    if "\0" in lane or abs(rank) > FOREVER or abs(task_id) > FOREVER:
        raise BadSpec(f"cursor {cursor!r} is not one that this list gave")
    return lane, rank, task_id


def tasks_by_id(ids: list[int], graph_cache: GraphCache) -> Steps[tuple[TaskView, ...]]:
    """These tasks in this order; those that are gone are left out."""
    if not ids:
        return ()
    rows = yield Ask("tasks_by_id", {"ids": ids})
    graphs = yield from graph_cache.fetch(row["flow_id"] for row in rows)
    views = {row["id"]: task_view(row, graphs[row["flow_id"]]) for row in rows}
    return tuple(views[task_id] for task_id in ids if task_id in views)
