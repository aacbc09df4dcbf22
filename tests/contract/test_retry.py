"""A person's retry: a new generation in which done work stays done."""

import asyncio

import pytest

from telecine.errors import DedupeTaken, VersionMismatch, WrongState
from telecine.facts import MINUTE, KeptArtifact, Status
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed, named

LINE = a_flow("cut", "join")


async def failed_job(bed: Bed) -> int:
    """cut is done, join has failed for good."""
    await bed.enact(LINE)
    job_id = await bed.submit(dedupe_key="d")
    await bed.done(await bed.take(), result="cut")
    await bed.fail(await bed.take(), permanent=True)
    return job_id


async def test_a_retry_opens_what_failed_and_leaves_done_what_is_done(bed: Bed) -> None:
    job_id = await failed_job(bed)

    await bed.engine.jobs.retry(job_id, actor="ann")

    job = await bed.job(job_id)
    assert (job["status"], job["generation"], job["outcome"], job["error"]) == ("pending", 2, None, None)
    assert await bed.states(job_id) == ["done", "ready"]
    assert await bed.stages(job_id) == {"cut": "done", "join": "ready"}
    lease = await bed.take()
    assert (await bed.engine.brief(lease)).results == {"cut": "cut"}
    await bed.done(lease)
    assert await bed.status(job_id) == "completed"
    await bed.audited()


async def test_the_token_goes_on_and_the_attempts_begin_anew(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(max_attempts=2))))
    job_id = await bed.submit()
    for _ in range(2):
        await bed.fail(await bed.take())
        bed.pass_time(MINUTE)

    await bed.engine.jobs.retry(job_id)
    lease = await bed.take()

    assert (lease.token, lease.attempt) == (3, 1)
    await bed.done(lease)
    history = await bed.attempts(lease.task_id)
    assert [(row["token"], row["generation"], row["try"]) for row in history] == [(1, 1, 1), (2, 1, 2), (3, 2, 1)]
    await bed.audited()


async def test_a_late_worker_of_the_old_generation_is_refused(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    old = await bed.take()
    await bed.fail(old, permanent=True)
    await bed.engine.jobs.retry(job_id)

    before = await bed.done(old)
    new = await bed.take()
    during = await bed.done(old)

    assert (before.accepted, during.accepted) == (False, False)
    assert (await bed.done(new)).accepted
    await bed.audited()


async def test_a_cancelled_job_can_be_retried(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    await bed.engine.jobs.cancel(job_id)

    await bed.engine.jobs.retry(job_id)

    assert await bed.states(job_id) == ["ready", "new"]
    assert await bed.run_all() == 2
    assert await bed.status(job_id) == "completed"
    await bed.audited()


async def test_a_stage_of_many_reopens_only_what_is_not_done(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("join", "cut")))
    job_id = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": ["a", "b", "c"]})
    first, second = await bed.claim(2)
    await bed.done(first)
    await bed.fail(second, permanent=True)

    await bed.engine.jobs.retry(job_id)

    assert await bed.states(job_id) == ["done", "done", "ready", "ready", "new"]
    assert [lease.input for lease in await bed.claim(5)] == ["b", "c"]
    await bed.audited()


async def test_what_was_kept_before_the_retry_is_still_there(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    lease = await bed.take()
    await bed.engine.keep(lease.task_id, 1, [KeptArtifact(name="at", token=1, value=7)])
    await bed.fail(lease, permanent=True)

    await bed.engine.jobs.retry(job_id)

    assert (await bed.engine.brief(await bed.take())).kept["at"].value == 7


async def test_an_optional_error_is_tried_again_too(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut"), a_stage("note", optional=True), a_stage("join", "cut note")))
    job_id = await bed.submit()
    leases = {lease.stage: lease for lease in await bed.claim(5)}
    await bed.fail(leases["note"], permanent=True)
    await bed.done(leases["cut"])
    await bed.fail(await bed.take(), permanent=True)

    await bed.engine.jobs.retry(job_id)
    again = await bed.claim(5)

    assert named(again) == [("note", 0)]
    await bed.settle(again)
    assert named(await bed.claim(5)) == [("join", 0)]
    assert (await bed.job(job_id))["warnings"] == 0


@pytest.mark.parametrize("ending", ["pending", "processing", "completed"])
async def test_only_a_failed_or_cancelled_job_can_be_retried(bed: Bed, ending: str) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    if ending == "processing":
        await bed.claim()
    if ending == "completed":
        await bed.run_all()

    with pytest.raises(WrongState, match=f"job {job_id} is {ending}: only a failed or cancelled job can be retried"):
        await bed.engine.jobs.retry(job_id)


async def test_a_retry_whose_dedupe_key_is_taken_names_the_other_job(bed: Bed) -> None:
    job_id = await failed_job(bed)
    other = await bed.submit(dedupe_key="d")

    with pytest.raises(DedupeTaken, match=f"dedupe key 'd' is held by job {other}, which has not finished"):
        await bed.engine.jobs.retry(job_id)

    assert (await bed.job(job_id))["generation"] == 1


async def test_of_two_retries_at_once_one_opens_a_generation(bed: Bed) -> None:
    job_id = await failed_job(bed)
    other = await bed.another_engine()

    answers = await asyncio.gather(bed.engine.jobs.retry(job_id), other.jobs.retry(job_id), return_exceptions=True)

    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "WrongState"]
    assert (await bed.job(job_id))["generation"] == 2
    await bed.audited()


async def test_a_retried_job_that_waits_for_another_goes_on_waiting(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    second = await bed.submit(after=(first,))
    await bed.engine.jobs.cancel(second)

    await bed.engine.jobs.retry(second)
    waiting = await bed.states(second)
    await bed.done(await bed.take())

    assert (waiting, await bed.states(second)) == (["new"], ["ready"])
    await bed.audited()


async def test_of_two_who_follow_the_same_generation_both_are_content_and_one_opens_it(bed: Bed) -> None:
    job_id = await failed_job(bed)
    other = await bed.another_engine()

    await asyncio.gather(bed.engine.jobs.retry(job_id, generation=1), other.jobs.retry(job_id, generation=1))

    assert (await bed.job(job_id))["generation"] == 2
    assert (await bed.events(job_id)).count("job.retried") == 1
    await bed.audited()


@pytest.mark.parametrize("generation", [1, 4])
async def test_a_retry_after_a_generation_that_is_not_the_last_is_refused(bed: Bed, generation: int) -> None:
    job_id = await failed_job(bed)
    for known in (1, 2):
        await bed.engine.jobs.retry(job_id, generation=known)
        await bed.engine.jobs.cancel(job_id)

    with pytest.raises(VersionMismatch, match=f"job {job_id} is at generation 3, not {generation}: read it again"):
        await bed.engine.jobs.retry(job_id, generation=generation)


async def test_a_job_that_is_asked_for_again_goes_on_after_a_third_loss(bed: Bed) -> None:
    """The worker was killed and nobody has noticed: whether the sweep or the person comes first, the job goes on."""
    await bed.enact(LINE)
    job_id = await bed.submit()
    for _ in range(2):
        await bed.lose(await bed.take())
    lease = await bed.take()

    before = await bed.engine.jobs.resume(job_id)
    await bed.lose(lease)

    assert before is Status.PROCESSING
    assert await bed.states(job_id) == ["ready", "new"]
    assert (await bed.task(lease.task_id))["losses"] == 1
    await bed.audited()


async def test_a_failed_job_that_is_asked_for_again_is_retried(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    for _ in range(3):
        await bed.lose(await bed.take())

    before = await bed.engine.jobs.resume(job_id)

    assert (before, await bed.status(job_id)) == (Status.FAILED, "pending")
    assert (await bed.job(job_id))["generation"] == 2


async def test_a_completed_job_that_is_asked_for_again_stays_as_it_is(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    await bed.run_all()

    assert await bed.engine.jobs.resume(job_id) is Status.COMPLETED
    assert await bed.status(job_id) == "completed"
