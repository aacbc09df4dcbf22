"""Server-sent events: the kinds of the event table as they are, and those of subjects beside them."""

from __future__ import annotations

from typing import Any

from telecine.api.live.encoders import EventLine, dumps
from telecine.api.live.filters import StreamPosition
from telecine.engine.events.event_context import DescribedEvent
from telecine.engine.queries.live_progress import Moving

ENDS = {"job.completed": "completed", "job.failed": "failed", "job.cancelled": "cancelled"}


class PlainEncoder:
    name = "sse"

    def lines(self, told: DescribedEvent) -> tuple[EventLine, ...]:
        """The event, and for the end of a job that was about something: how it ended for that."""
        event, about = told.event, told.about
        body: dict[str, Any] = {
            "seq": event.seq,
            "at": event.at,
            "kind": event.kind,
            "owner": told.owner,
            "job": event.job_id,
            "flow": None if about is None else about.flow,
            "subject": told.subject,
            "stage": event.stage,
            "task": event.task_id,
            "position": event.position,
            "token": event.token,
            "worker": event.worker,
            "worker_name": told.worker_name,
            "data": event.data,
        }
        native = EventLine(event.kind, body)
        end = ENDS.get(event.kind)
        if end is None or told.subject is None:
            return (native,)
        kind, subject_id = told.subject
        outcome = {"seq": event.seq, "at": event.at, "kind": f"{kind}.{end}", "id": subject_id, "job": event.job_id}
        duration = None if about is None else event.at - about.created_at
        return native, EventLine(
            f"{kind}.{end}", {**outcome, "owner": told.owner, "duration_ms": duration, "data": event.data}, False
        )

    def progress(self, moving: Moving) -> tuple[EventLine, ...]:
        job = moving.job
        body: dict[str, Any] = {
            "kind": "job.progress",
            "job": job.id,
            "owner": job.owner,
            "flow": job.flow,
            "subject": job.subject,
            "status": job.status,
            "progress": round(job.progress, 4),
            "stage": moving.stage,
            "note": moving.note,
            "running": moving.running,
        }
        lines = (EventLine("job.progress", body),)
        if job.subject is None:
            return lines
        kind, subject_id = job.subject
        return *lines, EventLine(f"{kind}.progress", {**body, "kind": f"{kind}.progress", "id": subject_id}, False)

    def worker(self, state: str, worker: int, name: str | None) -> EventLine:
        return EventLine(f"worker.{state}", {"kind": f"worker.{state}", "worker": worker, "worker_name": name})

    def about(self, name: str, body: dict[str, Any]) -> EventLine:
        return EventLine(name, body)

    def alive(self, place: StreamPosition) -> bytes:
        """A comment, which is an event to nobody."""
        return f": alive\nid: {place}\n\n".encode()

    def wire(self, line: EventLine, place: StreamPosition | None) -> bytes:
        where = f"id: {place}\n" if place is not None else ""
        return f"{where}event: {line.name}\ndata: {dumps(line.body)}\n\n".encode()


PLAIN = PlainEncoder()
