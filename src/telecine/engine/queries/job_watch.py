"""Watch one job until it has ended, or wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from telecine.engine.queries.query_operations import Queries
from telecine.engine.queries.view_models import JobView
from telecine.facts import Status

# How often a watcher looks: soon after a change, then ever more seldom.
SOONEST, SELDOMEST, SLOWER = 0.05, 0.5, 1.5


async def watch(views: Queries, job_id: int) -> AsyncGenerator[JobView, None]:
    """The job as it is now, and again whenever it has changed, until it has ended."""
    seen: JobView | None = None
    pause = SOONEST
    while True:
        view = await views.job(job_id)
        if view != seen:
            yield view
            pause = SOONEST
        if _has_ended(view):
            return
        seen = view
        await asyncio.sleep(pause)
        pause = min(SELDOMEST, pause * SLOWER)


async def wait(views: Queries, job_id: int, timeout: float | None) -> JobView:
    """The job when it has ended; a timeout of 0 or less is one look, which takes as long as the database does."""
    if timeout is not None and timeout <= 0:
        view = await views.job(job_id)
        if _has_ended(view):
            return view
        raise TimeoutError
    async with asyncio.timeout(timeout):
        view = await views.job(job_id)
        if not _has_ended(view):
            async for seen in watch(views, job_id):
                view = seen
    return view


def _has_ended(view: JobView) -> bool:
    return Status(view.status).is_final
