"""The fleet, for administrators: who works, and who may."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from telecine.api.http.auth import Admin
from telecine.api.http.context import Here, ServerContext
from telecine.api.http.json_response import answer
from telecine.api.http.params import WorkerPath
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.engine.queries.fleet import WorkerView
from telecine.facts import Mode, WorkerId

router = Router(prefix="/api/v1/workers", tags=["workers"])
PROBLEMS = answers(401, 403, 404, 429)


@dataclass(frozen=True, slots=True)
class Workers:
    items: tuple[WorkerView, ...]


@router.get("", response_model=Workers, responses=answers(401, 403, 422, 429))
async def list_workers(
    who: Admin, house: Here, gone: Annotated[bool, Query(description="Also those who have left")] = False
) -> Response:
    """The workers, with what they are doing."""
    return answer(Workers(await house.engine.queries.workers(gone=gone)))


@router.get("/{worker_id}", response_model=WorkerView, responses=PROBLEMS)
async def get_worker(worker_id: WorkerPath, who: Admin, house: Here) -> Response:
    """One worker, also one that has left."""
    return answer(await house.engine.queries.worker(worker_id))


@router.post("/{worker_id}/drain", response_model=WorkerView, responses=PROBLEMS)
async def drain_worker(worker_id: WorkerPath, who: Admin, house: Here) -> Response:
    """Let it finish what it has, and give it nothing new."""
    return await _set(house, worker_id, Mode.DRAINING)


@router.post("/{worker_id}/disable", response_model=WorkerView, responses=PROBLEMS)
async def disable_worker(worker_id: WorkerPath, who: Admin, house: Here) -> Response:
    """Take its work away at once, unharmed, and give it nothing new."""
    return await _set(house, worker_id, Mode.DISABLED)


@router.post("/{worker_id}/enable", response_model=WorkerView, responses=PROBLEMS)
async def enable_worker(worker_id: WorkerPath, who: Admin, house: Here) -> Response:
    """Let it work again."""
    return await _set(house, worker_id, Mode.ACTIVE)


@router.post("/{worker_id}/revoke", response_model=WorkerView, responses=PROBLEMS)
async def revoke_worker(worker_id: WorkerPath, who: Admin, house: Here) -> Response:
    """Shut it out for good: its work goes back, and the key that it came with opens nothing any more."""
    await RemoteWorkers(house.engine).revoke(WorkerId(worker_id), house.keys)
    return answer(await house.engine.queries.worker(worker_id))


async def _set(house: ServerContext, worker_id: int, mode: Mode) -> Response:
    await house.engine.set_mode(WorkerId(worker_id), mode)
    return answer(await house.engine.queries.worker(worker_id))
