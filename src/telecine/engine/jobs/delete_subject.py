"""Delete subjects: at once for those who look, their bytes when nobody works for them any more.

    delete ──▶ its jobs are cancelled ──▶ subject_gone: shown to nobody, nothing of it is claimed
    duty   ──▶ what a crash left open is cancelled; when the last job has ended: its versions go,
               its jobs go to the archive, their bytes are freed, last the subject itself
    later  ──▶ the folders of those jobs once more: a worker that lost its lease may have come late

Each arrow is one transaction that holds the row of `subject_gone`, so the duty may die anywhere and be done by several.
A submit for the same subject takes the row back first (`subject_new`): it comes before a step of the duty, which then
finds nothing to do, or after it, and finds what is left.
"""

from __future__ import annotations

import json
import logging
from functools import partial
from typing import TYPE_CHECKING

from telecine.engine.jobs import control, job_rows
from telecine.engine.maintenance.artifact_gc import put_freed
from telecine.engine.maintenance.retention import BATCH, documents_of, free_keys, move, upto
from telecine.engine.uploads.records import free_with
from telecine.errors import NotFound
from telecine.facts import DAY, Instant, JobId, Json, Status
from telecine.json_text import dumps
from telecine.store import Ask, Row, Rows, Steps

if TYPE_CHECKING:
    from telecine.engine import Engine

log = logging.getLogger(__name__)

Who = tuple[str, str]  # kind, id
REASON = "what it is about was deleted"
UPLOADED = "video"  # what uploads become
ROUNDS = 5
MANY = 200
LATE = DAY


async def delete(engine: Engine, who: Who, *, actor: str = "") -> None:
    """Cancel what works for it, then hide it for good; `NotFound` if it is not there (any more)."""
    for _ in range(ROUNDS):  # whoever keeps submitting meanwhile is left to the duty
        waiting = [row["id"] for row in await _open(engine, who) if not row["cancel_asked"]]
        for job_id in waiting:
            await _cancel(engine, partial(_cancelled, job_id, engine, actor))
        if not waiting:
            break
    await engine._store.run(partial(_hide, who, actor))


def _hide(who: Who, actor: str) -> Steps[None]:
    if not (yield Ask("gone_put", {**_named(who), "actor": actor})):
        raise NotFound(f"there is no {who[0]} {who[1]!r}")
    nobody = {"job_id": None, "task_id": None, "stage": None, "token": None, "worker": None}
    data = dumps({"kind": who[0], "id": who[1], "actor": actor})
    yield Ask("event_say", {"kind": "subject.deleted", **nobody, "data": data})


async def gone_since(engine: Engine, who: Who) -> Instant | None:
    """When it was deleted, if it is."""

    def steps() -> Steps[Instant | None]:
        rows = yield Ask("gone_at", _named(who))
        return rows[0]["at"] if rows else None

    return await engine._store.read(steps)


# -- the duty ----------------------------------------------------------------------------------------


async def clear_gone(engine: Engine) -> int:
    """Go on with everything that was deleted; how many subjects came to their end."""
    count, last = 0, {"at": -1, "kind": "", "id": ""}
    while some := await engine._store.read(partial(_some, last)):
        last = dict(some[-1])
        for row in some:
            count += await _clear(engine, (row["kind"], row["id"]))
    while await engine._store.run(_forget):
        pass
    return count


async def _clear(engine: Engine, who: Who) -> bool:
    open_now = await _open(engine, who)
    for row in open_now:
        if not row["cancel_asked"]:
            await _cancel(engine, partial(_cancel_if_gone, who, row["id"], engine))
    if open_now:
        return False  # what runs is told by its next beat, or runs out
    if not await engine._store.run(partial(_drop_versions, who)):
        return False
    while old := upto(await engine._store.read(partial(_ended, who))):
        documents = await engine._store.read(partial(documents_of, [row["id"] for row in old], engine.graph_cache))
        if not await engine._store.run(partial(_put_away, who, old, documents)):
            break
    return await engine._store.run(partial(_end, who))


async def _open(engine: Engine, who: Who) -> Rows:
    def steps() -> Steps[Rows]:
        rows: Rows = yield Ask("gone_open", {**_named(who), "wanted": MANY})
        return rows

    return await engine._store.read(steps)


async def _cancel(engine: Engine, make: partial[Steps[int | None]]) -> None:
    ended = await engine._store.run(make)
    if ended is not None:
        await engine.jobs.release_waiting([ended])


def _cancel_if_gone(who: Who, job_id: int, engine: Engine) -> Steps[int | None]:
    """Only if nobody has wanted it back meanwhile."""
    if not (yield Ask("gone_hold", _named(who))):
        return None
    return (yield from _cancelled(job_id, engine, ""))


def _cancelled(job_id: int, engine: Engine, actor: str) -> Steps[int | None]:
    """The job's id if that was its end; one that has ended otherwise stays as it is."""
    [*held] = yield from job_rows.hold([job_id])
    if not held or held[0]["outcome"] is not None:
        return None
    status = yield from control.cancel(JobId(job_id), engine.graph_cache, reason=REASON, actor=actor)
    return job_id if Status(status).is_final else None


def _drop_versions(who: Who) -> Steps[bool]:
    """Whether it is still gone, and nothing of it is shown or kept any more."""
    if not (yield Ask("gone_hold", _named(who))):
        return False
    yield Ask("gone_lock", _named(who))
    yield from free_keys((yield Ask("gone_artifacts", _named(who))))
    yield Ask("gone_versions", _named(who))
    if who[0] == UPLOADED:
        yield from free_with(who[1])
    return True


def _ended(who: Who) -> Steps[Rows]:
    rows: Rows = yield Ask("gone_ended", {**_named(who), "wanted": BATCH})
    return rows


def _put_away(who: Who, old: list[Row], documents: dict[int, dict[str, Json]]) -> Steps[bool]:
    if not (yield Ask("gone_hold", _named(who))):
        return False
    moved = yield from move(old, documents, 0)
    yield Ask("gone_note", {**_named(who), "jobs": json.dumps([row["id"] for row in old])})
    return bool(moved.jobs)


def _end(who: Who) -> Steps[bool]:
    """The subject itself; not while a job needs it, be it one that was submitted a moment before it was deleted."""
    if not (yield Ask("gone_hold", _named(who))):
        return False
    yield Ask("gone_lock", _named(who))
    [row] = yield Ask("gone_jobs", _named(who))
    if row["found"]:
        return False
    yield Ask("gone_end", _named(who))
    return True


def _forget() -> Steps[int]:
    rows = yield Ask("gone_forget", {"age": LATE, "wanted": MANY})
    yield from put_freed(f"{job_id}/" for row in rows for job_id in json.loads(row["jobs"]))
    return len(rows)


def _some(last: Row) -> Steps[Rows]:
    rows: Rows = yield Ask("gone_some", {**last, "wanted": MANY})
    return rows


def _named(who: Who) -> dict[str, str]:
    return {"kind": who[0], "id": who[1]}
