"""What a handler reads, and what it keeps. Nothing of a worker is recorded that nobody has looked at."""

from __future__ import annotations

import asyncio
import hashlib
from functools import partial

from starlette.responses import Response

from telecine.api.http.auth import Worker
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.worker.worker_state import Here, WorkerState
from telecine.artifacts import Stored, key_for_lease
from telecine.errors import Refused, Unreachable
from telecine.facts import KeptArtifact, Lease
from telecine.wire.convert import brief_to, kept_from
from telecine.wire.requests import ArtifactsRequest, KeepRequest, LeaseRequest
from telecine.wire.responses import ArtifactsResponse, BriefResponse

router = Router(prefix="/api/worker", tags=["worker"])
LEASED = answers(401, 403, 409, 422, 429)
HASH_SECONDS = 20.0


class BadArtifact(Refused):
    code = "bad_artifact"


@router.post("/brief", response_model=BriefResponse, responses=LEASED)
async def brief(said: LeaseRequest, who: Worker, state: Here) -> Response:
    """Results of the stages before, what earlier attempts have kept, facts about the subject."""
    lease = await state.lease(who, said.task_id, said.token)
    return answer(brief_to(await state.house.engine.brief(lease)))


@router.post("/artifacts", response_model=ArtifactsResponse, responses=LEASED)
async def artifacts(said: ArtifactsRequest, who: Worker, state: Here) -> Response:
    """What these stages of the task's job have kept so far; none named: all."""
    lease = await state.lease(who, said.task_id, said.token)
    found = await state.house.engine.artifacts(lease, said.stages)
    return answer(ArtifactsResponse(shelved=found))


@router.post("/published", response_model=ArtifactsResponse, responses=LEASED)
async def published(said: LeaseRequest, who: Worker, state: Here) -> Response:
    """The artifacts of the version that the task's subject shows."""
    lease = await state.lease(who, said.task_id, said.token)
    found = await state.house.engine.published(lease)
    return answer(ArtifactsResponse(shelved=found))


@router.post("/keep", status_code=204, response_class=Response, responses=answers(401, 403, 404, 409, 422, 429, 503))
async def keep(said: KeepRequest, who: Worker, state: Here) -> Response:
    """Record checkpoints, and artifacts whose bytes were stored before. Bytes are looked at first: `bad_segment`."""
    lease = await state.lease_of_record(who, said.task_id, said.token)
    items = [kept_from(item, said.token) for item in said.items]
    for item in items:
        if item.key is not None:
            await _check(item, lease, state)
    await state.house.engine.keep(lease.task_id, lease.token, items)
    return Response(status_code=204)


async def _check(item: KeptArtifact, lease: Lease, state: WorkerState) -> None:
    """Its key is the one of this attempt, its bytes are there and as it says, and make sense to the flow."""
    if item.key != key_for_lease(lease, item.name):
        raise BadArtifact(f"{item.name!r} of task {lease.task_id} may not be kept under another attempt's key")
    found = state.received.get(item.key) or await _stored(item, item.key, state)
    if found != Stored(item.size if item.size is not None else -1, item.sha256 or ""):
        raise BadArtifact(f"the bytes of {item.name!r} are not those that were stored: store them again")
    inspect = state.house.inspectors.get(lease.flow)
    if inspect is not None:
        await inspect(lease, item, partial(_read, state))


async def _read(state: WorkerState, kept: KeptArtifact) -> bytes:
    """Hashed here, unless this server has hashed these very bytes when they came."""
    artifacts, key, size = state.house.artifacts, kept.key or "", kept.size or 0
    known = state.received.get(key)
    if known is not None and known.etag is not None and known == Stored(size, kept.sha256 or ""):
        data = await artifacts.read_unchanged(key, known.etag)
        if data is not None:
            return data
    data = await artifacts.read(key, 0, size)
    # In a thread: the server beats for the whole fleet meanwhile.
    if (await asyncio.to_thread(hashlib.sha256, data)).hexdigest() != kept.sha256:
        raise ValueError("its bytes do not hash to what is said of them")
    return data


async def _stored(item: KeptArtifact, key: str, state: WorkerState) -> Stored:
    """Another server took the bytes, or this one was restarted since: they are read again.

    What went into a bucket by a link is believed in its hash until somebody reads it: whoever does checks it.
    """
    artifacts = state.house.artifacts
    size = await artifacts.stat(key)
    if artifacts.folder is None:
        return Stored(size, item.sha256 or "")
    found = await state.hashes.of(("kept", key, size), size, lambda moved: artifacts.digest(key, moved), HASH_SECONDS)
    if found.sha256 is None:
        raise Unreachable(f"{key} is still being hashed ({found.done} of {found.size} bytes): ask again")
    return Stored(found.size, found.sha256)
