"""A video as the API shows it, with the addresses under which it is watched."""

from __future__ import annotations

from dataclasses import dataclass, fields

from telecine.api.http.context import ServerContext
from telecine.apps.transcode.http.media_state import PlayableVideo, Playback, playback
from telecine.apps.transcode.names import NAME
from telecine.apps.transcode.stages.pictures import THUMBS
from telecine.apps.transcode.videos.progress import Quality, TranscodeProgress
from telecine.apps.transcode.videos.status import VideoStep
from telecine.apps.transcode.videos.video_view import POSTER, Video, VideoPage
from telecine.engine.queries.view_models import JobLine, VersionView
from telecine.facts import SECOND, Json, Millis
from telecine.settings.addresses import redacted


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoProgress:
    """How the newest job stands, quality by quality. `eta_ms` and `speed` are null while nobody can tell."""

    job_id: int
    status: str
    step: str | None
    percent: float
    qualities: tuple[Quality, ...]
    length_ms: Millis | None
    worked_ms: Millis
    eta_ms: Millis | None
    speed: float | None
    error: dict[str, Json] | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoDetails(Video):
    """A video in full: its versions, its jobs, how the newest one stands, and where to watch it."""

    source: str | None
    length_ms: Millis | None
    versions: tuple[VersionView, ...]
    jobs: tuple[JobLine, ...]
    progress: VideoProgress | None
    steps: tuple[VideoStep, ...]
    claim: str | None
    workers: tuple[str, ...]
    playback: Playback


@dataclass(frozen=True, slots=True)
class VideoStarted:
    """A video and the job that makes it. `how`: submitted, continued, opened again, or made before."""

    id: str
    job_id: int
    how: str


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """Which version is shown now."""

    id: str
    version: int


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """Whether retention leaves a version alone."""

    id: str
    version: int
    keep: bool
    changed: bool


async def full(house: ServerContext, page: VideoPage, asked: str) -> VideoDetails:
    """`asked`: under which address of ours."""
    job = page.open_job
    growing = job.id if job is not None and job.flow == NAME and job.status != "pending" else None
    show = PlayableVideo(
        video=page.id,
        version=page.version,
        poster=POSTER if page.poster else None,
        thumbnails=THUMBS if page.thumbnails else None,
        growing=growing,
    )
    same = {one.name: getattr(page, one.name) for one in fields(Video)}
    progress = None if page.progress is None else _progressing(page.progress)
    length = page.facts.get("duration_ms")
    return VideoDetails(
        **same,
        source=redacted(page.source) if isinstance(page.source, str) else None,  # without secrets that it may have
        length_ms=length if length is not None or progress is None else progress.length_ms,
        versions=page.versions,
        jobs=page.jobs,
        progress=progress,
        steps=page.steps,
        claim=page.claim,
        workers=page.workers,
        playback=await playback(house, show, asked),
    )


def _progressing(state: TranscodeProgress) -> VideoProgress:
    return VideoProgress(
        job_id=state.job_id,
        status=state.status,
        step=state.step,
        percent=state.percent,
        qualities=state.qualities,
        length_ms=None if state.length is None else round(state.length * SECOND),
        worked_ms=state.worked,
        eta_ms=state.eta,
        speed=state.speed,
        error=state.error,
        warnings=state.warnings,
    )
