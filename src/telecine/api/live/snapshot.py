"""How things stand now: what a reader begins with, before events tell what changes."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from telecine.api.live.filters import EventFilter
from telecine.engine import Engine
from telecine.engine.events.event_context import Announcer
from telecine.engine.queries.fleet import Stats
from telecine.engine.queries.job_lists import JobFilter
from telecine.engine.queries.view_models import JobLine

MAX_JOBS = 100
CAP = 10_000
OPEN = ("pending", "validating", "planning", "downloading_inputs", "processing", "uploading_outputs")


async def snapshot(engine: Engine, announcer: Announcer, wanted: EventFilter) -> dict[str, Any]:
    """Open jobs, the newest first, and the counts; the fleet for administrators."""
    jobs, more = await _jobs(engine, announcer, wanted)
    found: dict[str, Any] = {
        "jobs": [asdict(job) for job in jobs],
        "more": more,
        "stats": await standing(engine, announcer, wanted.sees),
    }
    if wanted.sees is None:
        same = ("id", "name", "shown", "mode", "liveness", "activity", "slots")
        views = await engine.queries.workers()
        found["workers"] = [
            {**{name: getattr(one, name) for name in same}, "running": len(one.tasks)}
            for one in views[:CAP]
            if wanted.worker in (None, one.id)
        ]
    return found


async def _jobs(engine: Engine, announcer: Announcer, wanted: EventFilter) -> tuple[list[JobLine], bool]:
    if wanted.job is not None:
        job = await announcer.line(wanted.job)
        mine = job is not None and wanted.admits(job.owner, job.id, job.subject, wanted.worker)
        return ([job] if job is not None and mine else []), False
    which = JobFilter(status="open", owner=wanted.sees, subject=wanted.subject)
    page = await engine.queries.jobs(which, limit=MAX_JOBS)
    return list(page.items), page.next is not None


async def standing(
    engine: Engine, announcer: Announcer, owner: str | None, stats: Stats | None = None
) -> dict[str, Any]:
    """The queue in a few numbers, of one owner's jobs or of all: counts up to 10,000, and jobs per minute."""
    stats = stats or await engine.queries.stats(CAP)
    if owner is not None:
        own = await announcer.standing(owner, CAP)
        return {
            "pending": own.pending,
            "active": own.active,
            "completed": own.completed,
            "failed": own.failed,
            "workers": stats.workers,
            "throughput": own.lately,
        }
    return {
        "pending": stats.jobs.get("pending", 0),
        "active": sum(stats.jobs.get(status, 0) for status in OPEN[1:]),
        "completed": stats.jobs.get("completed", 0),
        "failed": stats.jobs.get("failed", 0),
        "workers": stats.workers,
        "throughput": stats.ended_last_minute.get("completed", 0),
    }
