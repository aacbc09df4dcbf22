"""How a video stands: derived from its published version and its jobs, stored nowhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from telecine.engine import Engine
from telecine.engine.shown import JobLine
from telecine.facts import Json, Status
from telecine.videos.beginning import KIND

VideoStatus = Literal["pending", "processing", "ready", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Video:
    """A video as lists show it. `job` is its newest one: beside a `ready` video, a re-transcode or what came of it."""

    id: str
    status: VideoStatus
    version: int | None
    facts: dict[str, Json] = field(default_factory=dict)
    job: JobLine | None = None


async def video_of(engine: Engine, video_id: str) -> Video:
    """One video; `NotFound` if nobody ever submitted it."""
    found = await engine.subject(KIND, video_id)
    status = status_of(found.version, found.job)
    return Video(id=video_id, status=status, version=found.version, facts=found.facts, job=found.job)


def status_of(version: int | None, job: JobLine | None) -> VideoStatus:
    """A video that can be watched is ready, whatever a later job does."""
    if version is not None:
        return "ready"
    if job is None or job.status == Status.PENDING:
        return "pending"
    return "failed" if Status(job.status).is_final else "processing"
