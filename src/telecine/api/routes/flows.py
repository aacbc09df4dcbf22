"""Flows: which there are, and whether their tasks may start."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.responses import Response

from telecine.api.http.auth import Admin, Owner
from telecine.api.http.context import Here, ServerContext
from telecine.api.http.json_response import answer
from telecine.api.http.params import FlowPath
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.engine.queries.fleet import FlowView
from telecine.errors import NotFound

router = Router(prefix="/api/v1/flows", tags=["flows"])


@dataclass(frozen=True, slots=True)
class Flows:
    items: tuple[FlowView, ...]


@router.get("", response_model=Flows, responses=answers(401, 403, 429))
async def list_flows(who: Owner, house: Here) -> Response:
    """All flows that are known here, each by its newest graph."""
    return answer(Flows(await house.engine.queries.flows()))


@router.get("/{flow}", response_model=FlowView, responses=answers(401, 403, 404, 429))
async def get_flow(flow: FlowPath, who: Owner, house: Here) -> Response:
    """One flow with its stages."""
    return answer(await _flow(house, flow))


@router.post("/{flow}/pause", response_model=FlowView, responses=answers(401, 403, 404, 429))
async def pause_flow(flow: FlowPath, who: Admin, house: Here) -> Response:
    """Let no task of this flow start; what runs goes on."""
    await house.engine.jobs.pause(flow, True)
    return answer(await _flow(house, flow))


@router.post("/{flow}/resume", response_model=FlowView, responses=answers(401, 403, 404, 429))
async def resume_flow(flow: FlowPath, who: Admin, house: Here) -> Response:
    """Let the tasks of a paused flow start again."""
    await house.engine.jobs.pause(flow, False)
    return answer(await _flow(house, flow))


async def _flow(house: ServerContext, name: str) -> FlowView:
    found = next((flow for flow in await house.engine.queries.flows() if flow.name == name), None)
    if found is None:
        raise NotFound(f"there is no flow {name!r}")
    return found
