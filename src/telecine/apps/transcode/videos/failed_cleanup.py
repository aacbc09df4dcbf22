"""Free what films that failed have left half done. Only on request: a retry would otherwise go on with it."""

from __future__ import annotations

from collections import Counter

from telecine.apps.transcode.names import NAME
from telecine.apps.transcode.videos.recorded_facts import plan_of
from telecine.engine import Engine
from telecine.engine.queries.job_lists import JobFilter
from telecine.facts import Status

AT_ONCE = 50
STAGES = ("audio", "video", "again")


class FailedCleanup:
    """Walks through the films that failed, some at each look, the latest first; begins anew when it is through."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._cursor: str | None = None

    async def look(self) -> int:
        """Free some; how many files that were."""
        wanted = JobFilter(flow=NAME, status=Status.FAILED)
        page = await self._engine.queries.jobs(wanted, cursor=self._cursor, limit=AT_ONCE)
        self._cursor = page.next
        return sum([await self._free(line.id, line.generation) for line in page.items])

    async def _free(self, job_id: int, generation: int) -> int:
        """Of a task that has not ended well, the segments of each rung or track that is not whole."""
        views = self._engine.queries
        plan = await plan_of(views, job_id)
        counts: Counter[str] = Counter()
        for one in await views.tally(job_id):
            counts[one.folder] += one.files if one.stage in STAGES else 0
        if plan is None:
            return 0
        partial_ones = [name for name, files in counts.items() if 0 < files < plan.segments]
        if not partial_ones:
            return 0
        return await self._engine.jobs.free_unfinished(job_id, generation, partial_ones)
