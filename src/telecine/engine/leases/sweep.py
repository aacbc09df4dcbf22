"""One pass of recovery, for the whole fleet: what was lost, what is due, what winds down, what nobody takes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from telecine.engine.jobs import control
from telecine.engine.leases import claim as claiming
from telecine.engine.leases import patience, recovery
from telecine.facts import MINUTE, Expired, Millis, Released

if TYPE_CHECKING:
    from telecine.engine import Engine

SILENT_WORKER: Millis = 10 * MINUTE


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one pass of recovery did."""

    mine: bool = False
    grace: bool = False
    returned: int = 0
    gone_workers: int = 0
    unparked: int = 0
    resolved: int = 0


async def sweep(engine: Engine, period: Millis) -> Sweep:
    """What is ours by turn, and what only this machine can see."""
    store = engine._store
    gone = await _sweep_machine(engine)
    turn = await store.run(lambda: recovery.take_turn(period, engine.lease))
    if turn is None:
        return Sweep(gone_workers=gone)
    returned = 0 if turn.grace else await _expire(engine)
    if barred := await store.read(recovery.barred):
        returned += await engine.give_back(barred, Released("disabled"))
    lanes = await store.run(claiming.unpark)
    engine.bell.ring(lanes)
    resolved = await engine.jobs.release_waiting()
    for job_id in await store.read(recovery.halting):
        await engine.jobs.wind_down(job_id)
    await _pass_over(engine, grace=turn.grace)
    if not turn.grace:
        await store.run(lambda: recovery.end_silent(SILENT_WORKER))
    return Sweep(True, turn.grace, returned, gone, len(lanes), resolved)


async def _expire(engine: Engine) -> int:
    """Batch after batch, until one is not full or brings nothing: many may die at once."""
    total = 0
    while words := await engine._store.read(recovery.overdue):
        returned = sum(answer.accepted for answer in await engine.settle(words))
        total += returned
        if not returned or len(words) < recovery.BATCH:
            break
    return total


async def _pass_over(engine: Engine, *, grace: bool) -> None:
    """Skip tasks whose patience has ended. After an outage every patience starts again: nobody could beat."""
    store = engine._store
    lanes = await store.read(patience.patient_lanes)
    if not lanes and not engine.may_hold_seen_lanes:
        return  # a fleet without patient tasks writes nothing
    engine.may_hold_seen_lanes = True  # until the write below has succeeded
    unserved = frozenset[str]() if grace else patience.unserved(lanes)
    await store.run(lambda: patience.note_served(lanes.keys() - unserved, lanes))
    engine.may_hold_seen_lanes = bool(lanes)
    for job_id in await store.read(lambda: patience.untaken(unserved)) if unserved else ():
        steps = partial(control.pass_over, job_id, unserved, engine.graph_cache)
        passed = await store.run(steps)
        engine.bell.ring(passed.lanes)
        if passed.ended:
            await engine.jobs.release_waiting([job_id])


async def _sweep_machine(engine: Engine) -> int:
    machine = engine.world.machine
    if not machine.is_known():
        return 0
    gone = await engine._store.read(lambda: recovery.gone_here(machine, engine.world.is_gone))
    if gone:
        await engine.give_back(gone, Expired(gone=True))
        await engine._store.run(lambda: recovery.end_workers(gone))
    return len(gone)
