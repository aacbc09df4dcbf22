"""Claim: who gets what, in which order, and what a repeat gets."""

import asyncio

import pytest

from telecine.engine import Submission
from telecine.facts import HOUR, LEASE, MINUTE, SECOND, Done, Mode, Piece
from tests.bed import Bed, named, pairs
from tests.make import a_flow, a_stage

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
    await bed.engine.submit_many([Submission(flow="film")] * 5)

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


# -- Lanes -----------------------------------------------------------------------------------------


async def test_only_the_lanes_that_a_worker_names_are_served(bed: Bed) -> None:
    await bed.enact(a_flow("cut"), a_flow("sing", name="opera"))
    await bed.submit("film")
    await bed.submit("opera")

    bed.lanes = {"opera/sing@1": "opera"}

    assert [lease.flow for lease in await bed.claim(5)] == ["opera"]


async def test_a_labelled_stage_waits_for_a_worker_with_the_label(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut", labels=("gpu",))))
    await bed.submit()
    served = dict(bed.lanes)

    bed.lanes = {"film/cut@1": "film"}
    without = await bed.claim()
    bed.lanes = served

    assert (without, len(await bed.claim())) == ([], 1)
    assert list(served) == ["film/cut@1+gpu"]


async def test_a_piece_may_ask_for_labels_of_its_own(bed: Bed) -> None:
    await bed.enact(FANS)
    await bed.submit()
    await bed.done(await bed.take(), plan={"cut": ["a", Piece(input="b", labels=("gpu",))]})

    plain = await bed.claim(5)
    bed.lanes = {"film/cut@1+gpu": "film"}
    gpu = await bed.claim(5)

    assert ([lease.input for lease in plain], [lease.input for lease in gpu]) == (["a"], ["b"])


async def test_a_stage_version_that_a_worker_does_not_know_is_left_alone(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.register(a_flow(a_stage("cut", version=2)))
    await bed.submit()

    old = await bed.claim()
    bed.lanes = {"film/cut@2": "film"}
    new = await bed.claim()

    assert (old, [lease.version for lease in new]) == ([], [2])


async def test_lanes_are_merged_by_rank(bed: Bed) -> None:
    await bed.enact(a_flow("cut"), a_flow("sing", name="opera"))
    order = []
    for flow in ("film", "opera", "opera", "film"):
        order.append(await bed.submit(flow))
        bed.pass_time(1)

    assert [lease.job_id for lease in await bed.claim(3)] == order[:3]


async def test_nothing_of_a_paused_flow_starts_until_it_is_resumed(bed: Bed) -> None:
    await bed.enact(a_flow("cut"), a_flow("sing", name="opera"))
    await bed.submit("film")
    await bed.submit("opera")

    await bed.engine.pause("film")
    paused = await bed.claim(5)
    await bed.engine.pause("film", False)
    resumed = await bed.claim(5)

    assert ([x.flow for x in paused], [x.flow for x in resumed]) == (["opera"], ["film"])


async def test_a_new_version_of_a_paused_flow_is_paused_too(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.pause("film")

    await bed.enact(a_flow(a_stage("cut", version=2)))
    await bed.submit()

    assert await bed.claim() == []


# -- Repeats ---------------------------------------------------------------------------------------


async def test_a_repeated_request_gets_the_same_leases_and_says_nothing_twice(bed: Bed) -> None:
    await bed.enact(CUT)
    job_id = await bed.submit()
    await bed.engine.submit_many([Submission(flow="film")] * 5)

    first = await bed.claim(3, request="r")
    bed.pass_time(SECOND)
    again = await bed.claim(3, request="r")

    assert again == first
    assert await bed.count("task", "state = 'running'") == 3
    assert (await bed.events(job_id)).count("task.started") == 1


async def test_a_repeated_request_gets_only_what_is_still_running(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.submit_many([Submission(flow="film")] * 4)
    first = await bed.claim(2, request="r")

    await bed.done(first[0])

    assert await bed.claim(2, request="r") == first[1:]


async def test_a_repeat_also_returns_what_fell_due_in_the_first_call(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit(run_at=bed.now + MINUTE)
    bed.pass_time(MINUTE)

    first = await bed.claim(2, request="r")

    assert len(first) == 1
    assert await bed.claim(2, request="r") == first


async def test_requests_of_different_workers_are_different_requests(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.submit_many([Submission(flow="film")] * 2)
    bob = await bed.enlist("bob")

    ours, theirs = await bed.claim(1, request="r"), await bed.claim(1, bob, request="r")

    assert ours[0].task_id != theirs[0].task_id


async def test_a_request_that_is_sent_twice_at_once_is_granted_once(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.submit_many([Submission(flow="film")] * 20)
    other = await bed.another_engine()

    both = await asyncio.gather(
        bed.claim(5, request="r"), other.claim(bed.worker, "r", bed.lanes, 5), return_exceptions=True
    )
    answers = [pairs(some) for some in both if isinstance(some, list)]
    held = pairs(await bed.claim(5, request="r"))

    assert all(answer == held for answer in answers)
    assert await bed.count("task", "state = 'running'") == 5


# -- Workers that get nothing ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.DRAINING, Mode.DISABLED])
async def test_a_worker_that_is_draining_or_disabled_gets_nothing(bed: Bed, mode: Mode) -> None:
    await bed.enact(CUT)
    await bed.submit()

    await bed.engine.set_mode(bed.worker, mode)
    nothing = await bed.claim()
    await bed.engine.set_mode(bed.worker, Mode.ACTIVE)

    assert (nothing, len(await bed.claim())) == ([], 1)


async def test_a_revoked_worker_gets_nothing_for_ever(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()

    await bed.engine.set_mode(bed.worker, Mode.DISABLED, revoke=True)

    assert await bed.claim() == []
    with pytest.raises(Exception, match="it was revoked for good"):
        await bed.engine.set_mode(bed.worker, Mode.ACTIVE)
    assert await bed.claim() == []


async def test_a_worker_that_has_left_gets_nothing(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()

    await bed.engine.retire(bed.worker)

    assert await bed.claim() == []


async def test_an_unknown_worker_gets_nothing(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()

    assert await bed.engine.claim(bed.worker + 1_000, "r", bed.lanes, 5) == []


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
