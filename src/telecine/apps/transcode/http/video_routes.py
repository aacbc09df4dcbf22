"""The routes of videos."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Annotated, Any

from fastapi import Body, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from telecine.api.http.auth import Owner, visible
from telecine.api.http.context import Here, ServerContext
from telecine.api.http.json_response import answer
from telecine.api.http.params import STORABLE, Cursor, Limit, Name, Priority, Wanted
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.openapi.examples import shown_as
from telecine.api.routes.bulk import actor
from telecine.apps.transcode.http.video_examples import GOES_ON
from telecine.apps.transcode.http.video_response import KeptVersion, ShownVersion, VideoDetails, VideoStarted, full
from telecine.apps.transcode.names import KIND, NAME
from telecine.apps.transcode.spec import TranscodeSpec, parse
from telecine.apps.transcode.videos import versions
from telecine.apps.transcode.videos.retranscode import FIXED, retranscode
from telecine.apps.transcode.videos.source_policy import SourcePolicy
from telecine.apps.transcode.videos.start import start_video
from telecine.apps.transcode.videos.status import VideoStatus
from telecine.apps.transcode.videos.video_view import Video, page_of, videos_of
from telecine.engine.accounts.keys import Caller
from telecine.engine.queries.view_models import Page
from telecine.errors import NotAllowed
from telecine.wire.scalars import WHOLE

router = Router(prefix="/api/v1/videos", tags=["videos"])

FRESH = {"Cache-Control": "no-store"}
READERS, MAX_READERS = "readers of sources", 2
MAX_NUMBER = 2**31 - 1
PROBLEMS = answers(401, 403, 404, 422, 429)
LINKS = {
    name: {"operationId": operation, "parameters": {"video_id": "$response.body#/id"}}
    for name, operation in {"video": "get_video", "retranscode": "retranscode_video", "delete": "delete_video"}.items()
}

VideoPath = Annotated[str, Path(min_length=1, max_length=255, pattern=STORABLE, examples=["big-buck-bunny-3f9a2c41"])]
NumberPath = Annotated[int, Path(ge=1, le=MAX_NUMBER, description="Number of the version", examples=[1])]


class NewVideo(TranscodeSpec):
    """A film to be made: where it is, and what is wished for. What is left open, the settings decide."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "https://example.org/film.mp4"}]})

    source: str = Field(
        min_length=1,
        description="https://…, s3://…, upload://… or a path on the server",
        json_schema_extra={"pattern": r"^(/|[A-Za-z][A-Za-z0-9+.-]*://)"},
    )
    priority: Priority = "normal"
    owner: Name | None = Field(None, description="Whose video it is, if an administrator makes it for somebody else")


class Retranscode(BaseModel):
    """What shall be otherwise; without anything, all is made again as it was."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"qualities": ["720p"]}]})

    qualities: list[Name] | None = Field(
        None, min_length=1, max_length=50, description="Only these; the others are taken over from the present version"
    )
    wishes: dict[str, Any] = Field({}, description="Fields of a new video but for its source: ladder, preset, …")
    priority: Priority = "normal"


class Rollback(BaseModel):
    """To which version; without a number: to the one before the present."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"version": 1}]})

    version: Annotated[int, Field(ge=1, le=MAX_NUMBER), WHOLE] | None = None


@router.get("", response_model=Page[Video], responses=answers(401, 403, 422, 429))
async def list_videos(
    who: Owner,
    house: Here,
    *,
    status: Annotated[VideoStatus | None, Query(description="Only videos that stand so")] = None,
    owner: Wanted = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> Response:
    """Videos, those that came last in front. A page by `status` may be short and yet have a `next`."""
    if who.sees is not None and owner not in (None, who.owner):
        return answer(Page(()), Page[Video], headers=FRESH)
    owner = owner if who.sees is None else who.owner
    page = await videos_of(house.engine, owner=owner, status=status, cursor=cursor, limit=limit)
    return answer(page, Page[Video], headers=FRESH)


@router.post(
    "",
    status_code=201,
    response_model=VideoStarted,
    responses={
        201: {"links": LINKS}, 200: {"model": VideoStarted, "links": LINKS, "content": shown_as(GOES_ON)},
        **answers(401, 403, 404, 409, 422, 429),
    },
)  # fmt: skip
async def create_video(wanted: NewVideo, who: Owner, house: Here) -> Response:
    """Make a video of a source: https://…, s3://…, upload://…, or a path on the server.

    The same bytes with the same wishes are the same video: a job that is under way goes on, one that failed is opened
    again, a film that is there is the answer (200). A path is read once to know its bytes, unless you give `sha256`.
    """
    if wanted.owner not in (None, who.owner) and not who.is_admin:
        raise NotAllowed("only an administrator makes videos for others: leave `owner` out")
    spec = await _checked(house, TranscodeSpec(**wanted.model_dump(exclude={"priority", "owner"})), who)
    owner = who.owner if wanted.owner is None else wanted.owner
    async with _turn(house, spec):
        begun = await start_video(house.engine, spec, owner=owner, priority=wanted.priority)
    status = 201 if begun.how == "submitted" else 200
    place = {"Location": f"/api/v1/videos/{begun.video}"}
    return answer(VideoStarted(begun.video, begun.job_id, begun.how), status=status, headers=place)


def _turn(house: ServerContext, spec: TranscodeSpec) -> AbstractAsyncContextManager[None]:
    """Who must read a film first waits for his turn: else some large ones would take all threads from the viewers."""
    if "://" in spec.source or spec.sha256 is not None:
        return nullcontext()
    turns: asyncio.Semaphore = house.rooms.setdefault(READERS, asyncio.Semaphore(MAX_READERS))
    return turns


async def _checked(house: ServerContext, spec: TranscodeSpec, who: Caller) -> TranscodeSpec:
    check = house.checks.get(NAME)
    if isinstance(check, SourcePolicy):
        return await check.checked(spec, who)
    raise NotAllowed("this server makes no videos")


@router.get("/{video_id}", response_model=VideoDetails, responses=PROBLEMS)
async def get_video(video_id: VideoPath, who: Owner, house: Here, request: Request) -> Response:
    """One video: its status, qualities with progress, versions, jobs, and signed addresses to watch it at."""
    page = await page_of(house.engine, video_id)
    visible(who, page.owner, _none(video_id))
    return answer(await full(house, page, str(request.base_url)), headers=FRESH)


@router.post(
    "/{video_id}/retranscode",
    status_code=202,
    response_model=VideoStarted,
    responses={**PROBLEMS, **answers(409)},
)
async def retranscode_video(
    video_id: VideoPath, who: Owner, house: Here, wanted: Annotated[Retranscode | None, Body()] = None
) -> Response:
    """Make it anew, all of it or some qualities. The present version plays on until the new one is whole."""
    await _mine(house, who, video_id)
    wanted = wanted or Retranscode()
    if bad := next((name for name in wanted.wishes if name in FIXED), None):
        raise NotAllowed(f"{bad!r} of a video stays as it is: create another one")
    wishes = {**wanted.wishes, **({} if wanted.qualities is None else {"qualities": wanted.qualities})}
    # Without a ladder of its own the video keeps the one it has, which `retranscode` compares with the qualities.
    if "ladder" in wishes and isinstance(check := house.checks.get(NAME), SourcePolicy):
        check.sensible(parse({**wishes, "source": "/the/same"}))
    begun = await retranscode(house.engine, video_id, wishes, priority=wanted.priority)
    return answer(VideoStarted(begun.video, begun.job_id, begun.how), status=202)


@router.post("/{video_id}/rollback", response_model=ShownVersion, responses={**PROBLEMS, **answers(409)})
async def roll_back_video(
    video_id: VideoPath, who: Owner, house: Here, wanted: Annotated[Rollback | None, Body()] = None
) -> Response:
    """Show an older version again. Refused if any of its files is gone."""
    await _mine(house, who, video_id)
    number = (wanted or Rollback()).version
    shown = await versions.roll_back(house.engine, house.artifacts, video_id, number, actor=actor(who))
    return answer(ShownVersion(video_id, shown))


@router.post("/{video_id}/versions/{number}/keep", response_model=KeptVersion, responses={**PROBLEMS, **answers(409)})
async def keep_version(video_id: VideoPath, number: NumberPath, who: Owner, house: Here) -> Response:
    """Never free this version, until it is let go."""
    return await _keep(house, who, video_id, number, True)


@router.post("/{video_id}/versions/{number}/let-go", response_model=KeptVersion, responses={**PROBLEMS, **answers(409)})
async def let_version_go(video_id: VideoPath, number: NumberPath, who: Owner, house: Here) -> Response:
    """Undo `keep`: when another version has taken its place for long enough, it is freed."""
    return await _keep(house, who, video_id, number, False)


@router.delete("/{video_id}", status_code=204, response_class=Response, responses=PROBLEMS)
async def delete_video(video_id: VideoPath, who: Owner, house: Here) -> Response:
    """Delete it: its jobs are cancelled, nobody sees it any more, its bytes go when the last worker has let go."""
    await _mine(house, who, video_id)
    await house.engine.subjects.delete((KIND, video_id), actor=actor(who))
    return Response(status_code=204)


async def _keep(house: ServerContext, who: Caller, video_id: str, number: int, wanted: bool) -> Response:
    await _mine(house, who, video_id)
    changed = await versions.keep(house.engine, video_id, number, wanted, actor=actor(who))
    return answer(KeptVersion(video_id, number, wanted, changed))


async def _mine(house: ServerContext, who: Caller, video_id: str) -> None:
    found = await house.engine.subjects.get(KIND, video_id)
    visible(who, found.owner, _none(video_id))


def _none(video_id: str) -> str:
    """The one sentence for videos of others and for videos that never were."""
    return f"there is no {KIND} {video_id!r}"
