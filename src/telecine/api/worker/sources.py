"""The source of a task's job, where it is a file on this server's disk: a remote worker reads it through here."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from starlette.responses import Response

from telecine.api.http.auth import Worker
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.worker.background_hashes import hash_source
from telecine.api.worker.ranges import MAX_READ, RangeHeader, ranged
from telecine.api.worker.worker_state import Here, WorkerState
from telecine.artifacts import Moved, Stored
from telecine.engine.accounts.keys import Caller
from telecine.errors import NotFound
from telecine.wire.responses import DigestResponse, SourceResponse
from telecine.wire.scalars import PathNumber

router = Router(prefix="/api/worker", tags=["worker"])
LENT = answers(401, 403, 404, 409, 422, 429)
HASH_SECONDS = 5.0


@router.get("/source/{task}/{token}", response_model=SourceResponse, responses=LENT)
async def stat_source(task: PathNumber, token: PathNumber, who: Worker, state: Here) -> Response:
    """Whether the source is there, how large it is, and what changes when somebody writes to it."""
    _, identity = await _lent(task, token, who, state)
    return answer(SourceResponse(size=identity[0], identity=list(identity)))


@router.get("/source/{task}/{token}/digest", response_model=DigestResponse, responses=LENT)
async def digest_source(task: PathNumber, token: PathNumber, who: Worker, state: Here) -> Response:
    """Its SHA-256, computed once here. Large ones take a while: ask again until there is a `sha256`."""
    path, identity = await _lent(task, token, who, state)

    async def work(moved: Moved) -> Stored:
        return await hash_source(path, identity, moved)

    return answer(await state.hashes.of(("source", str(path), identity), identity[0], work, HASH_SECONDS))


@router.get(
    "/source/{task}/{token}/bytes",
    response_class=Response,
    responses={**answers(401, 403, 404, 409, 416, 422, 429), 206: {"description": "The range that was asked for"}},
)
async def read_source(
    task: PathNumber, token: PathNumber, who: Worker, state: Here, wanted: RangeHeader = None
) -> Response:
    """Some of its bytes; without a range, the first ones."""
    path, identity = await _lent(task, token, who, state)

    async def some(start: int, length: int) -> bytes:
        return await asyncio.to_thread(_read, path, start, length)

    first = f"bytes=0-{MAX_READ - 1}"
    part = await ranged(wanted, identity[0], some) or await ranged(first, identity[0], some)
    assert part is not None
    return part


async def _lent(task: int, token: int, who: Caller, state: WorkerState) -> tuple[Path, tuple[int, ...]]:
    """Only what the spec of the task's own job names, or where its subject's source was seen last."""
    lease = await state.lease(who, task, token)
    lend = state.house.lenders.get(lease.flow)
    facts = {} if lease.subject is None else (await state.house.engine.brief(lease)).facts
    found = None if lend is None else lend(lease, facts)
    if found is None:
        raise NotFound(f"the source of task {task} is not a file on the server's disk")
    return found


def _read(path: Path, start: int, length: int) -> bytes:
    handle = os.open(path, os.O_RDONLY)
    try:
        return os.pread(handle, length, start)
    finally:
        os.close(handle)
