"""How full the queues are."""

from __future__ import annotations

from starlette.responses import Response

from telecine.api.http.auth import Owner
from telecine.api.http.context import Here
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.queries.fleet import OwnStats, Stats

router = Router(prefix="/api/v1/stats", tags=["stats"])


@router.get("", response_model=Stats | OwnStats, responses=answers(401, 403, 429))
async def get_stats(who: Owner, house: Here) -> Response:
    """Counts of jobs and tasks: of everything for an administrator, of his own for an owner."""
    if who.is_admin:
        return answer(await house.engine.queries.stats())
    return answer(await house.engine.queries.own_stats(who.owner))
