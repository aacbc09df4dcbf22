"""The addresses under which films are watched.

    /media/v/<video>/…             with a key, a session, or without if `open_media` says so
    /media/t/<link>/<video>/…      with a signed link; lists name things relative to themselves, so all inherit it

Names in an address are looked up among what was recorded; none ever becomes a path.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Path
from starlette.requests import Request
from starlette.responses import Response

from telecine.api.http.auth import Anybody
from telecine.api.http.context import Here
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.apps.transcode.http.media_access import Viewer, Watches
from telecine.apps.transcode.http.media_bytes import TYPES, ByteRequest, send_file, send_text
from telecine.apps.transcode.http.media_state import room_of
from telecine.apps.transcode.names import NAME
from telecine.apps.transcode.stages.package import MASTER
from telecine.engine.queries.published_files import PublishedFile, PublishedVersion
from telecine.facts import Status

router = Router(tags=["media"])

BESIDE = ("poster", "sprites")
MAX_NUMBER = 2**31 - 1
PIECE = re.compile(r"([0-9]{1,18})-([0-9]{1,9})\.(m4s|mp4)")
LIST = {200: {"content": {TYPES["m3u8"]: {"schema": {"type": "string"}}}, "description": "A playlist"}}
BYTES = {"schema": {"type": "string", "format": "binary"}}
KINDS = {name: BYTES for kind, name in TYPES.items() if kind != "m3u8"}
WHOLE: dict[int | str, dict[str, Any]] = {
    200: {"content": KINDS, "description": "The file"},
    206: {"content": KINDS, "description": "A range of it"},
    304: {"description": "You have it already"},
}
WHOLE_OR_LIST = {**WHOLE, 200: {"content": dict.fromkeys(TYPES.values(), BYTES), "description": "List or file"}}
UNCHANGED = {304: {"description": "You have it already"}}
REFUSALS = answers(401, 403, 404, 429, 503)

VideoName = Annotated[str, Path(max_length=255, examples=["big-buck-bunny-3f9a2c41"])]
Number = Annotated[int, Path(ge=1, le=MAX_NUMBER, examples=[1])]
Job = Annotated[int, Path(ge=1, le=1 << 53, examples=[7])]
Handler = Callable[..., Awaitable[Response]]


def watched(path: str, **how: Any) -> Callable[[Handler], Handler]:
    """Register a handler under both addresses, for GET and HEAD."""

    def register(handler: Handler) -> Handler:
        router.get(f"/media/v/{{video}}/{path}", response_class=Response, **how)(handler)
        for base, methods in (("/media/v/{video}", ["HEAD"]), ("/media/t/{token}/{video}", ["GET", "HEAD"])):
            router.add_api_route(f"{base}/{path}", handler, methods=methods, include_in_schema=False)
        return handler

    return register


@watched("master.m3u8", responses={**LIST, **UNCHANGED, **REFUSALS})
async def shown_film(video: VideoName, viewer: Watches, house: Here, request: Request, _: Anybody) -> Response:
    """The master playlist of the version that is shown now."""
    version = await _version(house, viewer, None)
    lists = await room_of(house).screening.version(version.id, version.number)
    return send_text(_asked(request), lists[MASTER], "m3u8", _headers(viewer))


@watched("v{number}/{name:path}", responses={**WHOLE_OR_LIST, **REFUSALS, **answers(416)})
async def film_of_a_version(
    video: VideoName, number: Number, name: str, *, viewer: Watches, house: Here, request: Request, _: Anybody
) -> Response:
    """A playlist of one version (`master.m3u8`, `720p/index.m3u8`, …), or a picture beside it (`poster.jpg`, …)."""
    version = await _version(house, viewer, number)
    room = room_of(house)
    if name.endswith(".m3u8"):
        lists = await room.screening.version(version.id, version.number)
        text = lists.get(f"v{number}/{name}")
        if text is None:
            raise viewer.nothing()
        return send_text(_asked(request), text, "m3u8", _headers(viewer))
    file = None if "\0" in name else await room.watching.beside(version, BESIDE, name)
    return await _sent(house, viewer, file, request)


@watched("s/{piece}", responses={**WHOLE, **REFUSALS, **answers(416)})
async def piece_of_film(
    video: VideoName, piece: str, viewer: Watches, house: Here, request: Request, _: Anybody
) -> Response:
    """An init or a segment, as playlists name it. It never changes."""
    found = PIECE.fullmatch(piece)
    if found is None:
        raise viewer.nothing()
    file = await room_of(house).watching.file(video, int(found[1]), int(found[2]))
    if file is not None and not file.name.endswith(f".{found[3]}"):
        raise viewer.nothing()
    return await _sent(house, viewer, file, request)


@watched("preview/{job_id}/{name:path}", responses={**LIST, **UNCHANGED, **REFUSALS})
async def film_that_grows(
    video: VideoName, job_id: Job, name: str, *, viewer: Watches, house: Here, request: Request, _: Anybody
) -> Response:
    """A playlist of what a running job has made by now. It grows until the job has completed."""
    room = room_of(house)
    making = await room.watching.job(video, job_id, NAME)
    if making is None:
        raise viewer.nothing()
    viewer.may_see(making.owner, making.now, shown=False)
    if making.status in (Status.FAILED, Status.CANCELLED):
        raise viewer.nothing()
    text = (await room.screening.preview(job_id, making.status)).get(f"preview/{job_id}/{name}")
    if text is None:
        raise viewer.nothing()
    return send_text(_asked(request), text, "m3u8", _headers(viewer))


async def _version(house: Here, viewer: Viewer, number: int | None) -> PublishedVersion:
    version = await room_of(house).watching.version(viewer.video, number)
    if version is None:
        raise viewer.nothing()
    viewer.may_see(version.owner, version.now, shown=version.lingers)
    return version


async def _sent(house: Here, viewer: Viewer, file: PublishedFile | None, request: Request) -> Response:
    kind = "" if file is None else file.name.rpartition(".")[2]
    if file is None or kind not in TYPES:
        raise viewer.nothing()
    viewer.may_see(file.owner, file.now, shown=file.published and file.lingers)
    headers = {**_headers(viewer), "Cache-Control": viewer.keeping(file.now)}
    return await send_file(_asked(request), file, kind, headers, house.artifacts)


def _asked(request: Request) -> ByteRequest:
    return ByteRequest(request.method, request.headers)


def _headers(viewer: Viewer) -> dict[str, str]:
    return {} if viewer.link is not None else {"Vary": "Authorization, Cookie"}
