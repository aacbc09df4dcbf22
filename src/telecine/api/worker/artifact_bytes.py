"""Bytes of artifacts: in by PUT, resumed where they broke off; out by ranges.

PUT  /artifacts/{task}/{token}/{name}    Content-Length, X-SHA256 of the whole, Content-Range: bytes 0-99/200
  → 202 {"offset": 100}                  so much has come; go on there
  → 200 {"key", "size", "sha256"}        it is whole, and stored where a worker beside the database would put it
HEAD /artifacts/{task}/{token}/{name}    Upload-Offset: so much has come
GET  /kept/{task}/{token}/{key}          of the task's job, or of what its subject shows; with Range
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from fastapi import Header
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse

from telecine.api.http.auth import Worker
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.worker.ranges import RangeHeader, ranged
from telecine.api.worker.worker_state import Here, WorkerState
from telecine.artifacts import key_for_lease
from telecine.engine.accounts.keys import Caller
from telecine.errors import Conflict, NoSpace, NotFound, Refused, TooLarge, Unreachable, is_full
from telecine.facts import SECOND, Lease
from telecine.wire.fields import Sha
from telecine.wire.requests import LinkRequest
from telecine.wire.responses import DigestResponse, LinkResponse, StoredResponse, UploadOffset
from telecine.wire.scalars import BIGGEST, PathNumber

router = Router(prefix="/api/worker", tags=["worker"])
BLOCK = 1 << 20
WINDOW = 8 << 20
MAX_NAME = 500
LINK_GRACE = 60.0
STALL_SECONDS = 20.0
OFFSET = "Upload-Offset"
_RANGE = re.compile(r"bytes (\d{1,16})-(\d{1,16})/(\d{1,16})")

Total = Annotated[str | None, Header(alias="Content-Range", description="bytes first-last/total")]


class WrongOffset(Conflict):
    code = "wrong_offset"


class BadHash(Refused):
    code = "bad_hash"


class AlreadyKept(Conflict):
    code = "already_kept"


# -- in -------------------------------------------------------------------------------------------------


@router.put(
    "/artifacts/{task}/{token}/{name:path}",
    response_model=StoredResponse,
    responses={**answers(401, 403, 409, 413, 422, 429, 503, 507), 202: {"model": UploadOffset}},
)
async def put(
    task: PathNumber,
    token: PathNumber,
    name: str,
    request: Request,
    *,
    who: Worker,
    state: Here,
    sha256: Annotated[Sha, Header(alias="X-SHA256")],
    content_range: Total = None,
) -> Response:
    """Store bytes for this attempt. They are recorded by `keep`, and belong to nothing before."""
    lease, key = await _place(task, token, name, who, state)
    first, total = _span(content_range, request)
    if total > state.house.settings.max_source_bytes:
        raise TooLarge(f"an artifact of {total} bytes is more than max_source_bytes allows")
    async with state.storing(lease, key) as part:
        if (known := await _known(lease, key, name, sha256, state)) is not None:
            await _discard(request)
            return answer(known)
        offset = await _receive(request, part, first, total)
        if offset < total:
            return answer(UploadOffset(offset=offset), status=202)
        return answer(await _store(part, key, sha256, state))


@router.head("/artifacts/{task}/{token}/{name:path}", response_class=Response, responses=answers(401, 403, 409, 429))
async def arrived(task: PathNumber, token: PathNumber, name: str, who: Worker, state: Here) -> Response:
    """How much of an artifact has come, as `Upload-Offset`."""
    lease, key = await _place(task, token, name, who, state)
    return Response(headers={OFFSET: str(_size(state.part(lease, key)))})


@router.post("/link", response_model=LinkResponse, responses=answers(401, 403, 409, 422, 429))
async def link(said: LinkRequest, who: Worker, state: Here) -> Response:
    """An address in the bucket for the bytes of one artifact. It dies with the lease; what was recorded gets none."""
    lease, key = await _place(said.task_id, said.token, said.name, who, state)
    known = await state.remotes.recorded(lease.task_id, said.name)
    if known is not None and known.token == lease.token:
        return answer(LinkResponse(key=key))
    seconds = state.house.engine.lease / SECOND + LINK_GRACE
    return answer(LinkResponse(key=key, url=await state.house.artifacts.link(key, seconds)))


async def _place(task: int, token: int, name: str, who: Caller, state: WorkerState) -> tuple[Lease, str]:
    if len(name) > MAX_NAME:
        raise Refused(f"an artifact's name has at most {MAX_NAME} characters")
    lease = await state.lease_of_upload(who, task, token)
    return lease, key_for_lease(lease, name)


def _span(content_range: str | None, request: Request) -> tuple[int, int]:
    """The first byte of this part, and how many the whole has."""
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > BIGGEST:
        raise Refused("say with Content-Length how many bytes come")
    if content_range is None:
        return 0, int(length)
    found = _RANGE.fullmatch(content_range)
    first, last, total = (int(part) for part in found.groups()) if found else (1, 0, 0)
    if last - first + 1 != int(length) or last >= total:
        raise Refused("Content-Range is bytes first-last/total, and fits to Content-Length")
    return first, total


async def _known(lease: Lease, key: str, name: str, sha256: str, state: WorkerState) -> StoredResponse | None:
    """What this attempt has recorded under this name, which stays as it is, or has stored: its answer was lost."""
    known = await state.remotes.recorded(lease.task_id, name)
    if known is None or known.token != lease.token:
        stored = state.received.get(key)
        return StoredResponse(key=key, size=stored.size, sha256=sha256) if stored and stored.sha256 == sha256 else None
    if known.sha256 != sha256:
        raise AlreadyKept(f"{name!r} was recorded with other bytes, and an artifact never changes")
    return StoredResponse(key=known.key, size=known.size, sha256=known.sha256)


async def _discard(request: Request) -> None:
    async for _ in _heard(request):
        pass


async def _receive(request: Request, part: Path, first: int, total: int) -> int:
    """Write what comes; whoever is cut off goes on from there."""
    have = _size(part)
    if first > have:
        raise WrongOffset(f"{have} bytes have come, so the next part begins there, not at {first}")
    with _room(), part.open("r+b" if have else "wb") as file:
        file.truncate(first)
        file.seek(first)
        at, held = first, bytearray()
        try:
            async for chunk in _heard(request):
                held += chunk
                if at + len(held) > total:
                    raise Refused(f"more than {total} bytes have come")
                if len(held) >= BLOCK:
                    at += await _write(file, held)
        finally:
            at += await _write(file, held)
    return at


async def _heard(request: Request) -> AsyncIterator[bytes]:
    """What comes, until nothing has come for a while: a line that was cut without a word must not keep its sender, who
    comes back on another one, waiting for ever."""
    stream = request.stream()
    while True:
        try:
            async with asyncio.timeout(STALL_SECONDS):
                chunk = await anext(stream, None)
        except TimeoutError:
            raise Unreachable(f"nothing came for {STALL_SECONDS:g} seconds: go on where it broke off") from None
        except ClientDisconnect:
            raise Unreachable("the line broke: go on where it did") from None
        if chunk is None:
            return
        yield chunk


@contextmanager
def _room() -> Iterator[None]:
    """What was written stays: whoever comes again goes on there."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise NoSpace("the server's disk is full: free some space there, then go on where it broke off") from error
        raise


async def _write(file: BinaryIO, held: bytearray) -> int:
    data = bytes(held)
    held.clear()
    return await asyncio.to_thread(file.write, data) if data else 0


async def _store(part: Path, key: str, sha256: str, state: WorkerState) -> StoredResponse:
    artifacts = state.house.artifacts
    stored = await artifacts.put(key, part)
    await asyncio.to_thread(part.unlink)
    if stored.sha256 != sha256:
        await artifacts.delete(key)
        state.received.pop(key, None)
        raise BadHash("the bytes that came do not hash to what was said: send them again")
    state.received.note(key, stored)
    return StoredResponse(key=key, size=stored.size, sha256=stored.sha256)


def _size(part: Path) -> int:
    try:
        return part.stat().st_size
    except FileNotFoundError:
        return 0


# -- out ------------------------------------------------------------------------------------------------


@router.get(
    "/kept/{task}/{token}/{key:path}",
    response_class=Response,
    responses={**answers(401, 403, 404, 409, 416, 429, 503), 206: {"description": "The range that was asked for"}},
)
async def get(
    task: PathNumber, token: PathNumber, key: str, *, who: Worker, state: Here, wanted: RangeHeader = None
) -> Response:
    """Bytes of an artifact of the task's job, or of the version that its subject shows."""
    size = await _sized(task, token, key, who, state)

    async def read(start: int, length: int) -> bytes:
        return await state.house.artifacts.read(key, start, length, size=size)

    async def all_of_it() -> AsyncIterator[bytes]:
        for start in range(0, size, WINDOW):
            yield await read(start, min(WINDOW, size - start))

    if (part := await ranged(wanted, size, read)) is not None:
        return part
    headers = {"Content-Length": str(size)}
    return StreamingResponse(all_of_it(), media_type="application/octet-stream", headers=headers)


@router.head("/kept/{task}/{token}/{key:path}", response_class=Response, responses=answers(401, 403, 404, 409, 429))
async def stat_artifact(task: PathNumber, token: PathNumber, key: str, who: Worker, state: Here) -> Response:
    """How large an artifact is."""
    size = await _sized(task, token, key, who, state)
    return Response(headers={"Content-Length": str(size)}, media_type="application/octet-stream")


@router.get(
    "/digest/{task}/{token}/{key:path}", response_model=DigestResponse, responses=answers(401, 403, 404, 409, 429, 503)
)
async def digest_artifact(task: PathNumber, token: PathNumber, key: str, who: Worker, state: Here) -> Response:
    """What an artifact hashes to now. Large ones take a while: ask again until there is a `sha256`."""
    size = await _sized(task, token, key, who, state)
    artifacts = state.house.artifacts

    async def work(moved: Any) -> Any:
        return await artifacts.digest(key, moved)

    # Each attempt looks anew: it asks because it does not trust what was there before.
    return answer(await state.hashes.of(("check", task, token, key), size, work, wait=5.0))


async def _sized(task: int, token: int, key: str, who: Caller, state: WorkerState) -> int:
    lease = await state.lease(who, task, token)
    if not _is_upload_of(lease, key):
        await state.remotes.readable(lease, key)
    try:
        return await state.house.artifacts.stat(key)
    except ValueError:  # a key that no store takes
        raise NotFound(f"there is no artifact {key!r}") from None


def _is_upload_of(lease: Lease, key: str) -> bool:
    """The file that was uploaded for this very job lies among the artifacts, and belongs to none."""
    source = lease.spec.get("source") if isinstance(lease.spec, dict) else None
    return isinstance(source, str) and source.startswith("upload://") and key == f"uploads/{source[9:]}/source"
