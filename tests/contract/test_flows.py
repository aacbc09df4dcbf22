"""What follows from settled tasks: fan-out, fan-in, errors, status."""

import asyncio

import pytest

from telecine.engine.leases import settle as settling
from telecine.facts import Done, Failed, LeaseOutcome, Piece, Status
from telecine.json_limits import MAX_PIECES
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed, named

FANS = a_flow(
    a_stage("plan", phase=Status.PLANNING),
    a_stage("cut", "plan", fan_out=True),
    a_stage("join", "cut", phase=Status.UPLOADING_OUTPUTS),
)


async def planned(bed: Bed, *pieces: object) -> int:
    await bed.enact(FANS)
    job_id = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": list(pieces)})
    return job_id


# -- Fan-out and fan-in ----------------------------------------------------------------------------


async def test_a_plan_becomes_one_task_for_each_position(bed: Bed) -> None:
    job_id = await planned(bed, "a", {"b": 1}, None)

    leases = await bed.claim(5)

    assert [(lease.position, lease.input) for lease in leases] == [(0, "a"), (1, {"b": 1}), (2, None)]
    assert await bed.stages(job_id) == {"plan": "done", "cut": "ready", "join": "new"}
    await bed.audited()


async def test_the_next_stage_opens_when_the_last_position_is_done_and_not_before(bed: Bed) -> None:
    job_id = await planned(bed, 1, 2, 3)
    leases = await bed.claim(5)

    opened = []
    for lease in leases:
        await bed.done(lease)
        opened.append((await bed.stages(job_id))["join"])

    assert opened == ["new", "new", "ready"]
    await bed.audited()


async def test_all_positions_may_end_in_one_batch(bed: Bed) -> None:
    job_id = await planned(bed, 1, 2, 3)

    await bed.settle(await bed.claim(5))

    assert named(await bed.claim(5)) == [("join", 0)]
    assert await bed.status(job_id) == "uploading_outputs"
    await bed.audited()


async def test_the_last_two_positions_ending_at_once_open_the_next_stage_once(bed: Bed) -> None:
    job_id = await planned(bed, 1, 2)
    first, second = await bed.claim(2)
    other = await bed.another_engine()

    await asyncio.gather(bed.done(first), other.settle([LeaseOutcome(second.task_id, second.token, Done())]))

    assert await bed.states(job_id) == ["done", "done", "done", "ready"]
    assert (await bed.events(job_id)).count("stage.ready") == 2
    await bed.audited()


async def test_thousands_of_positions_are_planned_in_one_commit(bed: Bed) -> None:
    job_id = await planned(bed, *range(3_000))

    assert await bed.count("task", f"job_id = {job_id} and state = 'ready'") == 3_000


async def test_a_plan_for_nothing_skips_the_stage(bed: Bed) -> None:
    job_id = await planned(bed)

    assert await bed.stages(job_id) == {"plan": "done", "cut": "skipped", "join": "ready"}
    await bed.audited()


async def test_a_planner_that_plans_nothing_at_all_skips_the_stage(bed: Bed) -> None:
    await bed.enact(FANS)
    job_id = await bed.submit()
    await bed.done(await bed.take())

    assert (await bed.stages(job_id))["cut"] == "skipped"


async def test_several_planners_add_to_one_stage(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("a"), a_stage("b"), a_stage("cut", "a b", fan_out=True)))
    job_id = await bed.submit()
    a, b = await bed.claim(2)

    await bed.done(a, plan={"cut": ["a0", "a1"]})
    half = await bed.claim(5)
    await bed.done(b, plan={"cut": ["b0"]})

    assert half == []
    assert [(lease.position, lease.input) for lease in await bed.claim(5)] == [(0, "a0"), (1, "a1"), (2, "b0")]
    assert (await bed.stages(job_id))["cut"] == "ready"
    await bed.audited()


async def test_a_repeated_plan_is_planned_once(bed: Bed) -> None:
    await bed.enact(FANS)
    job_id = await bed.submit()
    lease = await bed.take()

    for _ in range(3):
        await bed.done(lease, plan={"cut": [1, 2]})

    assert len(await bed.tasks(job_id)) == 4


# -- Errors ----------------------------------------------------------------------------------------


async def test_a_required_error_cancels_what_waits_and_the_job_fails_when_the_last_has_ended(bed: Bed) -> None:
    job_id = await planned(bed, 1, 2, 3)
    first, second = await bed.claim(2)

    await bed.fail(first, permanent=True)
    between = await bed.states(job_id), await bed.status(job_id)
    await bed.done(second)

    assert between == (["done", "error", "running", "cancelled", "cancelled"], "processing")
    assert await bed.states(job_id) == ["done", "error", "done", "cancelled", "cancelled"]
    assert await bed.status(job_id) == "failed"
    await bed.audited()


async def test_nothing_of_a_failing_job_is_claimed(bed: Bed) -> None:
    await planned(bed, 1, 2, 3)
    await bed.fail(await bed.take(), permanent=True)

    assert await bed.claim(5) == []


async def test_an_error_and_a_retry_in_one_batch_leave_nothing_behind(bed: Bed) -> None:
    """Whatever their order: the one that would be tried again belongs to a job that fails."""
    for order in (0, 1):
        job_id = await planned(bed, 1, 2)
        leases = await bed.claim(2)
        facts = [Failed("again"), Failed("never", permanent=True)]
        words = [LeaseOutcome(lease.task_id, lease.token, fact) for lease, fact in zip(leases, facts, strict=True)]

        answers = await bed.engine.settle(words[::-1] if order else words)

        assert sorted(str(answer.state) for answer in answers) == ["cancelled", "error"]
        assert await bed.status(job_id) == "failed"
        await bed.audited()


async def test_a_plan_that_comes_when_the_job_already_fails_is_kept_for_a_retry(bed: Bed) -> None:
    await bed.enact(
        a_flow(a_stage("plan"), a_stage("check"), a_stage("cut", "plan", fan_out=True), a_stage("join", "cut"))
    )
    job_id = await bed.submit()
    plan, check = await bed.claim(2)
    await bed.fail(check, permanent=True)

    await bed.done(plan, plan={"cut": ["a", "b"]})
    failed = await bed.status(job_id), await bed.states(job_id)
    await bed.audited()
    await bed.engine.jobs.retry(job_id)
    leases = await bed.claim(5)

    assert failed == ("failed", ["done", "error", "cancelled", "cancelled", "cancelled"])
    assert sorted(named(leases)) == [("check", 0), ("cut", 0), ("cut", 1)]
    await bed.audited()


async def test_a_plan_and_an_error_in_one_batch_lose_nothing(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("check"), a_stage("cut", "plan", fan_out=True)))
    job_id = await bed.submit()
    plan, check = await bed.claim(2)

    await bed.engine.settle(
        [
            LeaseOutcome(plan.task_id, 1, Done(plan={"cut": ["a", "b"]})),
            LeaseOutcome(check.task_id, 1, Failed("never", permanent=True)),
        ]
    )
    failed = await bed.status(job_id)
    await bed.audited()
    await bed.engine.jobs.retry(job_id)

    assert failed == "failed"
    assert sorted(named(await bed.claim(5))) == [("check", 0), ("cut", 0), ("cut", 1)]


async def test_an_optional_stage_that_errs_leaves_a_warning(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut"), a_stage("note", optional=True), a_stage("join", "cut note")))
    job_id = await bed.submit()
    leases = {lease.stage: lease for lease in await bed.claim(5)}

    await bed.fail(leases["note"], permanent=True)
    await bed.done(leases["cut"])
    await bed.done(await bed.take())

    job = await bed.job(job_id)
    assert (job["status"], job["warnings"], job["error"]) == ("completed", 1, None)
    assert await bed.stages(job_id) == {"cut": "done", "note": "error", "join": "done"}
    await bed.audited()


async def test_an_optional_piece_that_errs_leaves_a_warning(bed: Bed) -> None:
    job_id = await planned(bed, Piece(input=1, optional=True), 2)
    first, second = await bed.claim(2)

    await bed.fail(first, permanent=True)
    await bed.done(second)
    await bed.done(await bed.take())

    assert (await bed.job(job_id))["warnings"] == 1
    assert await bed.status(job_id) == "completed"
    await bed.audited()


async def test_a_quarantined_task_fails_its_job(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    for _ in range(3):
        await bed.lose(await bed.take())

    assert await bed.status(job_id) == "failed"
    assert (await bed.engine.queries.job(job_id)).error["code"] == "quarantined"
    await bed.audited()


# -- Status ----------------------------------------------------------------------------------------


async def test_a_job_goes_through_its_phases_in_order(bed: Bed) -> None:
    await bed.enact(FANS)
    job_id = await bed.submit()
    seen = [await bed.status(job_id)]
    while leases := await bed.claim(5):
        seen.append(await bed.status(job_id))
        for lease in leases:
            await bed.done(lease, plan={"cut": [1]} if lease.stage == "plan" else None)
        seen.append(await bed.status(job_id))

    assert seen == [
        *("pending", "planning", "processing", "processing"),
        *("uploading_outputs", "uploading_outputs", "completed"),
    ]


async def test_events_of_a_job_tell_its_story(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True, policy=a_policy(max_attempts=1))))
    job_id = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": [1, 2]})
    await bed.settle(await bed.claim(2))

    assert await bed.events(job_id) == [
        *("job.created", "task.started", "task.done", "stage.ready", "task.started", "task.started"),
        *("task.done", "task.done", "stage.done", "job.completed"),
    ]


async def test_a_plan_of_too_many_pieces_fails_the_task_and_writes_none(bed: Bed) -> None:
    await bed.enact(FANS)
    job_id = await bed.submit()

    answer = await bed.done(await bed.take(), plan={"cut": [None] * (MAX_PIECES + 1)})

    assert answer.state == "error"
    assert (await bed.job(job_id))["status"] == "failed"
    assert "at most 50,000 are taken" in str((await bed.job(job_id))["error"])
    assert await bed.count("task", "stage = 1") == 0


async def test_a_job_has_a_limited_number_of_tasks_however_many_plans_it_has(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settling, "MAX_TASKS", 10)
    await bed.enact(
        a_flow(a_stage("plan"), a_stage("more", "plan", fan_out=True), a_stage("cut", "more", fan_out=True))
    )
    job_id = await bed.submit()

    await bed.done(await bed.take(), plan={"more": [1, 2, 3]})
    first, second, _ = await bed.claim(3)
    answers = await bed.engine.settle(
        [LeaseOutcome(lease.task_id, lease.token, Done(plan={"cut": [None] * 4})) for lease in (first, second)]
    )

    assert [answer.state for answer in answers] == ["done", "error"]
    assert "no job has more than 10" in str((await bed.job(job_id))["error"])
    await bed.audited()
