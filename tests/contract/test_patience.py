"""A task may wait only so long while no worker can take it: then it is skipped, and the stage after it decides.

Patience counts while the lane is not served: no live, active worker offers the labels, and none works in the lane.
"""

from collections.abc import Collection

import pytest

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.leases import patience
from telecine.engine.maintenance.audit import Auditor
from telecine.facts import SECOND, SWEEP, Lease, Mode, Piece, WorkerId
from telecine.store import Steps
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

LADDER = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("check", "cut"))
GPU = "film/cut@1+gpu"
RARE = Piece(input="rare", labels=("gpu",), patience=60 * SECOND)


async def states(bed: Bed) -> list[str]:
    rows = await bed.sql("select state from task order by stage, position")
    return [row["state"] for row in rows]


async def begun(bed: Bed, *pieces: object) -> None:
    await bed.enact(LADDER)
    await bed.submit()
    await bed.done(await bed.take(), plan={"cut": list(pieces)})


async def a_gpu_worker(bed: Bed, name: str = "gpu") -> WorkerId:
    bed.lanes = {GPU: "film"}
    return await bed.enlist(name)


async def waited(
    bed: Bed, seconds: int, *alive: WorkerId, held: tuple[Lease, ...] = (), every: int = SWEEP // SECOND
) -> None:
    """Let time pass with a sweep as often as in earnest, while these workers beat."""
    for begun in range(0, seconds, every):
        bed.pass_time(min(every, seconds - begun) * SECOND)
        for worker in alive:
            await bed.beaten(*held, worker=worker)
        await bed.engine.sweep(0)


async def test_a_task_that_nobody_can_take_is_skipped_after_its_patience(bed: Bed) -> None:
    await begun(bed, RARE)

    await waited(bed, 59)
    before = await states(bed)
    await waited(bed, 1)

    assert (before, await states(bed)) == (["done", "ready", "new"], ["done", "skipped", "ready"])
    await bed.audited()


async def test_only_tasks_with_a_patience_are_skipped(bed: Bed) -> None:
    await begun(bed, RARE, "common", Piece(input="rare too", labels=("gpu",)))

    await waited(bed, 60)

    assert await states(bed) == ["done", "skipped", "ready", "ready", "new"]
    await bed.audited()


async def test_each_task_has_its_own_patience(bed: Bed) -> None:
    short, long = (Piece(labels=("gpu",), patience=seconds * SECOND) for seconds in (5, 50))
    await begun(bed, long, short, long)

    await waited(bed, 10)

    assert await states(bed) == ["done", "ready", "skipped", "ready", "new"]


async def test_a_task_that_came_back_has_its_patience_again(bed: Bed) -> None:
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)
    lease = await bed.take(worker)

    await bed.engine.set_mode(worker, Mode.DISABLED)
    await waited(bed, 59)

    assert (await bed.task(lease.task_id))["state"] == "ready"


async def test_one_that_runs_is_never_skipped(bed: Bed) -> None:
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)
    lease = await bed.take(worker)

    await waited(bed, 70, worker, held=(lease,))

    assert await states(bed) == ["done", "running", "new"]


async def test_a_cancelled_job_skips_nothing(bed: Bed) -> None:
    await begun(bed, RARE)
    [job] = await bed.sql("select id from job")

    await bed.engine.jobs.cancel(job["id"])
    await waited(bed, 60)

    assert await states(bed) == ["done", "cancelled", "cancelled"]


# -- Who serves the lane -------------------------------------------------------------------------------


async def test_what_a_busy_worker_has_not_come_to_yet_is_not_skipped(bed: Bed) -> None:
    await begun(bed, *[RARE] * 5)
    worker = await a_gpu_worker(bed)

    for _ in range(5):
        lease = await bed.take(worker)
        await waited(bed, 50, worker, held=(lease,))
        await bed.done(lease)

    assert await states(bed) == ["done", *["done"] * 5, "ready"]


async def test_patience_counts_from_when_the_last_worker_fell_silent(bed: Bed) -> None:
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)

    await waited(bed, 200, worker)
    await waited(bed, 30 + 58, every=1)  # it counts as alive for 30 s after its last beat
    before = await states(bed)
    await waited(bed, 2)

    assert (before, await states(bed)) == (["done", "ready", "new"], ["done", "skipped", "ready"])


async def test_patience_counts_from_when_the_last_worker_left(bed: Bed) -> None:
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)

    await waited(bed, 200, worker)
    await bed.engine.retire(worker)
    await waited(bed, 59)
    before = await states(bed)
    await waited(bed, 1)

    assert (before, await states(bed)) == (["done", "ready", "new"], ["done", "skipped", "ready"])


@pytest.mark.parametrize("mode", [Mode.DRAINING, Mode.DISABLED])
async def test_a_worker_that_takes_nothing_more_does_not_hold_patience_up(bed: Bed, mode: Mode) -> None:
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)

    await waited(bed, 200, worker)
    await bed.engine.set_mode(worker, mode)
    await waited(bed, 59, worker)
    before = await states(bed)
    await waited(bed, 1, worker)

    assert (before, await states(bed)) == (["done", "ready", "new"], ["done", "skipped", "ready"])


async def test_while_a_draining_worker_still_works_in_the_lane_patience_does_not_count(bed: Bed) -> None:
    await begun(bed, RARE, RARE)
    worker = await a_gpu_worker(bed)
    lease = await bed.take(worker)

    await bed.engine.set_mode(worker, Mode.DRAINING)
    await waited(bed, 100, worker, held=(lease,))
    before = await states(bed)
    await bed.done(lease)
    await waited(bed, 60, worker)

    assert (before[1:3], (await states(bed))[1:3]) == (["running", "ready"], ["done", "skipped"])


async def test_a_worker_with_other_labels_does_not_hold_patience_up(bed: Bed) -> None:
    await begun(bed, RARE)
    bed.lanes = {"film/cut@1": "film", "film/cut@1+npu": "film", "film/cut@2+gpu": "film"}
    worker = await bed.enlist("other")

    await waited(bed, 60, worker)

    assert await states(bed) == ["done", "skipped", "ready"]


async def test_while_a_flow_is_paused_patience_does_not_count(bed: Bed) -> None:
    await begun(bed, RARE)
    await bed.engine.jobs.pause("film")

    await waited(bed, 100)
    before = await states(bed)
    await bed.engine.jobs.pause("film", paused=False)
    await waited(bed, 60)

    assert (before, await states(bed)) == (["done", "ready", "new"], ["done", "skipped", "ready"])


async def test_after_an_outage_of_the_database_every_patience_starts_again(bed: Bed) -> None:
    """Workers could not beat: those that come back must find their tasks."""
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)
    await waited(bed, 5, worker)

    bed.pass_time(600 * SECOND)
    await bed.engine.sweep(0)
    await waited(bed, 59)

    assert await states(bed) == ["done", "ready", "new"]


async def test_lanes_in_which_nothing_waits_are_forgotten(bed: Bed) -> None:
    await begun(bed, RARE, Piece(labels=("npu",), patience=60 * SECOND))
    worker = await a_gpu_worker(bed)
    await waited(bed, 1, worker)
    seen = await bed.sql("select lane from lane_seen")

    await bed.done(await bed.take(worker))
    await waited(bed, 1, worker)

    assert ([row["lane"] for row in seen], await bed.count("lane_seen")) == ([GPU], 0)


async def test_the_last_lane_is_forgotten_and_then_nothing_is_written(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)
    await waited(bed, 1, worker)
    seen = await bed.count("lane_seen")
    await bed.done(await bed.take(worker))
    writes: list[Collection[str]] = []

    def counted(served: Collection[str], waiting: Collection[str]) -> Steps[None]:
        writes.append(waiting)
        return note_served(served, waiting)

    note_served = patience.note_served
    monkeypatch.setattr(patience, "note_served", counted)
    await waited(bed, 3, worker)

    assert (seen, await bed.count("lane_seen"), len(writes)) == (1, 0, 1)


async def test_lanes_that_an_earlier_process_noted_are_forgotten(bed: Bed) -> None:
    await begun(bed, RARE)
    worker = await a_gpu_worker(bed)
    await waited(bed, 1, worker)
    await bed.done(await bed.take(worker))

    later = await bed.another_engine()
    bed.pass_time(SECOND)
    await later.sweep(0)

    assert await bed.count("lane_seen") == 0


# -- The audit -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [0, 1])
async def test_the_audit_finds_nothing_in_a_stage_that_went_on_without_some_tasks(bed: Bed, others: int) -> None:
    await begun(bed, RARE, *["common"] * others)
    await waited(bed, 60)
    while leases := await bed.claim():
        await bed.done(leases[0])

    found = await Auditor(bed.store, GraphCache()).look_at_everything()

    assert (await states(bed))[1] == "skipped"
    assert [row["status"] for row in await bed.sql("select status from job")] == ["completed"]
    assert found == ()


async def test_the_audit_finds_a_task_without_patience_that_was_skipped_alone(bed: Bed) -> None:
    await begun(bed, RARE, "common")
    await waited(bed, 60)
    while leases := await bed.claim():
        await bed.done(leases[0])

    await bed.sql("update task set patience_ms = null")
    found = await Auditor(bed.store, GraphCache()).look_at_everything()

    assert [finding.check for finding in found] == ["stage.state"]
