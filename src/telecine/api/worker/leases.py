"""The words: claim, heartbeat, progress, keep, complete, fail, settle, release; and what a handler reads."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import Response

from telecine.api.http.auth import Worker
from telecine.api.http.json_response import answer
from telecine.api.http.problems import answers
from telecine.api.http.routing import Router
from telecine.api.worker.release_gate import too_old
from telecine.api.worker.worker_state import Here, WorkerState
from telecine.engine.accounts.keys import Caller
from telecine.errors import LeaseLost, Refused
from telecine.facts import Done, HeldLease, Lease, LeaseOutcome, Mode, Orders, SettleReply, TaskId
from telecine.wire.convert import answer_to, fact_from, holding_from, lease_to, line_from, orders_to, word_from
from telecine.wire.requests import (
    ClaimRequest,
    CompleteRequest,
    FailRequest,
    HeartbeatRequest,
    LogLineMessage,
    LogRequest,
    ProgressRequest,
    ReleasedMessage,
    ReleaseRequest,
    SettleRequest,
)
from telecine.wire.responses import AnswerMessage, ClaimResponse, OrdersResponse, SettleResponse
from telecine.worker_facts import Totals

router = Router(prefix="/api/worker", tags=["worker"])
MIN_REST, MAX_REST = 0.05, 1.0
LOST = answers(401, 403, 409, 422, 429)
GONE = answers(401, 403, 410, 422, 429)


class BadFact(Refused):
    code = "bad_fact"


@router.post("/claim", response_model=ClaimResponse, responses=GONE)
async def claim(said: ClaimRequest, who: Worker, state: Here, request: Request) -> Response:
    """Lease tasks. With `wait`, an empty answer comes only after so many seconds. A repeated request gets the same."""
    leases = await _claimed(said, who, state, request)
    state.grant(who, leases)
    return answer(ClaimResponse(leases=[lease_to(lease) for lease in leases]))


async def _claimed(said: ClaimRequest, who: Caller, state: WorkerState, request: Request) -> list[Lease]:
    house, lanes = state.house, tuple(sorted(said.lanes.items()))
    known = await state.worker(who, said.worker)
    end, rest = house.world.mono() + said.wait, 0.0
    while True:
        if too_old(known.release, house.settings.min_worker_release) is None:
            leases = await house.engine.claim(known.id, said.request, said.lanes, said.wanted)
            if leases:
                state.claim_queue.call(lanes)
                return leases
        began = house.world.mono()
        if began >= end or house.closing.is_set():
            return []
        await state.claim_queue.wait(lanes, end - began, rest)
        # What can be seen and not be claimed (a paused flow, a draining worker) calls again at once: ever more slowly.
        waited = house.world.mono() - began
        rest = min(MAX_REST, max(MIN_REST, 2 * rest)) if waited < rest + MIN_REST else 0.0
        if await request.is_disconnected():
            return []  # whoever asked is gone: a lease would be lost on it


@router.post("/heartbeat", response_model=OrdersResponse, responses=GONE)
async def heartbeat(said: HeartbeatRequest, who: Worker, state: Here) -> Response:
    """Renew exactly the leases that are named; orders come back. Log lines may ride along."""
    totals = Totals(load=said.load, done=said.done, failed=said.failed)
    return answer(await _beat(said, [holding_from(one) for one in said.held], totals, who, state))


@router.post("/progress", response_model=OrdersResponse, responses=answers(401, 403, 409, 410, 422, 429))
async def progress(said: ProgressRequest, who: Worker, state: Here) -> Response:
    """A heartbeat about one task; `lease_lost` if it is not this worker's any more."""
    load = Totals(load=1)
    orders = await _beat(said, [holding_from(said)], load, who, state)
    if not orders.renewed:
        raise LeaseLost(said.task_id, said.token)
    return answer(orders)


async def _beat(
    said: HeartbeatRequest | ProgressRequest, held: list[HeldLease], totals: Totals, who: Caller, state: WorkerState
) -> OrdersResponse:
    known = await state.worker(who, said.worker)
    orders: Orders = await state.house.engine.beat(known.id, held, totals)
    await _log(said.lines, who, state)
    why = too_old(known.release, state.house.settings.min_worker_release)
    told = orders_to(orders, why)
    if why is not None and told.mode is Mode.ACTIVE:
        return told.model_copy(update={"mode": Mode.DRAINING})
    return told


@router.post("/log", status_code=204, response_class=Response, responses=answers(401, 403, 422, 429))
async def log(said: LogRequest, who: Worker, state: Here) -> Response:
    """Log lines and steps; those of attempts that are not this key's, or not current, are dropped."""
    await _log(said.lines, who, state)
    return Response(status_code=204)


async def _log(lines: Sequence[LogLineMessage], who: Caller, state: WorkerState) -> None:
    if lines:
        mine = await state.owned(who, ((line.task_id, line.token) for line in lines))
        await state.house.engine.log([line_from(line) for line in lines if (line.task_id, line.token) in mine])


# -- outcomes -------------------------------------------------------------------------------------------


@router.post("/complete", response_model=AnswerMessage, responses=LOST)
async def complete(said: CompleteRequest, who: Worker, state: Here) -> Response:
    """The task has succeeded. Said again under the same token, it gets the same answer."""
    return await _settled_one(LeaseOutcome(TaskId(said.task_id), said.token, fact_from(said)), who, state)


@router.post("/fail", response_model=AnswerMessage, responses=LOST)
async def fail(said: FailRequest, who: Worker, state: Here) -> Response:
    """The task could not be done: it is tried again, or is an error, as its stage says."""
    return await _settled_one(LeaseOutcome(TaskId(said.task_id), said.token, fact_from(said)), who, state)


async def _settled_one(word: LeaseOutcome, who: Caller, state: WorkerState) -> Response:
    [found] = await _settled([word], who, state)
    if not found.accepted:
        raise LeaseLost(word.task_id, word.token, found.code)
    return answer(answer_to(found))


@router.post("/settle", response_model=SettleResponse, responses=answers(401, 403, 422, 429))
async def settle(said: SettleRequest, who: Worker, state: Here) -> Response:
    """Many outcomes, of any kind, at once: an answer for each, in their order."""
    return _answered(await _settled([word_from(one) for one in said.words], who, state))


@router.post("/release", response_model=SettleResponse, responses=answers(401, 403, 422, 429))
async def release(said: ReleaseRequest, who: Worker, state: Here) -> Response:
    """Give tasks back unharmed."""
    fact = fact_from(ReleasedMessage(reason=said.reason))
    return _answered(
        await _settled([LeaseOutcome(TaskId(task), token, fact) for task, token in said.leases], who, state)
    )


async def _settled(words: Sequence[LeaseOutcome], who: Caller, state: WorkerState) -> list[SettleReply]:
    """What is not this key's is refused like what nobody holds: nobody learns which it was."""
    _check_facts(words, state.house.own_facts)
    mine = await state.owned(who, ((word.task_id, word.token) for word in words))
    heard = [word for word in words if (word.task_id, word.token) in mine]
    given = iter(await state.house.engine.settle(heard) if heard else ())
    return [
        next(given)
        if (word.task_id, word.token) in mine
        else SettleReply(word.task_id, word.token, accepted=False, code="lease_lost")
        for word in words
    ]


def _check_facts(words: Sequence[LeaseOutcome], own: frozenset[str]) -> None:
    for word in words:
        said = (word.fact.facts or {}) if isinstance(word.fact, Done) else {}
        if bad := next((name for name in said if name in own), None):
            raise BadFact(f"task {word.task_id}: {bad!r} is not for workers to say")


def _answered(found: Sequence[SettleReply]) -> Response:
    return answer(SettleResponse(answers=[answer_to(one) for one in found]))
