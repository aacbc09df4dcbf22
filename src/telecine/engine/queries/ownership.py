"""Whose things are: what the API looks at before it shows or changes anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from telecine.errors import NotFound, WrongState
from telecine.facts import JobId, State, Status
from telecine.store import Ask, Row, Steps, Store


@dataclass(frozen=True, slots=True)
class OwnedJob:
    """A job, as far as it matters for who may do what with it. An owner never changes, so this stays true."""

    id: JobId
    owner: str
    outcome: str | None
    archived: bool
    going: bool

    def must_be_here(self) -> None:
        """`WrongState` for what can only be looked at any more."""
        if self.archived:
            raise WrongState(f"job {self.id} was archived: it can be read, not changed; submit it again")
        if self.going:
            raise WrongState(f"job {self.id} was deleted and goes as soon as it has ended")


def no_job(job_id: int) -> NotFound:
    """The one sentence for jobs of others and for jobs that never were."""
    return NotFound(f"there is no job {job_id}")


def no_task(task_id: int) -> NotFound:
    return NotFound(f"there is no task {task_id}")


def owners(ids: Sequence[int], sees: str | None) -> Steps[dict[int, OwnedJob]]:
    """Those of these jobs that somebody may see; `sees` is an owner, or None for everything."""
    rows = yield Ask("job_owners", {"ids": list(ids)})
    return {
        row["id"]: OwnedJob(row["id"], row["owner"], row["outcome"], bool(row["archived"]), bool(row["going"]))
        for row in rows
        if sees is None or row["owner"] == sees
    }


async def job(store: Store, job_id: int, sees: str | None) -> OwnedJob:
    """`NotFound` in the same words for a job of somebody else and for none."""
    found = await store.read(lambda: owners([job_id], sees))
    if job_id not in found:
        raise no_job(job_id)
    return found[job_id]


async def job_of_task(store: Store, task_id: int, sees: str | None) -> JobId:
    """The job of a task; `NotFound` in the same words for a task of somebody else and for none."""
    return JobId((await _task(store, task_id, sees))["job_id"])


async def failed_job(store: Store, task_id: int, sees: str | None) -> JobId:
    """The job that has failed by this task."""
    row = await _task(store, task_id, sees)
    if row["state"] != State.ERROR or row["outcome"] != Status.FAILED:
        raise WrongState(f"task {task_id} is {row['state']}: it has failed no job")
    return JobId(row["job_id"])


async def _task(store: Store, task_id: int, sees: str | None) -> Row:
    def steps() -> Steps[list[Row]]:
        return list((yield Ask("task_owner", {"id": task_id})))

    for row in await store.read(steps):
        if sees is None or row["owner"] == sees:
            return row
    raise no_task(task_id)
