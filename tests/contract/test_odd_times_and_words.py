"""What a careful reader found: odd clocks, odd words, and replies that come at the wrong moment."""

import asyncio
import json
import math

import pytest

from telecine.engine import Submission
from telecine.errors import BadSpec, Rejected, StoreError, WorkerRevoked
from telecine.facts import HOUR, SECOND, HeldLease, Mode, Piece
from telecine.graph import from_json
from telecine.store import Ask, Steps
from telecine.store.open import open_store
from telecine.worker.contact import Contact
from telecine.worker.outbox import insist
from telecine.world import World
from tests.support.builders import Loaded, a_flow, a_graph, a_stage
from tests.support.engine_fixture import Bed

# -- Clocks ----------------------------------------------------------------------------------------


async def test_a_sweep_that_comes_seldom_is_no_outage(bed: Bed) -> None:
    """Passes twelve seconds apart, as their period says: the dead worker's task comes back all the same."""
    await bed.enact(a_flow("cut"))
    await bed.submit()
    lease = await bed.take()

    for _ in range(4):
        bed.pass_time(12 * SECOND)
        await bed.engine.sweep(period=11 * SECOND)

    assert (await bed.task(lease.task_id))["state"] == "ready"


async def test_a_clock_that_was_set_back_stops_no_sweep(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    await bed.submit()
    lease = await bed.take()
    bed.pass_time(-HOUR)

    first = await bed.engine.sweep()
    for _ in range(12):
        bed.pass_time(2 * SECOND)
        await bed.engine.sweep()

    assert (first.mine, first.grace) == (True, True)
    assert bed.now < (await bed.attempts(lease.task_id))[0]["started_at"]
    assert (await bed.task(lease.task_id))["state"] == "ready"


@pytest.mark.parametrize("moment", [-1, 2**70, True, 1_759_000_000_000.5])
async def test_a_moment_that_no_database_can_hold_is_refused(bed: Bed, moment: float) -> None:
    await bed.enact(a_flow("cut"))

    with pytest.raises(BadSpec, match="no moment"):
        await bed.engine.jobs.submit("film", run_at=moment)


# -- Words -----------------------------------------------------------------------------------------


async def test_a_plan_with_a_label_that_makes_no_lane_fails_its_task_and_nothing_else(bed: Bed) -> None:
    await bed.enact(a_flow("plan", a_stage("cut", needs="plan", fan_out=True)))
    await bed.submit()
    lease = await bed.take()

    answer = await bed.done(lease, plan={"cut": [Piece(labels=("gpu,big",))]})

    assert (answer.accepted, answer.state) == (True, "error")
    assert json.loads((await bed.task(lease.task_id))["error"])["code"] == "bad_plan"


async def test_a_result_may_have_keys_of_any_kind(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    await bed.submit()
    lease = await bed.take()

    first = await bed.done(lease, result={1: "one", "a": 2, None: 3})
    again = await bed.done(lease, result={1: "one", "a": 2, None: 3})

    assert (first.accepted, again.accepted, again.repeated) == (True, True, True)


async def test_progress_that_is_no_number_is_no_progress(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    await bed.submit()
    lease = await bed.take()

    for value in (math.nan, math.inf):
        await bed.engine.beat(bed.worker, [HeldLease(task_id=lease.task_id, token=lease.token, progress=value)])

    assert (await bed.task(lease.task_id))["progress"] is None


async def test_what_the_database_rejects_is_not_asked_again(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    asked = 0

    def an_unknown_mode() -> Steps[None]:
        nonlocal asked
        asked += 1
        yield Ask("worker_mode", {"id": bed.worker, "mode": "asleep", "revoke": False})

    with pytest.raises(Rejected):
        await insist(lambda: bed.store.run(an_unknown_mode), World(dice=Loaded()), Contact())

    assert asked == 1


def test_a_graph_of_a_newer_release_can_be_read() -> None:
    text = json.loads(a_graph(a_stage("cut")).to_json())
    text["stages"][0]["colour"] = "blue"
    text["stages"][0]["policy"]["mood"] = 1

    assert from_json(json.dumps(text)).stages == (a_stage("cut"),)


# -- At the wrong moment ---------------------------------------------------------------------------


async def test_a_revoked_worker_renews_nothing(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    await bed.submit()
    lease = await bed.take()
    await bed.sql(f"update worker set revoked_at = {bed.now} where id = {bed.worker}")
    bed.pass_time(SECOND)

    with pytest.raises(WorkerRevoked):
        await bed.beaten(lease)

    assert (await bed.task(lease.task_id))["lease_until"] == lease.until


async def test_leases_of_a_disabled_worker_go_back_also_when_nobody_took_them_away(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    await bed.submit()
    lease = await bed.take()
    await bed.sql(f"update worker set mode = '{Mode.DISABLED}' where id = {bed.worker}")

    bed.pass_time(2 * SECOND)
    await bed.engine.sweep()

    assert (await bed.task(lease.task_id))["state"] == "ready"
    assert [row["outcome"] for row in await bed.attempts(lease.task_id)] == ["released"]


async def test_an_edit_moves_every_stage_by_its_own_offset_and_what_runs_too(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut", priority_offset=3), "score"))
    await bed.engine.jobs.submit("film", priority=9)
    await bed.engine.jobs.submit("film", priority=6)
    one, other = await bed.sql("select id from job order by id")
    running = await bed.take()

    await bed.engine.jobs.edit(one["id"], priority=6)
    ranks = {job["id"]: [task["rank"] for task in await bed.tasks(job["id"])] for job in (one, other)}

    assert running.job_id == one["id"]
    assert ranks[one["id"]] == ranks[other["id"]]


async def test_thousands_of_followers_open_when_the_one_before_them_ends(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    await bed.engine.jobs.submit_many([Submission(flow="film", after=(first,)) for _ in range(450)])

    await bed.done(await bed.take())

    assert await bed.count("task", "state = 'ready'") == 450
    assert await bed.count("job_after") == 0


async def test_whoever_asks_a_store_that_closes_gets_an_answer(sqlite_url: str) -> None:
    store = open_store(sqlite_url, dice=Loaded())

    def nothing() -> Steps[int]:
        return 1
        yield Ask("", {})

    asking = [asyncio.ensure_future(store.run(nothing)) for _ in range(200)]
    closing = asyncio.ensure_future(store.close())
    async with asyncio.timeout(10):
        answers = await asyncio.gather(*asking, return_exceptions=True)
        await closing

    assert {type(answer) for answer in answers} <= {int, StoreError}
    with pytest.raises(StoreError, match="closed"):
        await store.run(nothing)
