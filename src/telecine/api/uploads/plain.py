"""One request, one file: `curl -T holiday.mp4 …/api/v1/uploads/holiday.mp4?title=Holiday`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.uploads import tus
from telecine.api.uploads.response import UploadResponse, headers_of, shown
from telecine.api.uploads.tus import TusError, TusRoute
from telecine.api.uploads.upload_service import UploadService, desk_of
from telecine.engine.uploads.records import CHECKING, DONE, REFUSED, Upload

router = Router(tags=["uploads"], prefix="/api/v1/uploads", route_class=TusRoute)

BODY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "required": True}


@router.put(
    "/{name}",
    status_code=201,
    response_model=UploadResponse,
    responses={202: {"model": UploadResponse}, **answers(400, 401, 403, 408, 411, 413, 422, 429, 503, 507)},
    openapi_extra={"requestBody": BODY},
)
async def put_file(name: str, request: Request, who: Owner, house: Here) -> Response:
    """A whole file, as it is. Wishes are in the query: `?ladder=web&qualities=720p,360p&title=My+holiday`.

    `Content-Length` is needed; `Content-Digest`, `Digest` or `X-Checksum-Sha256` may say what must arrive.
    """
    desk, headers = desk_of(house), request.headers
    said = {**request.query_params, "filename": name}
    if (promised := tus.promised_sha256(headers)) is not None:
        said["sha256"] = promised
    wishes = desk.wishes(said, house.settings)
    length = tus.number(headers, "Content-Length")
    if length is None:
        raise TusError(411, "length_required", "send Content-Length, so that there is space for the file")
    if not length:
        raise tus.bad("a file without bytes is nothing to take")
    upload = await desk.begin(who.owner, wishes.name, length, ({**said}, wishes.spec))
    upload = await _taken(desk, house, request, upload)
    status = {DONE: 201, CHECKING: 202}[upload.state]
    place = {"Location": f"/api/v1/uploads/{upload.id}", **headers_of(upload)}
    return answer(shown(upload), status=status, headers=place)


async def _taken(desk: UploadService, house: Here, request: Request, upload: Upload) -> Upload:
    """Nobody can go on with it later: what does not come whole, or is refused, leaves nothing behind."""
    try:
        async with desk.slot(upload) as slot:
            await desk.receive(house, request.receive, (upload, slot, None))
        if not (await desk.uploads.find(upload.id)).is_whole:
            raise TusError(408, "timeout", "the file broke off: send it again", {"Connection": "close"})
    except BaseException:
        await desk.forget(upload.id)
        raise
    found = await desk.finisher.finish(upload.id)
    if found.state == REFUSED:
        await desk.forget(upload.id)
        raise TusError(422, "media_refused", str(found.error))
    return found
