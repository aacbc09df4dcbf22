"""The one word that a video's state is, and the other words that people know for it. Pure; nothing of it is stored."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from telecine.engine.queries.view_models import JobLine, StageView
from telecine.facts import State, Status

VideoStatus = Literal["pending", "processing", "ready", "failed"]
StepStatus = Literal["pending", "in_progress", "completed", "failed", "skipped"]

# The five steps that people know, and which of our stages each of them is.
STEPS: dict[str, tuple[str, ...]] = {
    "probe": ("validate", "plan", "fetch"),
    "thumbnail": ("poster", "sprites"),
    "transcode": ("encoder", "audio", "captions", "video", "fallback", "again"),
    "master_playlist": ("package",),
    "finalize": ("verify", "publish", "notify"),
}


def status_of(version: int | None, open_job: JobLine | None, newest: JobLine | None) -> VideoStatus:
    """A video that can be watched is ready, whatever a later job does; else its open job speaks, else its last one."""
    if version is not None:
        return "ready"
    if open_job is not None:
        return "pending" if open_job.status == Status.PENDING else "processing"
    # A job that completed without publishing made something else of it. One that was put away had ended in vain.
    return "pending" if newest is not None and newest.status == Status.COMPLETED else "failed"


def beside(version: int | None, open_job: JobLine | None, newest: JobLine | None) -> str | None:
    """What else is to say about a video that can be watched: a second fact, not another status."""
    if version is None:
        return None
    if open_job is not None:
        waits = open_job.status == Status.PENDING
        return "re-transcode waits" if waits else f"re-transcoding {open_job.progress:.0%}".replace("%", " %")
    if newest is not None and newest.status in (Status.FAILED, Status.CANCELLED):
        return f"re-transcode {newest.status}"
    return None


@dataclass(frozen=True, slots=True)
class VideoStep:
    name: str
    status: StepStatus


def steps_of(stages: Iterable[StageView]) -> tuple[VideoStep, ...]:
    """How far each step is, by the stages that it consists of."""
    states = {stage.name: _begun(stage) for stage in stages}
    return tuple(
        VideoStep(name, _step([states[part] for part in parts if part in states])) for name, parts in STEPS.items()
    )


def _begun(stage: StageView) -> str:
    """Its state; a stage that is ready and was never taken up has not begun."""
    return State.NEW if stage.state == State.READY and stage.started_at is None else stage.state


def _step(states: list[str]) -> StepStatus:
    if State.ERROR in states or State.CANCELLED in states:
        return "failed"
    if all(state == State.SKIPPED for state in states):
        return "skipped"
    if all(state in (State.DONE, State.SKIPPED) for state in states):
        return "completed"
    return "pending" if all(state in (State.NEW, State.SKIPPED) for state in states) else "in_progress"


def step_of(stages: Iterable[StageView]) -> str | None:
    """The step of the first stage that has something to do."""
    ended = (State.DONE, State.SKIPPED, State.CANCELLED, State.ERROR)
    busy = next((stage.name for stage in stages if stage.state not in ended), None)
    return next((name for name, parts in STEPS.items() if busy in parts), None)
