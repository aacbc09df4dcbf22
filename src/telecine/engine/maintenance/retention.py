"""Put old things away, a batch at a time.

A job that ended long ago becomes one JSON document in `archive` and is still found by its id; its rows go
in the same transaction, on a fixed list of ids. Files of a version that a subject shows or keeps, or showed not
long ago, stay with their rows for as long as that is so. Bytes that no row names any more are noted in `freed` by
the same transaction and deleted after it (`clearing.py`): no row ever names bytes which are gone, and none are
forgotten. Two passes at once do each other no harm, and a pass may be ended between any two batches.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from telecine.engine.events.stream import numbering
from telecine.engine.jobs import job_rows
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance.artifact_gc import put_freed
from telecine.engine.queries.job_view import live_job, output_of
from telecine.engine.queries.timeline import attempt_view, graph_of, log_line, task_view
from telecine.engine.queries.view_models import JobView
from telecine.errors import NotFound
from telecine.facts import DAY, Millis, Status
from telecine.store import Ask, Row, Rows, Steps, Store, Write

BATCH = 50
MAX_TASKS = 20_000
MANY = 5_000
EVERYTHING = 2**31 - 1
LOG_TAIL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Ages:
    """How old things become. Logs outlive the move of their job, which takes their tail along."""

    jobs: Millis = 30 * DAY
    keys: Millis = 30 * DAY
    events: Millis = 7 * DAY
    logs: Millis = 60 * DAY
    workers: Millis = 90 * DAY
    versions: Millis = 7 * DAY  # since another version took their place
    deleted: Millis = 90 * DAY  # jobs that somebody deleted, with the documents that nobody sees
    watched: Millis = 365 * DAY  # files of watched folders, since they were seen there
    secrets: Millis = 90 * DAY  # keys that were revoked or have expired
    sessions: Millis = 7 * DAY  # links and sessions that have ended


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """What a batch put away; `files` are keys of artifacts whose bytes were freed with it."""

    jobs: int = 0
    versions: int = 0
    keys: int = 0
    events: int = 0
    logs: int = 0
    workers: int = 0
    deleted: int = 0
    watched: int = 0
    secrets: int = 0
    files: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self != NOTHING

    def __add__(self, other: Retired) -> Retired:
        return Retired(**{name: getattr(self, name) + getattr(other, name) for name in self.__slots__})


NOTHING = Retired()


async def retire(store: Store, graph_cache: GraphCache, ages: Ages | None = None) -> AsyncGenerator[Retired, None]:
    """Everything that is old, batch by batch."""
    limits = ages or Ages()
    while (batch := await retire_jobs(store, graph_cache, limits)) is not None:
        yield batch
    while batch := await retire_versions(store, limits.versions):
        yield batch
    async for batch in _retire_keys(store, limits.keys):
        yield batch
    while count := await store.run(lambda: _prune_events(limits.events)):
        yield Retired(events=count)
    while count := await store.run(lambda: _prune("log_prune", limits.logs)):
        yield Retired(logs=count)
    while count := await store.run(lambda: _prune("worker_prune", limits.workers)):
        yield Retired(workers=count)
    while count := await store.run(lambda: _prune("job_gone_prune", limits.deleted)):
        yield Retired(deleted=count)
    while count := await store.run(lambda: _prune("watched_prune", limits.watched)):
        yield Retired(watched=count)
    while count := await store.run(lambda: _prune("key_prune", limits.secrets, brief=limits.sessions)):
        yield Retired(secrets=count)


# -- Jobs --------------------------------------------------------------------------------------------


async def retire_jobs(store: Store, graph_cache: GraphCache, ages: Ages, most: int = BATCH) -> Retired | None:
    """Move one batch of ended jobs into the archive; None if there was nothing to move."""
    old = await store.read(lambda: _old_jobs(ages.jobs, most))
    if not old:
        return None
    # Ended jobs do not change, so they are read outside of the transaction; it checks that none was retried.
    documents = await store.read(lambda: documents_of([row["id"] for row in old], graph_cache))
    return await store.run(lambda: move(old, documents, ages.versions)) or None


def _old_jobs(age: Millis, most: int) -> Steps[Rows]:
    return upto((yield Ask("old_jobs", {"age": age, "wanted": most})))


def upto(rows: Rows, most: int = MAX_TASKS) -> list[Row]:
    """As many of these jobs, in their order, as can be moved at once."""
    chosen: list[Row] = []
    tasks = 0
    for row in rows:
        tasks += row["tasks"]
        if chosen and tasks > most:
            break
        chosen.append(row)
    return chosen


def documents_of(ids: Sequence[int], graph_cache: GraphCache) -> Steps[dict[int, dict[str, Any]]]:
    found: dict[int, dict[str, Any]] = {}
    for job_id in ids:
        try:
            job = yield from live_job(job_id, graph_cache)
        except NotFound:
            continue  # its graph is lost: the audit says so, and it must not hold up the others
        if job is not None:
            found[job_id] = yield from _document(job, graph_cache)
    return found


def _document(job: JobView, graph_cache: GraphCache) -> Steps[dict[str, Any]]:
    graph = yield from graph_of(job.id, graph_cache)
    if graph is None:
        return {}
    all_of_it = {"job_id": job.id, "stage": -1, "position": -1, "token": -1, "wanted": EVERYTHING}
    tasks = yield Ask("view_tasks", {**all_of_it, "only_stage": None, "only_state": None})
    attempts = yield Ask("view_attempts", all_of_it)
    files = yield Ask("old_artifacts", {"job_id": job.id})
    lines = yield Ask("view_logs_tail", {"job_id": job.id, "wanted": LOG_TAIL})
    return {
        "job": _without(asdict(job), "archived_at"),
        "tasks": [_without(asdict(task_view(row, graph)), "waiting", "attempts") for row in tasks],
        "attempts": [asdict(attempt_view(row, graph)) for row in attempts],
        "artifacts": [{"id": row["id"], "file": asdict(output_of(row, graph))} for row in files],
        "logs": [asdict(log_line(row, graph)) for row in reversed(lines)],
    }


def _without(data: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name not in names}


def move(old: Rows, documents: dict[int, dict[str, Any]], version_age: Millis) -> Steps[Retired]:
    ids = [row["id"] for row in old]
    used = {row["job_id"] for row in (yield Ask("retire_tasks", {"ids": ids})) if row["used"]}
    held = yield Ask("retire_jobs", {"ids": ids})
    seen = {(row["id"], row["ended_at"], row["generation"]) for row in old}
    same = [row for row in held if (row["id"], row["ended_at"], row["generation"]) in seen]
    going = [row["id"] for row in same if documents.get(row["id"])]
    if not going:
        return NOTHING
    versions = yield Ask("retire_versions", {"ids": going, "version_age": version_age})
    staying = [row["id"] for row in versions if row["stays"]]
    files = yield from free_keys((yield Ask("retire_artifacts", {"ids": going, "staying": staying})))
    # Attempts that died may have left bytes that were never recorded: whatever is in the job's folder is looked at.
    yield from put_freed([f"{job_id}/" for job_id in going if job_id in used])
    yield Write("archive_put", {"jobs": [_archived(documents[job_id]) for job_id in going]})
    yield Ask("retire_rows", {"ids": going})
    return Retired(jobs=len(going), files=files)


def _archived(document: dict[str, Any]) -> dict[str, Any]:
    job = document["job"]
    return {
        "job_id": job["id"],
        "owner": job["owner"],
        "flow": job["flow"],
        "outcome": job["status"],
        "ended_at": job["ended_at"],
        "document": json.dumps(document),
    }


def free_keys(rows: Rows) -> Steps[tuple[str, ...]]:
    """Of the keys whose rows went, those that no other row names; their bytes will be deleted."""
    keys = [row["key"] for row in rows if row["key"] is not None]
    if not keys:
        return ()
    free = yield Ask("artifact_free", {"keys": keys})
    found = tuple(sorted(row["key"] for row in free))
    yield from put_freed(found)
    return found


def free_unfinished(job_id: int, generation: int, folders: Sequence[str]) -> Steps[tuple[str, ...]]:
    """Free what tasks that did not end well had kept in these folders; nothing of a job that was retried meanwhile.

    The job's row is held: a retry comes before, and is seen, or after, and finds these files gone.
    """
    held = yield from job_rows.hold([job_id])
    if not held or held[0]["outcome"] != Status.FAILED or held[0]["generation"] != generation:
        return ()
    rows = yield Ask("unfinished_artifacts", {"job_id": job_id, "folders": list(folders)})
    return (yield from free_keys(rows))


# -- The rest ----------------------------------------------------------------------------------------


async def retire_versions(store: Store, age: Millis, most: int = BATCH) -> Retired:
    """Drop one batch of versions that another one replaced so long ago, with their files."""
    rows = await store.read(partial(_window, "old_versions", {"age": age, "wanted": most}))
    return await store.run(partial(_drop_versions, [row["id"] for row in rows])) if rows else NOTHING


def _drop_versions(ids: list[int]) -> Steps[Retired]:
    held = yield Ask("version_hold", {"ids": ids})
    going = [row["id"] for row in held]
    if not going:
        return NOTHING
    files = yield from free_keys((yield Ask("version_artifacts", {"ids": going})))
    yield Ask("version_drop", {"ids": going})
    return Retired(versions=len(going), files=files)


async def _retire_keys(store: Store, age: Millis) -> AsyncGenerator[Retired, None]:
    after, aged = 0, True
    while aged:
        rows = await store.read(partial(_window, "old_keys", {"age": age, "after": after, "wanted": MANY}))
        # A key that is younger than that cannot be of a job that ended so long ago.
        aged = bool(rows) and bool(rows[-1]["aged"])
        after = rows[-1]["job_id"] if rows else after
        keys = [{"owner": row["owner"], "key": row["key"]} for row in rows if row["old"]]
        if keys:
            await store.run(partial(_drop_keys, keys))
            yield Retired(keys=len(keys))


def _drop_keys(keys: list[dict[str, str]]) -> Steps[None]:
    yield Write("key_drop", {"keys": keys})


def _window(name: str, params: dict[str, Any]) -> Steps[Rows]:
    rows: Rows = yield Ask(name, params)
    return rows


def _prune_events(age: Millis) -> Steps[int]:
    """Where nobody reads, nobody has given numbers yet; only what has one can be pruned."""
    yield from numbering(MANY)
    rows = yield Ask("event_prune", {"age": age, "wanted": MANY})
    return int(rows[0]["gone"])


def _prune(name: str, age: Millis, **more: Millis) -> Steps[int]:
    rows = yield Ask(name, {"age": age, "wanted": MANY, **more})
    return len(rows)
