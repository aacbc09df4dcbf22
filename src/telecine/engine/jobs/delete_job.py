"""Delete a job: cancel it if it has not ended, and put it away when it has.

The wish is written down first, in the transaction that cancels, so a crash forgets nothing: housekeeping puts away
what was deleted and has ended since. The document stays in the archive, for whoever must look into it by hand, and is
shown to nobody; bytes go with the rows, hence after the last lease, and never those of a version that is shown or kept.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from telecine.engine.jobs import control, job_rows
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance.retention import Ages, Retired, documents_of, move
from telecine.engine.queries.ownership import no_job
from telecine.facts import JobId, Millis, Status
from telecine.store import Ask, Row, Steps, Store

if TYPE_CHECKING:
    from telecine.engine import Engine

BATCH = 50


async def delete(engine: Engine, job_id: JobId, *, actor: str = "") -> bool:
    """True if the job is gone; false while some of its tasks still have to end."""
    status = await engine._store.run(lambda: _wish(job_id, engine.graph_cache, actor))
    if not status.is_final:
        return False
    await engine.jobs.release_waiting([job_id])
    return await _put_away(engine._store, engine.graph_cache, job_id, Ages().versions)


async def put_away_deleted(store: Store, graph_cache: GraphCache, version_age: Millis) -> Retired:
    """Jobs that were deleted while they ran, and have ended since; one batch."""
    total = Retired()
    for row in await store.read(lambda: _due(BATCH)):
        if row["ended_at"] is None:
            await store.run(partial(_clear, row["id"]))
        elif await _put_away(store, graph_cache, row["id"], version_age):
            total += Retired(jobs=1)
    return total


def _wish(job_id: JobId, graph_cache: GraphCache, actor: str) -> Steps[Status]:
    held = yield from job_rows.hold([job_id])
    if not held:
        raise no_job(job_id)
    yield Ask("job_gone_put", {"id": job_id, "owner": held[0]["owner"], "actor": actor})
    if held[0]["outcome"] is not None:
        return Status(held[0]["outcome"])
    return (yield from control.cancel(job_id, graph_cache, reason="deleted", actor=actor))


async def _put_away(store: Store, graph_cache: GraphCache, job_id: int, version_age: Millis) -> bool:
    rows = await store.read(lambda: _ended(job_id))
    if not rows:
        return False  # retried in between, or somebody else was faster
    # Ended jobs do not change, so they are read outside of the transaction; it checks that none was retried.
    documents = await store.read(lambda: documents_of([job_id], graph_cache))

    def steps() -> Steps[bool]:
        moved = yield from move(rows, documents, version_age)
        if moved.jobs:
            yield from _clear(job_id)
        return bool(moved.jobs)

    return await store.run(steps)


def _due(wanted: int) -> Steps[list[Row]]:
    return list((yield Ask("job_gone_due", {"wanted": wanted})))


def _ended(job_id: int) -> Steps[list[Row]]:
    return list((yield Ask("job_ended_at", {"id": job_id})))


def _clear(job_id: int) -> Steps[None]:
    yield Ask("job_gone_clear", {"ids": [job_id]})
