"""What a transcode job has recorded about itself, for those who look on."""

from __future__ import annotations

import asyncio

from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.recorded_rows import STAGES, RecordedRows, collect, dropped_by
from telecine.apps.transcode.stages.stage_inputs import PLANNERS
from telecine.engine.queries.query_operations import Queries
from telecine.engine.queries.view_models import JobView
from telecine.errors import NotFound
from telecine.facts import StoredArtifact
from telecine.media.plain_json import from_plain


async def plan_of(views: Queries, job_id: int) -> TranscodePlan | None:
    """The plan, once there is one."""
    for stage in reversed(PLANNERS):
        try:
            result = await views.result(job_id, stage)
        except NotFound:
            continue
        if result:
            return from_plain(TranscodePlan, result)
    return None


async def dropped_of(views: Queries, job: JobView) -> dict[str, str]:
    """Optional rungs that were given up, and why. A long film has more chunks than `job` shows: `package` knows all."""
    try:
        packaged = await views.result(job.id, "package")
    except NotFound:
        return dropped_by(one.value for one in job.results if one.stage in ("video", "again"))
    return dict((packaged or {}).get("dropped") or {})


class RecordedFacts:
    """What one job has recorded, read again and again while it grows: a look costs what is new, not the whole film."""

    def __init__(self, views: Queries, job_id: int) -> None:
        self._views = views
        self._job_id = job_id
        self._known: dict[int, StoredArtifact] = {}
        self._carried: list[StoredArtifact] = []
        self._base: tuple[TranscodePlan, dict[str, str]] | None = None  # what the rows were last read by

    @property
    def rows(self) -> list[StoredArtifact]:
        """What the last look has seen."""
        return [*self._known.values(), *self._carried]

    async def look(self) -> RecordedRows | None:
        """The film as it is now; None if there is none yet, or nothing else than at the last look."""
        plan = await plan_of(self._views, self._job_id)
        if plan is None or any(rung.name not in plan.inits for rung in plan.rungs):
            return None  # there is no plan yet, or its encoder was not opened yet
        job = await self._views.job(self._job_id)
        base = (plan, await dropped_of(self._views, job))
        rows = await self._views.kept_since(self._job_id, max(self._known, default=0), *STAGES)
        news = {one.id: one for one in rows if self._known.get(one.id) != one}
        if not news and base == self._base:
            return None
        self._known |= news
        self._base = base
        if len(self._carried) < len(plan.carried_ids) and job.subject is not None:
            self._carried = await self._taken_over(plan, job.subject)
        rows = sorted(self._known.values(), key=lambda one: (one.stage, one.position, one.kept.name))
        return await asyncio.to_thread(collect, plan, rows + self._carried, base[1])

    async def _taken_over(self, plan: TranscodePlan, subject: tuple[str, str]) -> list[StoredArtifact]:
        """Once published they are copies of their rows under this job; before, rows of the version before."""
        if own := await self._views.carried(self._job_id):
            return own
        wanted = set(plan.carried_ids)
        return [one for one in await self._views.published(*subject) if one.id in wanted]
