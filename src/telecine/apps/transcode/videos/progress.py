"""How a transcode job stands, quality by quality: a view over recorded facts, never a state of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.videos.recorded_facts import dropped_of, plan_of
from telecine.apps.transcode.videos.status import step_of
from telecine.engine.queries.inventory import ArtifactCount
from telecine.engine.queries.query_operations import Queries
from telecine.engine.queries.view_models import JobView
from telecine.facts import SECOND, Instant, Json, Millis, Status

QualityStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]
# Shares of the whole: until the tasks are known, and while they run; the rest is checking and publishing.
EARLY, ENCODING = 0.03, 0.89


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """One rung or audio track. Times are those of its first and last recorded segment; `reason` says why it was
    skipped, which is no error.
    """

    quality: str
    kind: Literal["video", "audio"]
    status: QualityStatus
    segments_total: int = 0
    segments_completed: int = 0
    progress_percent: float = 0.0
    bytes: int = 0
    started_at: Instant | None = None
    completed_at: Instant | None = None
    error_message: str | None = None
    reason: str | None = None
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TranscodeProgress:
    """A job as its owner follows it. `worked` is the time in which somebody worked on it: what was carried on after a
    crash did not take the night in between. `speed` is seconds of film per second of it; it and `eta` are None while
    nobody can tell.
    """

    job_id: int
    status: str
    step: str | None
    percent: float
    qualities: tuple[Quality, ...]
    length: Fraction | None = None
    worked: Millis = 0
    eta: Millis | None = None
    speed: float | None = None
    error: dict[str, Json] | None = None
    warnings: tuple[str, ...] = ()


async def progress_of(views: Queries, job_id: int) -> TranscodeProgress:
    """The progress of a job, from what its tasks have recorded."""
    return await progress_of_view(views, await views.job(job_id))


async def progress_of_view(views: Queries, job: JobView) -> TranscodeProgress:
    """The same, for a job that was read already."""
    plan = await plan_of(views, job.id)
    if plan is None:
        return _without_plan(job)
    counts = {one.folder: one for one in await views.tally(job.id) if one.stage in ("audio", plan.video_stage)}
    dropped = await dropped_of(views, job)
    found = tuple(qualities(plan, counts, dropped, job))
    share = _share(job, plan, found)
    worked = await views.worked(job.id)
    eta, speed = _pace(job, plan, share, worked)
    return TranscodeProgress(
        job_id=job.id,
        status=job.status,
        step=_step(job),
        percent=round(100 * share, 1),
        qualities=found,
        length=plan.length,
        worked=worked,
        eta=eta,
        speed=speed,
        error=job.error,
        warnings=tuple(_warnings(plan, dropped, job)),
    )


def _warnings(plan: TranscodePlan, dropped: Mapping[str, str], job: JobView) -> Iterable[str]:
    """Whatever is not as it was asked for, a sentence each."""
    yield from plan.warnings
    for name, why in dropped.items():
        yield f"{name} was left out: {why}"
    for problem in job.warnings:
        yield problem.message


def _without_plan(job: JobView) -> TranscodeProgress:
    percent = round(100 * job.progress, 1)
    return TranscodeProgress(
        job_id=job.id, status=job.status, step=_step(job), percent=percent, qualities=(), error=job.error
    )


def qualities(
    plan: TranscodePlan, counts: Mapping[str, ArtifactCount], dropped: Mapping[str, str], job: JobView
) -> Iterable[Quality]:
    """Rungs from small to large, then tracks, then what the source is too small for."""
    for rung in plan.rungs:
        yield _quality(plan, (rung.name, (rung.width, rung.height)), counts.get(rung.name), dropped, job)
    for one in plan.sounds:
        yield _quality(plan, (one.track.name, None), counts.get(one.track.name), dropped, job)
    for skipped in plan.skipped:
        yield Quality(quality=skipped.name, kind="video", status="skipped", reason=skipped.reason)


def _quality(
    plan: TranscodePlan,
    about: tuple[str, tuple[int, int] | None],
    count: ArtifactCount | None,
    dropped: Mapping[str, str],
    job: JobView,
) -> Quality:
    name, size = about
    total = plan.segments
    done = total if name in plan.carried else (count.files if count is not None else 0)
    status, error = _standing(name, done, total, dropped, job)
    return Quality(
        quality=name,
        kind="audio" if size is None else "video",
        status=status,
        segments_total=total,
        segments_completed=min(done, total),
        progress_percent=round(100 * min(done, total) / total, 1) if total else 0.0,
        bytes=count.bytes if count is not None else 0,
        started_at=count.first_at if count is not None else None,
        completed_at=count.last_at if count is not None and status == "completed" else None,
        error_message=error,
        width=size[0] if size else None,
        height=size[1] if size else None,
    )


def _standing(
    name: str, done: int, total: int, dropped: Mapping[str, str], job: JobView
) -> tuple[QualityStatus, str | None]:
    if name in dropped:
        return "failed", dropped[name]
    if done >= total:
        return "completed", None
    if job.status in (Status.FAILED, Status.CANCELLED):
        return "failed", (job.error or {}).get("message") or str(job.status)
    return ("in_progress" if done else "pending"), None


def _step(job: JobView) -> str | None:
    return None if Status(job.status).is_final else step_of(job.stages)


def _share(job: JobView, plan: TranscodePlan, found: Iterable[Quality]) -> float:
    """How far the job is. Recorded segments stay done, whatever became of the task that made them."""
    if job.status == Status.COMPLETED:
        return 1.0
    made = [one for one in found if one.status != "skipped"]
    total = sum(one.segments_total for one in made)
    recorded = sum(one.segments_completed for one in made) / total if total else 1.0
    of = {stage.name: stage.progress for stage in job.stages}
    running = EARLY + ENCODING * max(recorded, of.get(plan.video_stage, 0.0))
    return running + (1 - EARLY - ENCODING) * (of.get("verify", 0.0) + of.get("publish", 0.0)) / 2


def _pace(job: JobView, plan: TranscodePlan, share: float, worked: Millis) -> tuple[Millis | None, float | None]:
    """How long still, and how fast, from the time that was worked."""
    speed = float(plan.length * SECOND / worked) * share if worked > 0 else None
    if not worked or Status(job.status).is_final or share <= EARLY:
        return None, speed
    return round(worked * (1 - share) / share), speed
