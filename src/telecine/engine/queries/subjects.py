"""Subjects as people see them: facts, versions, and the jobs that work for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.job_lists import JobFilter, jobs, lines
from telecine.engine.queries.job_view import loads
from telecine.engine.queries.timeline import limited
from telecine.engine.queries.view_models import JobLine, Page, SubjectLine, SubjectView, VersionView
from telecine.errors import BadSpec, NotFound
from telecine.json_text import dumps, is_storable
from telecine.store import Ask, Steps, Write

FOREVER = 2**62
MAX_JOBS = 20
MAX_VERSIONS = 100


def subject(kind: str, subject_id: str, graph_cache: GraphCache) -> Steps[SubjectView]:
    """One subject with its newest versions and jobs; `NotFound` if nobody ever submitted anything for it."""
    rows = yield Ask("subject_show", {"kind": kind, "id": subject_id, "most": MAX_VERSIONS})
    if not rows:
        raise NotFound(f"there is no {kind} {subject_id!r}")
    wanted = JobFilter(subject=(kind, subject_id))
    found = (yield from jobs(wanted, graph_cache, limit=MAX_JOBS)).items
    versions = tuple(_version(item, rows[0]["current_version"]) for item in loads(rows[0]["versions"], []))
    by_id = {line.id: line for line in found}
    if rows[0]["open_id"] not in by_id:
        by_id |= {line.id: line for line in (yield from lines(_ids(rows[0]["open_id"]), graph_cache))}
    newest = {**rows[0], "job_id": found[0].id if found else None}
    return SubjectView(**_plain(newest, by_id), versions=versions, jobs=found)


def subjects(
    kind: str, graph_cache: GraphCache, *, owner: str | None = None, cursor: str | None = None, limit: int = 100
) -> Steps[Page[SubjectLine]]:
    """A page of the subjects of one kind, those that were first heard of last in front."""
    before, below = _place(cursor)
    wanted = {"kind": kind, "before": before, "below": below, "wanted": limited(limit) + 1}
    if owner:
        rows = yield Ask("subjects_of_owner", {**wanted, "owner": owner})
    else:
        rows = yield Ask("subjects_all", {**wanted, "owner": owner})
    some = rows[:limit]
    wanted_lines = [job_id for row in some for job_id in _ids(row["job_id"], row["open_id"])]
    by_id = {line.id: line for line in (yield from lines(wanted_lines, graph_cache))}
    items = tuple(SubjectLine(**_plain(row, by_id)) for row in some)
    return Page(items, cursor_after(items[-1]) if len(rows) > limit else None)


def _ids(*ids: int | None) -> list[int]:
    return sorted({job_id for job_id in ids if job_id is not None})


def _plain(row: Mapping[str, Any], lines: Mapping[int, JobLine]) -> dict[str, Any]:
    same = ("kind", "id", "owner", "created_at", "updated_at", "version")
    jobs = {"job": lines.get(row["job_id"]), "open_job": lines.get(row["open_id"])}
    return {**{name: row[name] for name in same}, "facts": json.loads(row["facts"]), **jobs}


def _version(item: dict[str, Any], current: int | None) -> VersionView:
    same = ("id", "number", "job_id", "published_at", "left_at", "files", "bytes")
    return VersionView(**{name: item[name] for name in same}, keep=bool(item["keep"]), current=item["id"] == current)


def cursor_after(line: SubjectLine) -> str:
    """Where a list goes on after this one."""
    return f"{line.created_at}-{line.id.encode().hex()}"


def _place(cursor: str | None) -> tuple[int, str]:
    if cursor is None:
        return FOREVER, ""
    at, _, name = cursor.partition("-")
    try:
        place = int(at), bytes.fromhex(name).decode()
    except ValueError:
        raise BadSpec(f"cursor {cursor!r} is not one that this list gave") from None
    if not 0 <= place[0] < FOREVER or not is_storable(place[1]):
        raise BadSpec(f"cursor {cursor!r} is not one that this list gave")
    return place


def learn(subject: tuple[str, str], owner: str, facts: dict[str, Any]) -> Steps[None]:
    row = {"kind": subject[0], "id": subject[1], "owner": owner, "facts": dumps(facts)}
    yield Write("subject_put", {"subjects": [row]})
