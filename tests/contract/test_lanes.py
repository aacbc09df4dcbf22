"""Which lanes a worker is served from, what a repeated claim gets, and who gets nothing."""

import asyncio

import pytest

from telecine.engine import Submission
from telecine.errors import BadSpec
from telecine.facts import MINUTE, SECOND, Mode, Piece
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed, pairs

CUT = a_flow("cut")
FANS = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True))


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
    await bed.engine.jobs.register(a_flow(a_stage("cut", version=2)))
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

    await bed.engine.jobs.pause("film")
    paused = await bed.claim(5)
    await bed.engine.jobs.pause("film", False)
    resumed = await bed.claim(5)

    assert ([x.flow for x in paused], [x.flow for x in resumed]) == (["opera"], ["film"])


async def test_a_paused_flow_is_not_handed_out_under_the_name_of_another(bed: Bed) -> None:
    await bed.enact(CUT, a_flow("sing", name="opera"))
    await bed.submit()
    await bed.engine.jobs.pause("film")

    for lanes in ({"film/cut@1": "opera"}, {"film/cut@1": ""}, {"opera/sing@1": "opera", "film/cut@1": "fil"}):
        with pytest.raises(BadSpec, match="lane 'film/cut@1' is not of flow"):
            await bed.engine.claim(bed.worker, "request", lanes, 1)
        with pytest.raises(BadSpec, match="name the flow that the lane begins with"):
            await bed.engine.glance(lanes)

    assert [row["state"] for row in await bed.sql("select state from task")] == ["ready"]


async def test_a_new_version_of_a_paused_flow_is_paused_too(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.jobs.pause("film")

    await bed.enact(a_flow(a_stage("cut", version=2)))
    await bed.submit()

    assert await bed.claim() == []


# -- Repeats ---------------------------------------------------------------------------------------


async def test_a_repeated_request_gets_the_same_leases_and_says_nothing_twice(bed: Bed) -> None:
    await bed.enact(CUT)
    job_id = await bed.submit()
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 5)

    first = await bed.claim(3, request="r")
    bed.pass_time(SECOND)
    again = await bed.claim(3, request="r")

    assert again == first
    assert await bed.count("task", "state = 'running'") == 3
    assert (await bed.events(job_id)).count("task.started") == 1


async def test_an_older_request_that_comes_again_gets_what_it_got(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 6)
    first = await bed.claim(2, request="one")
    await bed.claim(2, request="two")

    assert await bed.claim(2, request="one") == first
    assert await bed.count("task", "state = 'running'") == 4


async def test_a_request_whose_leases_have_all_ended_gets_nothing_more(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 4)
    await bed.settle(await bed.claim(2, request="r"))

    assert await bed.claim(2, request="r") == []


async def test_a_repeated_request_gets_only_what_is_still_running(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 4)
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
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 2)
    bob = await bed.enlist("bob")

    ours, theirs = await bed.claim(1, request="r"), await bed.claim(1, bob, request="r")

    assert ours[0].task_id != theirs[0].task_id


async def test_a_request_that_is_sent_twice_at_once_is_granted_once(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 20)
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
