"""tus 1.0 under /api/v1/uploads, and uploads as JSON."""

from __future__ import annotations

import base64
from typing import Annotated, Any

from fastapi import Query
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from telecine.api.http.auth import Anybody, Owner, visible
from telecine.api.http.context import Here, ServerContext
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.uploads import tus
from telecine.api.uploads.disk import NAME
from telecine.api.uploads.response import UploadList, UploadResponse, headers_of, shown
from telecine.api.uploads.tus import CONTENT, Spoken, TusError, TusRoute
from telecine.api.uploads.upload_service import UploadService, desk_of
from telecine.engine.accounts.keys import Caller
from telecine.engine.uploads.records import CHECKING, DONE, OPEN, REFUSED, Upload, none_such
from telecine.errors import Conflict, TooLarge

router = Router(tags=["uploads"], prefix="/api/v1/uploads", route_class=TusRoute)

METHODS = "GET, HEAD, PATCH, PUT, DELETE, OPTIONS"
TUS = answers(400, 401, 403, 404, 409, 410, 412, 413, 415, 422, 423, 429, 460, 503, 507)


def _header(name: str, what: str, example: str, pattern: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern, "examples": [example]}
    return {"in": "header", "name": name, "required": True, "description": what, "schema": schema}


def _headers(*more: dict[str, Any]) -> dict[str, Any]:
    return {"parameters": [_header("Tus-Resumable", "The version of tus", tus.VERSION, r"^1\.0\.0$"), *more]}


LENGTH = _header("Upload-Length", "Bytes of the whole file", "1048576", "^[1-9][0-9]{0,8}$")
OFFSET = _header("Upload-Offset", "Where these bytes begin", "0", "^(0|[1-9][0-9]{0,17})$")


@router.options("", status_code=204, response_class=Response)
@router.options("/{upload_id}", status_code=204, response_class=Response, include_in_schema=False)
async def say_what_is_spoken(house: Here, _: Anybody) -> Response:
    """Which tus is spoken here, and how large a file may be."""
    told = {
        "Tus-Version": tus.VERSION,
        "Tus-Extension": tus.EXTENSIONS,
        "Tus-Checksum-Algorithm": ",".join(tus.ALGORITHMS),
        "Tus-Max-Size": str(desk_of(house).most),
    }
    return Response(status_code=204, headers=told)


@router.post("", status_code=201, response_class=Response, responses=TUS, openapi_extra=_headers(LENGTH))
async def create_upload(request: Request, who: Owner, house: Here, _: Spoken) -> Response:
    """Announce a file; its space is reserved at once. Its first bytes may come along.

    `Upload-Metadata` has its name and wishes, pairs with the values in Base64: `name ZmlsbS5tcDQ=,ladder d2Vi`.
    """
    desk, headers = desk_of(house), request.headers
    with_bytes = _comes_with_bytes(headers)
    checksum = tus.checksum(headers)
    said = tus.metadata(headers)
    wishes = desk.wishes(said, house.settings)
    upload = await desk.begin(who.owner, wishes.name, _announced(headers), ({**said}, wishes.spec))
    if with_bytes:
        async with desk.slot(upload) as slot:
            await desk.receive(house, request.receive, (upload, slot, checksum))
        upload = await _settled(desk, upload.id)
    place = {"Location": f"{_root(request, house)}/{upload.id}", **headers_of(upload), **_expiry(upload)}
    return Response(status_code=201, headers=place)


@router.get("", response_model=UploadList, responses=answers(401, 403, 422, 429, 503))
async def list_uploads(
    who: Owner,
    house: Here,
    cursor: Annotated[str | None, Query(pattern="^[0-9]{1,18}-[0-9a-f]{32}$")] = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """Your uploads, the newest first; an administrator's list has everybody's."""
    found = await desk_of(house).uploads.list(who.sees, cursor=cursor, limit=limit)
    return answer(UploadList(items=[shown(one) for one in found.items], next=found.next))


@router.head("/{upload_id}", response_class=Response, responses=TUS, openapi_extra=_headers())
async def ask_for_the_offset(upload_id: str, who: Owner, house: Here, _: Spoken) -> Response:
    """How many bytes have come: the upload goes on from there."""
    desk = desk_of(house)
    upload = await _mine(desk, who, upload_id)
    await desk.hush(upload_id)
    upload = await _mine(desk, who, upload_id)
    _still_there(upload)
    told = {"Upload-Length": str(upload.length), **headers_of(upload), **_expiry(upload)}
    if upload.metadata:
        told["Upload-Metadata"] = _packed(upload)
    return Response(status_code=200, headers=told)


@router.get("/{upload_id}", response_model=UploadResponse, responses=answers(401, 403, 404, 429, 503))
async def show_upload(upload_id: str, who: Owner, house: Here) -> Response:
    """How far it is, and what became of it: a subject and its job, or the reason why not."""
    return answer(shown(await _mine(desk_of(house), who, upload_id)))


@router.patch(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    responses=TUS,
    openapi_extra={
        **_headers(OFFSET),
        "requestBody": {"content": {CONTENT: {"schema": {"type": "string", "format": "binary"}}}},
    },
)
async def send_bytes(upload_id: str, request: Request, who: Owner, house: Here, _: Spoken) -> Response:
    """The next bytes. The answer to the last ones says what they became: Telecine-Video, Telecine-Job, Telecine-How.

    `Upload-Checksum` may say what they hash to, in Base64: `sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=`.
    """
    desk, headers = desk_of(house), request.headers
    if headers.get("content-type", "").partition(";")[0].strip().lower() != CONTENT:
        raise TusError(415, "bad_type", f"bytes come as Content-Type: {CONTENT}")
    offset, checksum = tus.number(headers, "Upload-Offset"), tus.checksum(headers)
    if offset is None:
        raise tus.bad("Upload-Offset says where these bytes begin; send it")
    upload = await _mine(desk, who, upload_id)
    if upload.state not in (CHECKING, DONE):
        _fits(upload, offset, headers)
        async with desk.slot(upload) as slot:
            upload = await _mine(desk, who, upload_id)
            _fits(upload, offset, headers)
            line = await desk.receive(house, request.receive, (upload, slot, checksum))
        upload = await desk.uploads.find(upload_id)
        if not line.whole and not upload.is_whole:
            raise _broken(house)
    elif offset != upload.length:
        raise Conflict(f"upload {upload_id} is whole: nothing follows at byte {offset}")
    upload = await _settled(desk, upload_id)
    return Response(status_code=204, headers={**headers_of(upload), **_expiry(upload)})


@router.post("/{upload_id}", status_code=204, response_class=Response, responses=TUS, include_in_schema=False)
async def send_bytes_by_another_word(upload_id: str, request: Request, who: Owner, house: Here) -> Response:
    """For senders whose network lets no PATCH through."""
    if request.headers.get(tus.OVERRIDE, "").upper() != "PATCH":
        words = f"bytes come with PATCH, or with {tus.OVERRIDE}: PATCH"
        raise TusError(405, "method_not_allowed", words, {"Allow": METHODS})
    tus.check_version(request)
    return await send_bytes(upload_id, request, who, house, None)


@router.delete("/{upload_id}", status_code=204, response_class=Response, responses=TUS)
async def end_upload(upload_id: str, who: Owner, house: Here, _: Spoken) -> Response:
    """Give it up: its bytes and its space are free at once."""
    desk = desk_of(house)
    upload = await _mine(desk, who, upload_id)
    if upload.state in (CHECKING, DONE):
        raise Conflict(f"upload {upload_id} is whole: delete {upload.subject_id or 'what becomes of it'}")
    await desk.hush(upload_id)
    if not await desk.forget(upload_id):
        raise TusError(423, "locked", f"somebody sends upload {upload_id} just now; end that first")
    return Response(status_code=204)


# -- what every route asks ---------------------------------------------------------------------------


async def _mine(desk: UploadService, who: Caller, upload_id: str) -> Upload:
    """The same answer for an upload of somebody else and for none."""
    if not NAME.fullmatch(upload_id):
        raise none_such(upload_id)
    upload = await desk.uploads.find(upload_id)
    visible(who, upload.owner, str(none_such(upload_id)))
    return upload


def _fits(upload: Upload, offset: int, headers: Headers) -> None:
    """Whether bytes may come now, from here on, and so many."""
    _still_there(upload)
    if upload.state != OPEN or offset != upload.received:
        told = {"Upload-Offset": str(upload.received)}
        raise TusError(409, "conflict", f"upload {upload.id} stands at byte {upload.received}, not {offset}", told)
    length = tus.number(headers, "Content-Length")
    if length is not None and offset + length > upload.length:
        raise TooLarge(f"upload {upload.id} has {upload.length} bytes; {length} more at byte {offset} are too many")


def _still_there(upload: Upload) -> None:
    if upload.state == REFUSED:
        raise TusError(410, "refused", f"upload {upload.id} was refused: {upload.error}")
    if upload.has_expired:
        raise TusError(410, "expired", f"upload {upload.id} waited too long for its next byte: begin a new one")


async def _settled(desk: UploadService, upload_id: str) -> Upload:
    """The upload, finished if it is whole; refused in the words of whoever looked at it."""
    upload = await desk.uploads.find(upload_id)
    if upload.state == CHECKING:
        upload = await desk.finisher.finish(upload_id)
    if upload.state == REFUSED:
        raise TusError(422, "media_refused", str(upload.error), headers_of(upload))
    return upload


def _broken(house: ServerContext) -> TusError:
    if house.closing.is_set():
        return TusError(503, "closing", "the server stops; ask for the offset and go on soon", {"Retry-After": "2"})
    return TusError(408, "timeout", "nothing came for a while; ask for the offset and go on", {"Connection": "close"})


def _announced(headers: Headers) -> int:
    if headers.get("upload-defer-length") is not None:
        raise tus.bad("the length must be known before: send Upload-Length, not Upload-Defer-Length")
    length = tus.number(headers, "Upload-Length")
    if length is None:
        raise tus.bad("Upload-Length says how many bytes will come; send it")
    if not length:
        raise tus.bad("a file without bytes is nothing to take")
    return length


def _comes_with_bytes(headers: Headers) -> bool:
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == CONTENT:
        return True
    if headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
        raise TusError(415, "bad_type", f"bytes come as Content-Type: {CONTENT}")
    return False


def _root(request: Request, house: ServerContext) -> str:
    """Behind a proxy, the address under which we are known; else a path, which is right anywhere."""
    return f"{house.settings.public_url or ''}/api/v1/uploads"


def _expiry(upload: Upload) -> dict[str, str]:
    return {"Upload-Expires": tus.http_date(upload.expires_at)} if upload.state == OPEN else {}


def _packed(upload: Upload) -> str:
    pairs = ((name, base64.b64encode(str(value).encode()).decode()) for name, value in upload.metadata.items())
    return ",".join(f"{name} {value}".strip() for name, value in pairs)
