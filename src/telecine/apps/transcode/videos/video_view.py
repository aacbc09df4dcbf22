"""How videos stand: derived from their published versions and their jobs, stored nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from telecine.apps.transcode.names import KIND, NAME
from telecine.apps.transcode.stages.package import MASTER
from telecine.apps.transcode.stages.pictures import THUMBS
from telecine.apps.transcode.videos.progress import TranscodeProgress, progress_of_view
from telecine.apps.transcode.videos.status import VideoStatus, VideoStep, beside, status_of, steps_of
from telecine.engine import Engine
from telecine.engine.queries.query_operations import Queries
from telecine.engine.queries.subjects import cursor_after
from telecine.engine.queries.view_models import JobLine, Page, SubjectLine, VersionView
from telecine.errors import NotFound
from telecine.facts import Instant, Json, Status

POSTER = "poster.jpg"
# A list by status is sieved: so many are looked at for one page, which may then be short.
MAX_LOOKED_AT = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """A video as lists show it. `job` is its newest one, `open_job` the newest that has not ended.

    `beside` says what else goes on with a video that can be watched: "re-transcoding 40 %".
    """

    id: str
    owner: str = ""
    status: VideoStatus
    beside: str | None = None
    version: int | None
    facts: dict[str, Json] = field(default_factory=dict)
    job: JobLine | None = None
    open_job: JobLine | None = None
    created_at: Instant | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoPage(Video):
    """A video in full. `source`, `progress`, `steps` and `claim` are those of `job`; `master`, `poster` and
    `thumbnails` are artifact keys.
    """

    source: str | None = None
    versions: tuple[VersionView, ...] = ()
    jobs: tuple[JobLine, ...] = ()
    progress: TranscodeProgress | None = None
    steps: tuple[VideoStep, ...] = ()
    claim: str | None = None
    workers: tuple[str, ...] = ()
    master: str | None = None
    poster: str | None = None
    thumbnails: str | None = None


async def video_of(engine: Engine, video_id: str) -> Video:
    """One video; `NotFound` if nobody ever submitted it."""
    return Video(**_plain(await engine.subjects.get(KIND, video_id)))


async def videos_of(
    engine: Engine,
    *,
    owner: str | None = None,
    status: VideoStatus | None = None,
    cursor: str | None = None,
    limit: int = 100,
) -> Page[Video]:
    """A page of videos, those that were first heard of last in front. One by `status` may be short, and yet go on."""
    found: list[Video] = []
    looked_at = 0
    while True:
        page = await engine.subjects.list(KIND, owner=owner, cursor=cursor, limit=limit)
        for line in page.items:
            video = Video(**_plain(line))
            if status in (None, video.status):
                found.append(video)
            if len(found) == limit and line is not page.items[-1]:
                return Page(tuple(found), cursor_after(line))
        cursor, looked_at = page.next, looked_at + len(page.items)
        if len(found) == limit or cursor is None or looked_at >= MAX_LOOKED_AT:
            return Page(tuple(found), cursor)


def _plain(line: SubjectLine) -> dict[str, Any]:
    about = (line.version, line.open_job, line.job)
    same = ("id", "owner", "version", "facts", "job", "open_job", "created_at")
    return {**{name: getattr(line, name) for name in same}, "status": status_of(*about), "beside": beside(*about)}


async def page_of(engine: Engine, video_id: str) -> VideoPage:
    """All that there is to say about a video."""
    found = await engine.subjects.get(KIND, video_id)
    current = next((one for one in found.versions if one.current), None)
    files = {} if current is None else await engine.queries.named(current.id, MASTER, POSTER, THUMBS)
    newest = next((line.id for line in (found.open_job, *found.jobs) if line is not None and line.flow == NAME), None)
    job_id = newest or (current.job_id if current is not None else None)
    return VideoPage(
        **_plain(found),
        versions=found.versions,
        jobs=found.jobs,
        **({} if job_id is None else await _job(engine.queries, job_id)),
        master=files.get(("package", MASTER)),
        poster=files.get(("poster", POSTER)),
        thumbnails=files.get(("sprites", THUMBS)),
    )


async def _job(views: Queries, job_id: int) -> dict[str, Any]:
    try:
        job = await views.job(job_id)
    except NotFound:  # put away and pruned since the subject was read
        return {}
    return {
        "source": job.spec.get("source") if isinstance(job.spec, dict) else None,
        "progress": await progress_of_view(views, job),
        "steps": steps_of(job.stages),
        "claim": await claim_of(views, job_id, job.status),
        "workers": tuple(worker.name or str(worker.id) for worker in job.workers),
    }


async def claim_of(views: Queries, job_id: int, status: str) -> str:
    """A job in the six words for claims: claimed while a task of it is; else as the first that waits."""
    if Status(status).is_final:
        return "completed" if status == Status.COMPLETED else "failed"
    running = (await views.tasks(job_id, state="running")).items
    if running:
        return "claimed" if any(task.claim_state == "claimed" for task in running) else "expired"
    waiting = (await views.tasks(job_id, state="ready", limit=1)).items
    return waiting[0].claim_state if waiting else "unclaimed"
