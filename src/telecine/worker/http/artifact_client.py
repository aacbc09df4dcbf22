"""Artifacts that the server keeps, and sources that lie on its disk."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple
from urllib.parse import quote

import httpx

from telecine.artifacts import Moved, Stored
from telecine.errors import ArtifactError, BadSpec, Conflict, Refused
from telecine.flow import LentSource
from telecine.wire.responses import DigestResponse, LinkResponse, SourceResponse, StoredResponse, UploadOffset
from telecine.worker.attempts import Attempt
from telecine.worker.http.bucket_upload import send
from telecine.worker.http.connection import Server, read
from telecine.worker.retry_while_leased import while_held
from telecine.world import World

# So much goes up or comes down in one request: what is cut off costs no more than this.
PART = 8 << 20
ACCEPTED = 202
# Larger files go to the server, which lets them go on where they broke off.
MAX_LINKED = 256 << 20
MAX_FAILURES = 3  # in a row; then the bucket is not asked any more

log = logging.getLogger(__name__)


class _Parcel(NamedTuple):
    """A file on its way up."""

    where: str
    path: Path
    own: Stored


class HttpArtifacts:
    """What `Place` promises, by way of the server."""

    folder = None

    def __init__(self, server: Server, world: World) -> None:
        self._server = server
        self._world = world
        self.links = False  # the server has addresses in a bucket
        self._failures = 0

    def path(self, key: str) -> Path | None:
        return None

    def lend(self, attempt: Attempt) -> LentSource | None:
        return HttpSource(self._server, self._world, attempt)

    async def put(
        self, attempt: Attempt, name: str, path: Path, moved: Moved, sha256: str | None = None
    ) -> tuple[str, Stored]:
        own = await asyncio.to_thread(_described, path, sha256, moved)
        if self.links and own.size <= MAX_LINKED:
            key = await self._by_link(attempt, name, path, own, moved)
            if key is not None:
                return key, own
        parcel = _Parcel(f"artifacts/{_of(attempt)}/{quote(name)}", path, own)
        answer = await self._sent(attempt, parcel, 0)
        while answer.status_code == ACCEPTED:
            offset = read(UploadOffset, answer).offset
            moved(offset, own.size)
            answer = await self._sent(attempt, parcel, offset)
        stored = read(StoredResponse, answer)
        if Stored(stored.size, stored.sha256) != own:
            raise ArtifactError(f"{name!r} was changed while it was stored")
        return stored.key, own

    async def _by_link(self, attempt: Attempt, name: str, path: Path, own: Stored, moved: Moved) -> str | None:
        """Straight into the bucket, if the server has an address for it that can be reached; else its key is None."""
        lease = attempt.lease
        body = {"task_id": lease.task_id, "token": lease.token, "name": name}
        found = await while_held(attempt, self._world, name, partial(self._server.say, "link", LinkResponse, body))
        if found.url is None:
            return None
        try:
            await send(found.url, path, own.size, moved)
        except (httpx.HTTPError, OSError) as error:
            self._failures += 1
            self.links = self._failures < MAX_FAILURES
            log.warning("the bucket did not take %s (%r): it goes to the server", name, error)
            return None
        self._failures = 0
        return found.key

    async def _sent(self, attempt: Attempt, parcel: _Parcel, offset: int) -> httpx.Response:
        return await while_held(attempt, self._world, parcel.where, partial(self._part, parcel, offset))

    async def _part(self, parcel: _Parcel, offset: int) -> httpx.Response:
        """The next part; where the server has got less, or this is a repeat, from where it stands."""
        where, path, own = parcel
        headers = {"X-SHA256": own.sha256}
        if own.size <= PART:
            data = await asyncio.to_thread(path.read_bytes)
            return await self._server.ask("PUT", where, content=data, headers=headers)
        data = await asyncio.to_thread(_cut, path, offset)
        headers["Content-Range"] = f"bytes {offset}-{offset + len(data) - 1}/{own.size}"
        try:
            return await self._server.ask("PUT", where, content=data, headers=headers)
        except Conflict:
            there = await self._server.ask("HEAD", where)
            return httpx.Response(ACCEPTED, json={"offset": int(there.headers["upload-offset"])})

    async def get(self, attempt: Attempt, key: str, path: Path, moved: Moved) -> Stored:
        size, digest = await self.stat(attempt, key), hashlib.sha256()
        with await asyncio.to_thread(path.open, "wb") as file:
            for start in range(0, size, PART):
                data = await self.read(attempt, key, start, PART, size)
                await asyncio.to_thread(_take, file, digest, data)
                moved(start + len(data), size)
        return Stored(size, digest.hexdigest())

    async def read(self, attempt: Attempt, key: str, start: int, length: int | None, size: int | None) -> bytes:
        if start < 0 or (length is not None and length < 0):
            raise BadSpec(f"there are no bytes {start} + {length}")
        size = await self.stat(attempt, key) if size is None else size
        end = size if length is None else min(size, start + length)
        found = bytearray()
        while start + len(found) < end:
            first = start + len(found)
            last = min(end, first + PART) - 1
            got = await self._bytes(attempt, f"kept/{_of(attempt)}/{quote(key)}", first, last)
            if not got:
                raise ArtifactError(f"artifact {key!r} is shorter than was recorded")
            found += got
        return bytes(found)

    async def _bytes(self, attempt: Attempt, where: str, first: int, last: int) -> bytes:
        headers = {"Range": f"bytes={first}-{last}"}
        ask = partial(self._server.ask, "GET", where, headers=headers)
        return (await while_held(attempt, self._world, where, ask)).content

    async def digest(self, attempt: Attempt, key: str, moved: Moved) -> Stored:
        found = await digested(self._server, f"digest/{_of(attempt)}/{quote(key)}", attempt, self._world, moved)
        return Stored(found.size, found.sha256 or "")

    async def stat(self, attempt: Attempt, key: str) -> int:
        where = f"kept/{_of(attempt)}/{quote(key)}"
        answer = await while_held(attempt, self._world, key, partial(self._server.ask, "HEAD", where))
        return int(answer.headers["content-length"])


class HttpSource:
    """The source of an attempt's job, on the server's disk."""

    def __init__(self, server: Server, world: World, attempt: Attempt) -> None:
        self._server = server
        self._world = world
        self._attempt = attempt

    async def stat(self) -> tuple[int, ...]:
        return tuple(read(SourceResponse, await self._ask("")).identity)

    async def digest(self, told: Callable[[float, float], None]) -> str:
        where = f"source/{_of(self._attempt)}/digest"
        found = await digested(self._server, where, self._attempt, self._world, told)
        return found.sha256 or ""

    async def read(self, start: int, length: int) -> bytes:
        found = bytearray()
        while len(found) < length:
            first = start + len(found)
            try:
                got = await self._ask("/bytes", {"Range": f"bytes={first}-{start + length - 1}"})
            except Refused:  # it ends before that
                break
            found += got.content
            if start + len(found) >= int(got.headers["content-range"].rpartition("/")[2]):
                break
        return bytes(found)

    async def _ask(self, what: str, headers: dict[str, str] | None = None) -> httpx.Response:
        ask = partial(self._server.ask, "GET", f"source/{_of(self._attempt)}{what}", headers=headers)
        return await while_held(self._attempt, self._world, "the source", ask)


async def digested(
    server: Server, where: str, attempt: Attempt, world: World, moved: Callable[[int, int], None]
) -> DigestResponse:
    """Ask until the server has hashed it all; it says how far it is meanwhile."""
    while True:
        found = read(
            DigestResponse, await while_held(attempt, world, where, lambda: server.ask("GET", where, wait=10.0))
        )
        moved(found.done, found.size)
        if found.sha256 is not None:
            return found
        await asyncio.sleep(0.1)


def _of(attempt: Attempt) -> str:
    return f"{attempt.lease.task_id}/{attempt.lease.token}"


def _described(path: Path, sha256: str | None, moved: Moved) -> Stored:
    if sha256 is not None:
        return Stored(path.stat().st_size, sha256)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            size += len(block)
            moved(0, size)
    return Stored(size, digest.hexdigest())


def _cut(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(PART)


def _take(file: BinaryIO, digest: hashlib._Hash, data: bytes) -> None:
    file.write(data)
    digest.update(data)
