"""Make a video anew: all of it or chosen qualities. What is shown plays on until the new version is whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from telecine.apps.transcode.names import KIND, NAME
from telecine.apps.transcode.spec import parse
from telecine.apps.transcode.videos.recorded_facts import plan_of
from telecine.apps.transcode.videos.start import StartedVideo
from telecine.engine import Engine, Submission
from telecine.engine.queries.view_models import SubjectView
from telecine.errors import BadSpec, NotFound, WrongState
from telecine.facts import Json

# What may be wished for otherwise; the source stays.
FIXED = ("source", "sha256", "size", "name")


async def retranscode(
    engine: Engine, video_id: str, wishes: Mapping[str, Json] | None = None, *, priority: int | str = "normal"
) -> StartedVideo:
    """A new job with the wishes of the last one, but for these. One at a time: `WrongState` while another is open."""
    video = await engine.subjects.get(KIND, video_id)
    last = _last(video)
    before = parse((await engine.queries.job(last)).spec)
    kept = before.model_dump(exclude_defaults=True, exclude={"qualities"})
    spec = parse({**kept, **{name: value for name, value in (wishes or {}).items() if name not in FIXED}})
    if before.qualities is None and spec.ladder == before.ladder:
        await _check_rungs(engine, last, spec.qualities or ())
    if video.open_job is not None:
        raise _busy(video.open_job.id)
    [answer] = await engine.jobs.submit_many(
        [
            Submission(
                flow=NAME,
                spec=spec.model_dump(exclude_defaults=True),
                owner=video.owner,
                subject=(KIND, video_id),
                priority=priority,
                dedupe_key=f"{NAME}:again:{video_id}",  # of two that come at once, one is submitted
            )
        ]
    )
    if not answer.created:
        raise _busy(answer.job_id)
    return StartedVideo(answer.job_id, video_id, "submitted")


def _busy(job_id: int) -> WrongState:
    return WrongState(f"job {job_id} works on this video just now: wait for it, or cancel it")


async def _check_rungs(engine: Engine, job_id: int, wanted: Sequence[str]) -> None:
    """Refuse qualities that this film cannot have: the last job, which made all that it could, tells which it can."""
    plan = await plan_of(engine.queries, job_id) if wanted else None
    known = [] if plan is None else [rung.name for rung in plan.rungs]
    if known and (unknown := next((name for name in wanted if name not in known), None)):
        raise BadSpec(
            f"qualities: this film has no rung {unknown!r}; it has {', '.join(known)} (another ladder makes others)"
        )


def _last(video: SubjectView) -> int:
    """The job that made what is shown, else the newest that tried to make something of it."""
    shown = next((version.job_id for version in video.versions if version.current), None)
    newest = next((line.id for line in video.jobs if line.flow == NAME), None)
    found = shown if shown is not None else newest
    if found is None:
        raise NotFound(f"nothing tells what video {video.id!r} was made of: submit its source again")
    return found
