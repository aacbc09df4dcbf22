"""The tasks of a job, their attempts, logs and files, page by page; also of a job that was put away."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.job_view import archived, loads, output_of, worker_name
from telecine.engine.queries.view_models import AttemptView, LogLine, OutputFile, Page, T, TaskView, WorkerName
from telecine.errors import BadSpec
from telecine.facts import Json, State
from telecine.graph import Graph
from telecine.store import Ask, Row, Rows, Steps

MAX_ROWS = 500
MAX_DIGITS = 18  # every database holds such a number; `FOREVER` never stands in a cursor
LEVELS = ("debug", "info", "warning", "error")
_START = (-1, -1, -1)


def limited(limit: int) -> int:
    if not 1 <= limit <= MAX_ROWS:
        raise BadSpec(f"limit {limit} is out of range; 1 to {MAX_ROWS} rows are given at once")
    return limit


def cursor_of(values: Iterable[int]) -> str:
    return "-".join(str(value) for value in values)


def after(cursor: str | None, start: Sequence[int]) -> tuple[int, ...]:
    """Where a page begins; a cursor is opaque to everybody else."""
    if cursor is None:
        return tuple(start)
    # No number in a cursor is negative, so the dash parts them.
    parts = cursor.split("-")
    if len(parts) != len(start) or not all(part.isdecimal() and len(part) <= MAX_DIGITS for part in parts):
        raise BadSpec(f"cursor {cursor!r} is not one that this list gave")
    return tuple(int(part) for part in parts)


def page(items: Sequence[T], limit: int, mark: Callable[[T], Iterable[int]]) -> Page[T]:
    """A page of up to `limit` items out of `limit + 1` that were asked for."""
    some = tuple(items[:limit])
    return Page(some, cursor_of(mark(some[-1])) if len(items) > limit else None)


# -- Tasks -------------------------------------------------------------------------------------------


def tasks(
    job_id: int, graph_cache: GraphCache, *, stage: str | None, state: str | None, cursor: str | None, limit: int
) -> Steps[Page[TaskView]]:
    begin = after(cursor, _START[:2])
    graph = yield from graph_of(job_id, graph_cache)
    if graph is None:
        found = yield from _archived_tasks(job_id, stage, state)
        return _cut(found, begin, limited(limit))
    if stage is not None and stage not in graph.numbers:
        raise BadSpec(f"flow {graph.flow!r} has no stage {stage!r}; it has {', '.join(graph.numbers)}")
    rows = yield Ask(
        "view_tasks",
        {
            "job_id": job_id,
            "stage": begin[0],
            "position": begin[1],
            "only_stage": None if stage is None else graph.numbers[stage],
            "only_state": state,
            "wanted": limited(limit) + 1,
        },
    )
    views = [task_view(row, graph) for row in rows]
    return page(views, limit, lambda task: (graph.numbers[task.stage], task.position))


def graph_of(job_id: int, graph_cache: GraphCache) -> Steps[Graph | None]:
    """The graph of a job that has not been put away."""
    rows = yield Ask("job_flow", {"id": job_id})
    if not rows:
        return None
    flow_id = rows[0]["flow_id"]
    return (yield from graph_cache.fetch([flow_id]))[flow_id]


def task_view(row: Row, graph: Graph) -> TaskView:
    stage = graph.stages[row["stage"]]
    same = ("id", "job_id", "position", "lane", "state", "token", "max_attempts", "losses", "releases")
    times = ("ready_at", "claimed_at", "lease_until", "progress", "note", "ended_at")
    return TaskView(
        **{name: row[name] for name in (*same, *times)},
        stage=stage.name,
        title=stage.title or stage.name,
        shown=shown_of(row),
        claim_state=claim_state_of(row),
        optional=bool(row["optional"]) or stage.optional,
        attempt=row["tries"],
        worker=worker_name(row["worker"], row["worker_name"]),
        input=loads(row["input"]),
        result=loads(row["result"]),
        error=loads(row["error"]),
    )


def shown_of(row: Row) -> str:
    """The state as people see it: what is parked comes later, again or for the first time."""
    if row["state"] == State.READY and row["parked"] and row["ready_at"] > row["now"]:
        return "retrying" if row["token"] else "scheduled"
    return str(row["state"])


def claim_state_of(row: Row) -> str:
    """S1's words for the same: a claim knows neither skipping nor cancelling, so these are its two ends."""
    match row["state"]:
        case State.RUNNING:
            return "claimed" if row["lease_until"] > row["now"] else "expired"
        case State.DONE | State.SKIPPED:
            return "completed"
        case State.ERROR | State.CANCELLED:
            return "failed"
        case _:
            return "retrying" if row["error"] is not None else "unclaimed"


# -- Attempts, logs, files ---------------------------------------------------------------------------


def attempts(job_id: int, graph_cache: GraphCache, *, cursor: str | None, limit: int) -> Steps[Page[AttemptView]]:
    begin = after(cursor, _START)
    graph = yield from graph_of(job_id, graph_cache)
    if graph is None:
        document, _ = yield from archived(job_id)
        numbers = _numbers(document)
        some = [attempt_from(item) for item in document["attempts"]]
        return _cut([((numbers[a.stage], a.position, a.token), a) for a in some], begin, limited(limit))
    where = {"job_id": job_id, "stage": begin[0], "position": begin[1], "token": begin[2]}
    rows = yield Ask("view_attempts", {**where, "wanted": limited(limit) + 1})
    return page(
        [attempt_view(row, graph) for row in rows],
        limit,
        lambda a: (graph.numbers[a.stage], a.position, a.token),
    )


def attempts_of_task(task_id: int, graph: Graph) -> Steps[tuple[AttemptView, ...]]:
    rows = yield Ask("view_attempts_of_task", {"id": task_id})
    return tuple(attempt_view(row, graph) for row in rows)


def attempt_view(row: Row, graph: Graph) -> AttemptView:
    same = ("task_id", "position", "token", "generation", "outcome", "state", "ready_at", "silent_ms")
    return AttemptView(
        **{name: row[name] for name in (*same, "started_at", "ended_at")},
        stage=graph.stages[row["stage"]].name,
        attempt=row["try"],
        worker=worker_name(row["worker"], row["worker_name"]),
        error=loads(row["error"]),
    )


def logs(
    job_id: int, graph_cache: GraphCache, *, after_id: int, kind: str | None, level: str | None, limit: int
) -> Steps[tuple[LogLine, ...]]:
    """Lines and steps after the one with id `after_id`, at or above `level`."""
    graph = yield from graph_of(job_id, graph_cache)
    levels = levels_from(level)
    if graph is None:
        document, _ = yield from archived(job_id)
        lines = (LogLine(**line) for line in document["logs"])
        kept = (line for line in lines if line.id > after_id and (kind is None or line.kind == kind))
        return tuple(line for line in kept if levels is None or line.level in levels)[: limited(limit)]
    where = {"job_id": job_id, "after": after_id, "kind": kind, "levels": levels}
    rows = yield Ask("view_logs", {**where, "wanted": limited(limit)})
    return tuple(log_line(row, graph) for row in rows)


def levels_from(level: str | None) -> list[str] | None:
    """`warning` means warnings and errors."""
    if level is None:
        return None
    if level not in LEVELS:
        raise BadSpec(f"unknown log level {level!r}: use one of {', '.join(LEVELS)}")
    return list(LEVELS[LEVELS.index(level) :])


def log_line(row: Row, graph: Graph) -> LogLine:
    same = ("id", "task_id", "position", "token", "at", "kind", "level", "message")
    return LogLine(**{name: row[name] for name in same}, stage=graph.stages[row["stage"]].name, data=loads(row["data"]))


def outputs(job_id: int, graph_cache: GraphCache, *, cursor: str | None, limit: int) -> Steps[Page[OutputFile]]:
    """All files that a job recorded, in the order in which it did."""
    begin = after(cursor, [0])
    graph = yield from graph_of(job_id, graph_cache)
    if graph is None:
        document, _ = yield from archived(job_id)
        stored = [((item["id"],), OutputFile(**item["file"])) for item in document["artifacts"]]
        return _cut(stored, begin, limited(limit))
    rows: Rows = yield Ask("view_outputs", {"job_id": job_id, "after": begin[0], "wanted": limited(limit) + 1})
    files = tuple(output_of(row, graph) for row in rows[:limit])
    return Page(files, cursor_of([rows[limit - 1]["id"]]) if len(rows) > limit else None)


# -- Out of the archive ------------------------------------------------------------------------------


Place = tuple[int, ...]


def _archived_tasks(job_id: int, stage: str | None, state: str | None) -> Steps[list[tuple[Place, TaskView]]]:
    document, _ = yield from archived(job_id)
    numbers = _numbers(document)
    some = [task_from(item) for item in document["tasks"]]
    wanted = [task for task in some if (stage is None or task.stage == stage) and state in (None, task.state)]
    return [((numbers[task.stage], task.position), task) for task in wanted]


def _numbers(document: dict[str, Any]) -> dict[str, int]:
    return {stage["name"]: number for number, stage in enumerate(document["job"]["stages"])}


def _cut(items: Iterable[tuple[Place, T]], begin: Place, limit: int) -> Page[T]:
    """The page that the database would have given."""
    rest = [(place, item) for place, item in items if place > begin]
    some = rest[:limit]
    return Page(tuple(item for _, item in some), cursor_of(some[-1][0]) if len(rest) > limit else None)


def _name_from(item: Json) -> WorkerName | None:
    return None if item is None else WorkerName(**item)


def task_from(item: Mapping[str, Any]) -> TaskView:
    return TaskView(**{**item, "worker": _name_from(item["worker"]), "waiting": None, "attempts": ()})


def attempt_from(item: Mapping[str, Any]) -> AttemptView:
    return AttemptView(**{**item, "worker": _name_from(item["worker"])})
