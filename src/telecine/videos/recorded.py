"""What a transcode job has recorded about itself, for those who look on."""

from __future__ import annotations

from telecine.engine.shown import JobView
from telecine.engine.views import Views
from telecine.errors import NotFound
from telecine.flows.transcode.collecting import dropped_by
from telecine.flows.transcode.plan import Plan
from telecine.flows.transcode.reading import PLANNERS
from telecine.media.plain import from_plain


async def plan_of(views: Views, job_id: int) -> Plan | None:
    """The plan, once there is one."""
    for stage in reversed(PLANNERS):
        try:
            result = await views.result(job_id, stage)
        except NotFound:
            continue
        if result:
            return from_plain(Plan, result)
    return None


async def dropped_of(views: Views, job: JobView) -> dict[str, str]:
    """Optional rungs that were given up, and why. A long film has more chunks than `job` shows: `package` knows all."""
    try:
        packaged = await views.result(job.id, "package")
    except NotFound:
        return dropped_by(one.value for one in job.results if one.stage in ("video", "again"))
    return dict((packaged or {}).get("dropped") or {})
