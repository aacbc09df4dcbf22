"""Workers come and go: register, terms, enlist, drain, retire."""

from __future__ import annotations

from importlib.metadata import version
from urllib.parse import quote

from starlette.responses import Response

from telecine.api.http.auth import Admin, Worker
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.worker.worker_state import Here
from telecine.engine.accounts.keys import Scope
from telecine.facts import DAY, Mode
from telecine.wire.registration import (
    NAME_HEADER,
    EnlistRequest,
    EnlistResponse,
    RegisterRequest,
    RegisterResponse,
    TermsResponse,
    check_version,
    listed_name,
)
from telecine.wire.requests import WorkerRequest
from telecine.worker_facts import Registration

router = Router(prefix="/api/worker", tags=["worker"])


@router.post("/register", response_model=RegisterResponse, status_code=201, responses=answers(401, 403, 422, 429))
async def register(said: RegisterRequest, who: Admin, state: Here) -> Response:
    """Make the key of a worker. It is shown this once: put it into a file that only the worker can read."""
    key = await state.house.keys.issue(
        Scope.WORKER,
        name=said.name,
        life=None if said.days is None else round(said.days * DAY),
        facts={"capabilities": said.capabilities, "metadata": said.metadata},
    )
    made = RegisterResponse(id=key.id, name=said.name, key=key.text, expires_at=key.expires_at)
    return answer(made, status=201, headers={"Cache-Control": "no-store"})


@router.get("/terms", response_model=TermsResponse, responses=answers(401, 403, 429))
async def terms(who: Worker, state: Here) -> Response:
    """What a worker must know before it begins; also a way to find out whether its key works."""
    house = state.house
    bucket = house.artifacts.folder is None
    told = TermsResponse(
        release=version("telecine"),
        lease_ms=house.engine.lease,
        trace=house.trace_seed,
        links=bucket,
        shared=bucket,
    )
    return answer(told, headers={NAME_HEADER: quote(who.name, safe="")})


@router.post("/enlist", response_model=EnlistResponse, status_code=201, responses=answers(401, 403, 422, 429))
async def enlist(said: EnlistRequest, who: Worker, state: Here) -> Response:
    """A process begins to work: it gets the number that it names from now on. The same request gets the same one."""
    check_version(said.version)
    about = await state.remotes.about(who.key_id)
    registration = Registration(
        # Whoever holds the key may not pass for somebody else.
        name=listed_name(who.name, said.name),
        hostname=said.hostname,
        lanes=tuple(said.lanes),
        slots=said.slots,
        kind="remote",
        release=said.release,
        labels=tuple(said.labels),
        capabilities={**about.get("capabilities", {}), **said.capabilities},
        metadata={**about.get("metadata", {}), **said.metadata},
    )
    worker = await state.remotes.enlist(who.key_id, said.request, registration)
    return answer(EnlistResponse(worker=worker), status=201)


@router.post("/drain", status_code=204, response_class=Response, responses=answers(401, 403, 404, 410, 422, 429))
async def drain(said: WorkerRequest, who: Worker, state: Here) -> Response:
    """The worker finishes what it has, and claims nothing more."""
    known = await state.worker(who, said.worker)
    await state.house.engine.set_mode(known.id, Mode.DRAINING)
    return Response(status_code=204)


@router.post("/retire", status_code=204, response_class=Response, responses=answers(401, 403, 410, 422, 429))
async def retire(said: WorkerRequest, who: Worker, state: Here) -> Response:
    """The worker leaves: whatever it still holds goes back unharmed."""
    known = await state.worker(who, said.worker)
    await state.house.engine.retire(known.id)
    return Response(status_code=204)
