"""How full the queues are."""

from __future__ import annotations

from starlette.responses import Response

from telecine.api.answers import answer
from telecine.api.auth import Owner
from telecine.api.house import Here
from telecine.api.problems import answers
from telecine.api.routing import Router
from telecine.engine.fleet import OwnStats, Stats, own_stats

router = Router(prefix="/api/v1/stats", tags=["stats"])


@router.get("", response_model=Stats | OwnStats, responses=answers(401, 403, 429))
async def get_stats(who: Owner, house: Here) -> Response:
    """Counts of jobs and tasks: of everything for an administrator, of his own for an owner."""
    if who.is_admin:
        return answer(await house.engine.views.stats())
    return answer(await house.engine.store.read(lambda: own_stats(who.owner)))
