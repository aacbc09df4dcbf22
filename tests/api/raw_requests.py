"""A film to send, and tus spoken by hand."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from telecine.api.uploads.upload_service import UploadService, desk_of
from telecine.wiring import installed_flows
from tests.api.in_process_server import Front
from tests.media.sources import KINDS

ROOT = "/api/v1/uploads"
TUS = {"Tus-Resumable": "1.0.0"}
BYTES = {**TUS, "Content-Type": "application/offset+octet-stream"}


def a_film(folder: Path, kind: str = "mp4-shorter-than-a-segment") -> bytes:
    return KINDS[kind].make(folder / "film.mp4").read_bytes()


def packed(**said: str) -> str:
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in said.items())


async def ready(front: Front) -> UploadService:
    """The desk of a server that knows how films are transcoded."""
    for flow in installed_flows(front.settings):
        await front.parts.engine.jobs.register(flow)
    return desk_of(front.house)


async def created(client: httpx.AsyncClient, length: int, **said: str) -> str:
    """The address of a new upload."""
    headers = {**TUS, "Upload-Length": str(length)} | ({"Upload-Metadata": packed(**said)} if said else {})
    answer = await client.post(ROOT, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


async def sent(client: httpx.AsyncClient, place: str, offset: int, body: Any, **more: str) -> httpx.Response:
    return await client.patch(place, headers={**BYTES, "Upload-Offset": str(offset), **more}, content=body)


async def offset_of(client: httpx.AsyncClient, place: str) -> int:
    answer = await client.head(place, headers=TUS)
    assert answer.status_code == 200, answer.status_code
    return int(answer.headers["upload-offset"])


async def pieces(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def jobs_of(front: Front) -> list[dict[str, Any]]:
    return [dict(row) for row in await front.bed.sql("select id, owner, subject_id, spec from job order by id")]


def file_of(front: Front, place: str) -> Path:
    """Where the bytes of an upload are while it is open."""
    return front.settings.uploads / place.rsplit("/", 1)[1]
