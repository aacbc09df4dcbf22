"""Bytes that never change, whole or in one range, from a folder or from a bucket; never more than a piece in memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from io import FileIO

from starlette.responses import Response, StreamingResponse

from telecine.api.http.problems import problem
from telecine.api.http.ranges import UnsatisfiableRange, is_known, is_other, range_in
from telecine.artifacts import Artifacts
from telecine.engine.queries.published_files import PublishedFile
from telecine.errors import ArtifactDamaged, NotFound

TYPES = {
    "m3u8": "application/vnd.apple.mpegurl",
    "m4s": "video/iso.segment",
    "mp4": "video/mp4",
    "jpg": "image/jpeg",
    "vtt": "text/vtt",
}
PIECE = 1 << 20
FAR_PIECE = 4 << 20


@dataclass(frozen=True, slots=True)
class ByteRequest:
    """What of a request decides how it is answered."""

    method: str
    headers: Mapping[str, str]


def send_text(asked: ByteRequest, text: bytes, kind: str, headers: dict[str, str]) -> Response:
    """A list; it may change, so it is asked for each time, but sent only when it did."""
    etag = f'"{hashlib.sha256(text).hexdigest()}"'
    headers = {**headers, "ETag": etag, "Cache-Control": "no-cache"}
    if is_other(asked.headers, etag):
        return problem(412, "version_mismatch", f"If-Match names another version; this one is {etag}")
    if is_known(asked.headers, etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    if asked.method == "HEAD":
        return Response(media_type=TYPES[kind], headers={**headers, "Content-Length": str(len(text))})
    return Response(text, media_type=TYPES[kind], headers=headers)


async def send_file(
    asked: ByteRequest, file: PublishedFile, kind: str, headers: dict[str, str], artifacts: Artifacts
) -> Response:
    etag = f'"{file.sha256}"'
    headers = {**headers, "ETag": etag, "Accept-Ranges": "bytes"}
    if is_other(asked.headers, etag):
        return problem(412, "version_mismatch", f"If-Match names another version; this one is {etag}")
    if is_known(asked.headers, etag):
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    has_range = asked.method == "GET" and asked.headers.get("if-range", etag) == etag
    try:
        part = range_in(asked.headers.get("range") if has_range else None, file.size)
    except UnsatisfiableRange:
        gone = {"Content-Range": f"bytes */{file.size}", "Accept-Ranges": "bytes"}
        return problem(416, "bad_range", f"the range begins after the last of {file.size} bytes", headers=gone)
    first, last = part or (0, file.size - 1)
    status = HTTPStatus.OK
    if part is not None:
        headers["Content-Range"] = f"bytes {first}-{last}/{file.size}"
        status = HTTPStatus.PARTIAL_CONTENT
    headers["Content-Length"] = str(last - first + 1)
    if asked.method == "HEAD":
        return Response(status_code=status, headers=headers, media_type=TYPES[kind])
    content = await _opened(file, first, last - first + 1, artifacts)
    return StreamingResponse(content, status_code=status, headers=headers, media_type=TYPES[kind])


async def _opened(file: PublishedFile, start: int, length: int, artifacts: Artifacts) -> AsyncIterator[bytes]:
    """The bytes; what is wrong with them is said before the first of them is sent."""
    path = artifacts.path(file.key)
    if path is not None:
        return _from_disk(await asyncio.to_thread(_open, str(path), file), start, length)
    first = await artifacts.read(file.key, start, min(FAR_PIECE, length), size=file.size)
    return _from_afar(file, start, length, first, artifacts=artifacts)


def _open(path: str, file: PublishedFile) -> FileIO:
    """As an object: a viewer may leave before the first byte, and then nobody else would close it."""
    try:
        found = FileIO(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
    except OSError as error:
        raise NotFound(f"the bytes of {file.name} are gone") from error
    about = os.fstat(found.fileno())
    if not stat.S_ISREG(about.st_mode) or about.st_size != file.size:
        found.close()
        raise ArtifactDamaged(f"{file.name} is not as it was recorded: make the film anew")
    return found


async def _from_disk(found: FileIO, start: int, length: int) -> AsyncIterator[bytes]:
    with found:
        end = start + length
        while start < end:
            piece = await asyncio.to_thread(os.pread, found.fileno(), min(PIECE, end - start), start)
            if not piece:
                raise ArtifactDamaged("a file became shorter while it was sent")
            start += len(piece)
            yield piece


async def _from_afar(
    file: PublishedFile, start: int, length: int, first: bytes, *, artifacts: Artifacts
) -> AsyncIterator[bytes]:
    yield first
    at, end = start + len(first), start + length
    while at < end:
        piece = await artifacts.read(file.key, at, min(FAR_PIECE, end - at), size=file.size)
        if not piece:
            raise ArtifactDamaged("a file became shorter while it was sent")
        at += len(piece)
        yield piece
