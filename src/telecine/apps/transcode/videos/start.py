"""Begin or go on: the same bytes and the same wishes are the same job, wherever the file lies."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from telecine.apps.transcode.names import KIND, MOVED, NAME
from telecine.apps.transcode.spec import TranscodeSpec, digest, parse
from telecine.apps.transcode.videos.recorded_facts import plan_of
from telecine.engine import Engine, Submission
from telecine.engine.queries.job_lists import JobFilter
from telecine.engine.queries.view_models import JobView
from telecine.errors import BadSpec, MediaRefused, NotFound
from telecine.facts import JobId, Status
from telecine.media.inputs import hash_file, is_remote

LOOK_BACK = 20
# To open such a job again would lead to the same end: what it has recorded is the fault. It is made anew.
BEYOND_REPAIR = ("bad_segment", "bad_playlist", "incomplete", "artifact_missing", "version_changed", "source_changed")
Told = Callable[[float, float], None]
How = Literal["submitted", "continued", "opened again", "made before"]


@dataclass(frozen=True, slots=True)
class StartedVideo:
    job_id: int
    video: str
    how: How


async def start_video(
    engine: Engine,
    spec: TranscodeSpec,
    *,
    owner: str = "",
    again: bool = False,
    told: Told | None = None,
    priority: int | str = "normal",
) -> StartedVideo:
    """The job that makes this of that: one that goes on, one that is done already (not with `again`), or a new one.

    Of a video that was deleted nothing goes on: its bytes may be gone. A new job brings the video back.
    """
    if spec.sha256 is None and not is_remote(spec.source):
        spec = spec.model_copy(update={"sha256": await _hash(Path(spec.source), told)})
    video = video_id(spec, owner)
    deleted = await engine.subjects.deleted_at((KIND, video))
    found = None if deleted is not None else await _twin(engine, spec, video, owner)
    if again and found is not None and Status(found.status).is_final:
        found = None  # it was made; one that is still being made goes on
    if found is not None:
        await _find_again(engine, found, spec)
        return StartedVideo(found.id, video, await _go_on(engine, found))
    wishes = spec.model_dump(exclude_defaults=True)
    mark = mark_of(spec) if deleted is None else f"{mark_of(spec)}:{deleted}"
    submission = Submission(
        flow=NAME,
        spec=wishes,
        owner=owner,
        subject=(KIND, video),
        dedupe_key=None if again else mark,
        within=owner or None,
        priority=priority,
    )
    [answer] = await engine.jobs.submit_many([submission])
    if answer.created:
        return StartedVideo(answer.job_id, video, "submitted")
    # Under way by another name of the same file.
    twin = await engine.queries.job(answer.job_id)
    if _is_ending(twin):
        [answer] = await engine.jobs.submit_many([submission._replace(dedupe_key=f"{mark}:{twin.id}")])
        return StartedVideo(answer.job_id, video, "submitted" if answer.created else "continued")
    await _find_again(engine, twin, spec)
    return StartedVideo(twin.id, twin.subject[1] if twin.subject else video, await _go_on(engine, twin))


async def _find_again(engine: Engine, job: JobView, spec: TranscodeSpec) -> None:
    """Tell a job whose source was moved where it is now; its handlers believe it by its hash."""
    if job.status != Status.COMPLETED and parse(job.spec).source != spec.source and job.subject is not None:
        await engine.subjects.learn(job.subject, job.owner, {MOVED: spec.source})


async def _twin(engine: Engine, spec: TranscodeSpec, video: str, owner: str) -> JobView | None:
    """The newest job that was asked for the same."""
    page = await engine.queries.jobs(JobFilter(flow=NAME, owner=owner, subject=(KIND, video)), limit=LOOK_BACK)
    for line in page.items:
        job = await engine.queries.job(line.id)
        if _is_ending(job):
            continue
        asked = parse(job.spec)
        if digest(asked) != digest(spec) or (asked.sha256 or asked.source) != (spec.sha256 or spec.source):
            continue
        if job.status == Status.COMPLETED and not await is_there(engine, job):
            continue
        if job.status == Status.FAILED and (job.error or {}).get("code") in BEYOND_REPAIR:
            continue
        if (
            asked.source != spec.source
            and job.status != Status.COMPLETED
            and await plan_of(engine.queries, job.id) is None
        ):
            # Nothing was made of it yet, and it would look for its source in the old place.
            if not Status(job.status).is_final:
                await engine.jobs.cancel(JobId(job.id), reason="its source was moved; another job does this")
            return None
        return job
    return None


def _is_ending(job: JobView) -> bool:
    """Whether an open job winds down and will not do what is wanted, also if it is asked for again."""
    beyond_repair = (job.error or {}).get("code") in BEYOND_REPAIR
    return not Status(job.status).is_final and (job.cancel_asked or beyond_repair)


async def is_there(engine: Engine, job: JobView) -> bool:
    """Whether its version still has its files: one that was replaced is freed after a while."""
    assert job.subject is not None
    try:
        return any(version.job_id == job.id for version in (await engine.subjects.get(*job.subject)).versions)
    except NotFound:
        return False


async def _go_on(engine: Engine, job: JobView) -> How:
    """Asking again is a person's retry, also of a job that is still open but has just lost a worker."""
    if job.status == Status.COMPLETED:
        return "made before"
    before = await engine.jobs.resume(JobId(job.id))
    if before is Status.COMPLETED:
        return "made before"
    return "opened again" if before.is_final else "continued"


async def _hash(path: Path, told: Told | None) -> str:
    """Read the file once, before it is anybody's job."""
    try:
        return (await hash_file(path, told or (lambda done, of: None))).sha256
    except MediaRefused as error:
        raise BadSpec(str(error)) from None


def mark_of(spec: TranscodeSpec) -> str:
    """Equal for jobs that would make the same thing of the same film."""
    return f"{NAME}:{spec.sha256 or spec.source}:{digest(spec)}"


def video_id(spec: TranscodeSpec, owner: str = "") -> str:
    """A name that people recognise and that no two films share, nor two owners: `big-buck-bunny-3f9a2c41`."""
    stem = spec.name or Path(spec.source.partition("?")[0]).stem
    plain = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")[:60] or "video"
    mark = spec.sha256 or hashlib.sha256(spec.source.encode()).hexdigest()
    if owner:
        mark = hashlib.sha256(f"{owner}\n{mark}".encode()).hexdigest()
    return f"{plain}-{mark[:8]}"
