"""The words of job chains, for WebSockets: each stage is a job of a chain, told once and never by its pieces.

job:queued ─▶ job:started ─▶ job:progress … ─▶ job:completed ┐          for each stage; jobType is its name
                   ▲  └─▶ job:failed (willRetry) ─┘          │
                                                             └─▶ job:chain:completed    once for each job
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from telecine.api.live.encoders import EventLine, dumps
from telecine.api.live.filters import StreamPosition
from telecine.engine.events.event_context import DescribedEvent, JobContext, TaskFault
from telecine.engine.queries.live_progress import Moving
from telecine.engine.queries.view_models import Subject

ENDS = {"job.completed": "completed", "job.failed": "failed", "job.cancelled": "cancelled"}


class ChainEncoder:
    name = "chain"

    def lines(self, told: DescribedEvent) -> tuple[EventLine, ...]:
        if told.about is None or told.event.job_id is None:
            return ()
        tell = _TELLERS.get(told.event.kind)
        return () if tell is None else tell(told, told.about)

    def progress(self, moving: Moving) -> tuple[EventLine, ...]:
        job = moving.job
        more = {"message": moving.note} if moving.note else {}
        share = round(100 * job.progress, 1)
        return (_line("job:progress", job.id, job.subject, jobType=moving.stage, progress=share, **more),)

    def worker(self, state: str, worker: int, name: str | None) -> EventLine:
        return EventLine(f"worker:{state}", {"type": f"worker:{state}", "workerId": str(worker), "workerName": name})

    def about(self, name: str, body: dict[str, Any]) -> EventLine:
        return EventLine(name, {"type": name, **body})

    def alive(self, place: StreamPosition) -> bytes:
        return dumps({"type": "alive", "id": str(place)}).encode()

    def wire(self, line: EventLine, place: StreamPosition | None) -> bytes:
        return dumps(line.body if place is None else {**line.body, "id": str(place)}).encode()


def _line(name: str, job_id: int | None, subject: Subject | None, **more: Any) -> EventLine:
    kind, subject_id = subject or (None, None)
    return EventLine(name, {"type": name, "jobId": job_id, "entityType": kind, "entityId": subject_id, **more})


def _of(told: DescribedEvent, name: str, **more: Any) -> EventLine:
    return _line(name, told.event.job_id, told.subject, jobType=told.event.stage, at=told.event.at, **more)


def _created(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    """Its first stages are in the queue, unless it comes after other jobs: then they are told when they are."""
    if isinstance(told.event.data, dict) and told.event.data.get("waits"):
        return ()
    return tuple(
        _line(
            "job:queued",
            told.event.job_id,
            told.subject,
            jobType=stage,
            at=told.event.at,
            priority=about.priority,
        )
        for stage in about.first
    )


def _ready(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    return (_of(told, "job:queued", priority=about.priority),)


def _started(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    return (_of(told, "job:started", workerId=str(told.event.worker)),) if told.begins else ()


def _task_done(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    return _stage_done(told, about) if told.tasks == 1 else ()


def _stage_done(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    return (_of(told, "job:completed"),)


def _task_failed(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    """Of a stage of one task. What becomes of a single piece of many is not told."""
    data = told.event.data if isinstance(told.event.data, dict) else {}
    if told.tasks != 1:
        return ()
    fault = TaskFault(
        code=data.get("code", "failed"),
        message=data.get("message", ""),
        attempt=data.get("attempt", 1),
        max_attempts=data.get("of", 1),
    )
    return (_failed(told, fault, data.get("ready_at")),)


def _stage_failed(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    unknown = TaskFault(code="failed", message="", attempt=1, max_attempts=1)
    return (_failed(told, told.fault or unknown, None),)


def _failed(told: DescribedEvent, fault: TaskFault, ready_at: int | None) -> EventLine:
    again = {} if ready_at is None else {"nextRetryAt": ready_at}
    return _of(
        told,
        "job:failed",
        error=fault.message or fault.code,
        code=fault.code,
        willRetry=ready_at is not None,
        **again,
        attempt=fault.attempt,
        maxAttempts=fault.max_attempts,
    )


def _ended(told: DescribedEvent, about: JobContext) -> tuple[EventLine, ...]:
    name = f"job:chain:{ENDS[told.event.kind]}"
    duration = told.event.at - about.created_at
    line = _line(name, told.event.job_id, told.subject, at=told.event.at, duration=duration, jobCount=len(about.stages))
    return (line,)


_TELLERS: dict[str, Callable[[DescribedEvent, JobContext], tuple[EventLine, ...]]] = {
    "job.created": _created,
    "stage.ready": _ready,
    "task.started": _started,
    "task.done": _task_done,
    "stage.done": _stage_done,
    "task.retrying": _task_failed,
    "task.error": _task_failed,
    "stage.error": _stage_failed,
    **dict.fromkeys(ENDS, _ended),
}

CHAIN = ChainEncoder()
