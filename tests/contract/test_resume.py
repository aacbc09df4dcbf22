"""A person asks again for a job that winds down: it goes on at once, while its last tasks still run."""

import asyncio

from telecine.facts import MINUTE, Lease, Status
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed, named

PIECES = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("join", "cut"))


async def winding_down(bed: Bed) -> tuple[int, Lease]:
    """One piece has failed for good, one waited and is cancelled, one still runs: its lease."""
    await bed.enact(PIECES)
    job_id = await bed.submit(dedupe_key="d")
    await bed.done(await bed.take(), plan={"cut": ["a", "b", "c"]})
    last, broken = await bed.claim(2)
    await bed.fail(broken, permanent=True)
    assert await bed.states(job_id) == ["done", "running", "error", "cancelled", "cancelled"]
    return job_id, last


async def test_a_job_that_winds_down_goes_on_when_it_is_asked_for_again(bed: Bed) -> None:
    job_id, last = await winding_down(bed)

    before = await bed.engine.jobs.resume(job_id, actor="ann")

    job = await bed.job(job_id)
    assert before is Status.PROCESSING
    assert (job["status"], job["generation"], job["outcome"], job["error"]) == ("processing", 2, None, None)
    assert await bed.states(job_id) == ["done", "running", "ready", "ready", "new"]
    await bed.audited()
    assert (await bed.done(last)).accepted
    assert await bed.run_all() == 3
    assert await bed.status(job_id) == "completed"
    assert "job.failed" not in await bed.events(job_id)
    await bed.audited()


async def test_if_its_last_task_ends_first_it_is_opened_again(bed: Bed) -> None:
    job_id, last = await winding_down(bed)
    await bed.release(last)

    before = await bed.engine.jobs.resume(job_id)

    assert (before, (await bed.job(job_id))["generation"]) == (Status.FAILED, 2)
    assert await bed.run_all() == 4
    assert await bed.status(job_id) == "completed"
    await bed.audited()


async def test_a_task_that_was_told_to_stop_before_is_done_again(bed: Bed) -> None:
    job_id, last = await winding_down(bed)
    told_before = (await bed.beaten(last)).stop

    await bed.engine.jobs.resume(job_id)
    told_after = (await bed.beaten(last)).stop
    await bed.release(last)

    assert (told_before, told_after) == (((last.task_id, last.token),), ())
    assert await bed.states(job_id) == ["done", "ready", "ready", "ready", "new"]
    assert (await bed.task(last.task_id))["tries"] == 0
    assert await bed.run_all() == 4
    await bed.audited()


async def test_its_worker_that_is_lost_after_that_costs_no_more_than_another_attempt(bed: Bed) -> None:
    job_id, last = await winding_down(bed)

    await bed.engine.jobs.resume(job_id)
    await bed.lose(last)

    assert (await bed.states(job_id))[1] == "ready"
    assert await bed.run_all() == 4
    assert await bed.status(job_id) == "completed"


async def test_what_runs_is_the_first_attempt_of_the_new_generation(bed: Bed) -> None:
    """On its last attempt it would otherwise fail the job at once, after a person asked for it again."""
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(max_attempts=2)), a_stage("sing")))
    job_id = await bed.submit()
    await bed.fail(await bed.take())
    bed.pass_time(MINUTE)
    sing, cut = await bed.take(), await bed.take()
    assert (sing.stage, cut.stage, cut.attempt) == ("sing", "cut", 2)
    await bed.fail(sing, permanent=True)

    await bed.engine.jobs.resume(job_id)
    await bed.fail(cut)

    history = await bed.attempts(cut.task_id)
    assert [(row["token"], row["generation"], row["try"]) for row in history] == [(1, 1, 1), (2, 2, 1)]
    assert await bed.states(job_id) == ["ready", "ready"]
    bed.pass_time(MINUTE)
    await bed.run_all()
    assert await bed.status(job_id) == "completed"
    await bed.audited()


async def test_another_stage_that_runs_stays_as_it_is(bed: Bed) -> None:
    await bed.enact(a_flow("cut", a_stage("sing"), a_stage("join", "cut sing")))
    job_id = await bed.submit()
    leases = {lease.stage: lease for lease in await bed.claim(2)}
    await bed.fail(leases["cut"], permanent=True)
    before = (await bed.events(job_id)).count("stage.ready")

    await bed.engine.jobs.resume(job_id)

    assert await bed.stages(job_id) == {"cut": "ready", "sing": "ready", "join": "new"}
    assert (await bed.events(job_id)).count("stage.ready") == before + 1
    await bed.done(leases["sing"])
    assert await bed.run_all() == 2
    assert await bed.status(job_id) == "completed"
    await bed.audited()


async def test_what_a_running_task_is_built_on_is_not_opened_again(bed: Bed) -> None:
    """The optional stage has failed, and what follows it runs: its warning stays."""
    await bed.enact(a_flow(a_stage("note", optional=True), a_stage("show", "note"), a_stage("cut")))
    job_id = await bed.submit()
    leases = {lease.stage: lease for lease in await bed.claim(2)}
    await bed.fail(leases["note"], permanent=True)
    show = await bed.take()
    await bed.fail(leases["cut"], permanent=True)

    await bed.engine.jobs.resume(job_id)

    assert await bed.stages(job_id) == {"note": "error", "cut": "ready", "show": "ready"}
    assert (await bed.job(job_id))["warnings"] == 1
    await bed.audited()
    await bed.done(show)
    await bed.run_all()
    assert ((await bed.job(job_id))["status"], (await bed.job(job_id))["warnings"]) == ("completed", 1)
    await bed.audited()


async def test_an_optional_piece_of_a_stage_that_is_open_is_tried_again(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut"), a_stage("note", optional=True), a_stage("join", "cut note")))
    job_id = await bed.submit()
    leases = {lease.stage: lease for lease in await bed.claim(2)}
    await bed.fail(leases["cut"], permanent=True)

    await bed.engine.jobs.resume(job_id)
    await bed.fail(leases["note"], permanent=True)

    assert await bed.stages(job_id) == {"cut": "ready", "note": "error", "join": "new"}
    assert await bed.run_all() == 2
    assert ((await bed.job(job_id))["status"], (await bed.job(job_id))["warnings"]) == ("completed", 1)
    await bed.audited()


async def test_a_plan_that_comes_after_it_is_followed(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("sing"), a_stage("cut", "plan", fan_out=True)))
    job_id = await bed.submit()
    leases = {lease.stage: lease for lease in await bed.claim(2)}
    await bed.fail(leases["sing"], permanent=True)

    await bed.engine.jobs.resume(job_id)
    await bed.done(leases["plan"], plan={"cut": ["a", "b"]})

    assert named(await bed.claim(5)) == [("sing", 0), ("cut", 0), ("cut", 1)]
    await bed.audited()


async def test_a_job_that_was_cancelled_while_it_failed_ends(bed: Bed) -> None:
    """Somebody wants it gone, perhaps because its video was deleted: to ask for it again makes no difference."""
    job_id, last = await winding_down(bed)
    await bed.engine.jobs.cancel(job_id)

    await bed.engine.jobs.resume(job_id)
    await bed.release(last)

    assert (await bed.status(job_id), (await bed.job(job_id))["generation"]) == ("cancelled", 1)
    await bed.audited()


async def test_to_ask_twice_opens_one_generation(bed: Bed) -> None:
    job_id, last = await winding_down(bed)
    other = await bed.another_engine()

    await asyncio.gather(bed.engine.jobs.resume(job_id), other.jobs.resume(job_id))

    assert (await bed.job(job_id))["generation"] == 2
    assert (await bed.events(job_id)).count("job.retried") == 1
    await bed.done(last)
    assert await bed.run_all() == 3
    await bed.audited()
