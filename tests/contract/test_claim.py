"""Claim: who gets what, in which order, and what a repeat gets."""

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from telecine.engine import Submission
from telecine.facts import HOUR, LEASE, MINUTE, SECOND, Done
from telecine.store import Steps
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed, named

CUT = a_flow("cut")
FANS = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True))


async def test_a_claim_makes_the_task_running_under_the_next_token(bed: Bed) -> None:
    await bed.enact(CUT)
    job_id = await bed.submit(spec={"film": "a"}, owner="ann", subject=("movie", "7"))

    lease = await bed.take()

    assert (lease.job_id, lease.flow, lease.stage, lease.position) == (job_id, "film", "cut", 0)
    assert (lease.token, lease.attempt, lease.max_attempts, lease.until) == (1, 1, 3, bed.now + LEASE)
    assert (lease.spec, lease.owner, lease.subject) == ({"film": "a"}, "ann", ("movie", "7"))
    task = await bed.task(lease.task_id)
    assert (task["state"], task["worker"], task["lease_until"]) == ("running", bed.worker, bed.now + LEASE)
    assert await bed.events(job_id) == ["job.created", "task.started"]
    await bed.audited()


async def test_a_job_is_pending_until_its_first_claim(bed: Bed) -> None:
    await bed.enact(CUT)
    job_id = await bed.submit()
    before = await bed.job(job_id)

    await bed.claim()

    after = await bed.job(job_id)
    assert (before["status"], before["started_at"]) == ("pending", None)
    assert (after["status"], after["started_at"]) == ("processing", bed.now)


async def test_a_task_is_granted_once(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()

    first, second = await bed.claim(5), await bed.claim(5)

    assert (len(first), len(second)) == (1, 0)


async def test_at_most_what_is_wanted_is_granted(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 5)

    assert [len(await bed.claim(n)) for n in (0, 2, 10)] == [0, 2, 3]


# -- Order -----------------------------------------------------------------------------------------


async def test_within_a_priority_who_came_first_is_served_first(bed: Bed) -> None:
    await bed.enact(CUT)
    jobs = []
    for _ in range(3):
        jobs.append(await bed.submit())
        bed.pass_time(SECOND)

    assert [(await bed.take()).job_id for _ in jobs] == jobs


async def test_the_more_urgent_goes_first(bed: Bed) -> None:
    await bed.enact(CUT)
    wanted = ["background", "low", "normal", "high", "critical"]
    jobs = {priority: await bed.submit(priority=priority) for priority in wanted}

    leases = await bed.claim(5)

    assert [lease.job_id for lease in leases] == [jobs[priority] for priority in reversed(wanted)]


async def test_an_hour_of_waiting_is_worth_one_step_of_priority(bed: Bed) -> None:
    await bed.enact(CUT)
    patient = await bed.submit(priority=4)
    bed.pass_time(HOUR + 1)
    urgent = await bed.submit(priority=5)

    assert [lease.job_id for lease in await bed.claim(2)] == [patient, urgent]


async def test_a_job_of_thousands_of_positions_lets_the_next_one_through(bed: Bed) -> None:
    await bed.enact(FANS)
    big = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": list(range(5_000))})
    bed.pass_time(10 * SECOND)
    small = await bed.submit()

    first = await bed.claim(12)

    assert small in [lease.job_id for lease in first]
    assert [lease.position for lease in first if lease.job_id == big] == list(range(11))


async def test_a_stage_may_weigh_its_positions_by_their_cost(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True, cost=MINUTE)))
    await bed.submit()
    await bed.done(await bed.take(), plan={"cut": [1, 2, 3]})
    bed.pass_time(90 * SECOND)
    other = await bed.submit()

    leases = await bed.claim(4)

    assert [lease.job_id == other for lease in leases] == [False, False, True, False]


async def test_a_stage_may_be_more_urgent_than_its_job(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("late"), a_stage("soon", priority_offset=1)))
    await bed.submit()

    assert named(await bed.claim(2)) == [("soon", 0), ("late", 0)]


async def test_the_rank_of_a_task_does_not_change_when_it_is_tried_again(bed: Bed) -> None:
    await bed.enact(CUT)
    first, second = await bed.submit(), await bed.submit()
    lease = await bed.take()

    bed.pass_time(SECOND)
    await bed.release(lease)

    assert [lease.job_id for lease in await bed.claim(2)] == [first, second]


# -- Looking before asking -------------------------------------------------------------------------


async def test_a_glance_tells_whether_a_claim_would_find_something(bed: Bed) -> None:
    await bed.enact(CUT)
    empty = await bed.engine.glance(bed.lanes)
    await bed.submit(run_at=bed.now + MINUTE)
    parked = await bed.engine.glance(bed.lanes)

    bed.pass_time(MINUTE)
    due = await bed.engine.glance(bed.lanes)
    await bed.claim()
    taken = await bed.engine.glance(bed.lanes)

    assert (empty, parked, due, taken) == (False, False, True, False)


async def test_a_glance_overlooks_what_stands_in_a_paused_flow(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()
    await bed.engine.jobs.pause("film")
    paused = await bed.engine.glance(bed.lanes)
    await bed.engine.jobs.pause("film", False)

    assert (paused, await bed.engine.glance(bed.lanes)) == (False, True)


async def test_a_handler_is_told_results_of_needed_stages_in_order(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("join", "plan cut")))
    await bed.submit()
    await bed.done(await bed.take(), plan={"cut": ["a", "b", "c"]}, result={"rate": 24})
    for lease in reversed(await bed.claim(3)):
        await bed.done(lease, result=lease.input.upper())

    lease = await bed.take()

    assert lease.needs_brief
    assert (await bed.engine.brief(lease)).results == {"plan": {"rate": 24}, "cut": ["A", "B", "C"]}


async def test_a_first_stage_without_a_subject_needs_no_brief(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()
    await bed.submit(subject=("movie", "7"))

    assert [lease.needs_brief for lease in await bed.claim(2)] == [False, True]


async def test_settled_work_opens_what_follows_for_the_same_claim(bed: Bed) -> None:
    await bed.enact(a_flow("cut", "join"))
    await bed.submit()

    first = await bed.take()
    await bed.say(first, Done())

    assert named(await bed.claim(5)) == [("join", 0)]


@pytest.mark.parametrize("bed", ["postgres"], indirect=True)
async def test_what_stands_behind_a_job_that_winds_down_is_granted_at_once(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    halting, next_one = await bed.submit(), await bed.submit()
    # As if somebody had asked for the end and died before its task was cancelled.
    await bed.give_rows()
    await bed.sql(f"update job_row set cancel_asked = true where id = {halting} returning 1")

    leases = await bed.claim(1)

    assert [lease.job_id for lease in leases] == [next_one]
    assert await bed.status(halting) == "cancelled"


async def test_a_claim_that_finds_nothing_writes_once_and_looks_once(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    """So it is with an idle fleet, every second; also if there is work that is not for now, or paused."""
    await bed.enact(a_flow("cut"))
    await bed.submit(run_at=bed.now + MINUTE)
    await bed.enact(a_flow("cut", name="other"))
    await bed.submit("other")
    await bed.engine.jobs.pause("other")
    asked: list[str] = []
    for name in ("run", "read"):
        monkeypatch.setattr(bed.store, name, _noted(getattr(bed.store, name), name, asked))

    early = await bed.claim()
    in_vain = asked.copy()
    bed.pass_time(MINUTE)
    asked.clear()
    due = await bed.claim()

    assert (early, in_vain) == ([], ["run", "read"])
    assert (len(due), asked) == (1, ["run", "read", "run", "run"]), "in vain, looked, unparked, granted"


def _noted(ask: Callable[..., Any], name: str, asked: list[str]) -> Callable[..., Any]:
    async def noted(make: Callable[[], Steps[Any]]) -> Any:
        asked.append(name)
        return await ask(make)

    return noted


async def test_a_claim_that_comes_up_short_unparks_what_is_due(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    later = await bed.submit(run_at=bed.now + MINUTE)
    now = await bed.submit()
    bed.pass_time(MINUTE)

    enough = await bed.claim(1)
    parked = [(await bed.tasks(later))[0]["parked"]]
    await bed.submit()
    short = await bed.claim(2)
    parked.append((await bed.tasks(later))[0]["parked"])

    assert ([lease.job_id for lease in enough], len(short)) == ([now], 1)
    assert [bool(value) for value in parked] == [True, False]


@pytest.mark.parametrize("bed", ["postgres"], indirect=True)
async def test_what_another_locked_and_did_not_take_is_granted_at_once(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim locks as many as it wants in each of its lanes, and takes only the best of them."""
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    other = await asyncpg.connect(bed.url)
    await other.execute(f"begin; select 1 from task where job_id = {job_id} for no key update")
    read = bed.store.read

    async def read_later(make: Callable[[], Steps[Any]]) -> Any:
        await other.execute("rollback")
        return await read(make)

    monkeypatch.setattr(bed.store, "read", read_later)

    leases = await bed.claim(1)

    await other.close()
    assert [lease.job_id for lease in leases] == [job_id]
