"""Cancel: what waits ends now, what runs is waited for."""

import asyncio

import pytest

from telecine.errors import NotFound, WrongState
from telecine.facts import Done, LeaseOutcome, Released
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

LINE = a_flow("cut", "join")


async def test_a_job_that_has_not_begun_is_cancelled_at_once(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()

    status = await bed.engine.jobs.cancel(job_id, reason="not wanted", actor="ann")

    assert status == "cancelled"
    assert await bed.states(job_id) == ["cancelled", "cancelled"]
    error = (await bed.engine.queries.job(job_id)).error
    assert error == {"code": "cancelled", "message": "not wanted", "actor": "ann"}
    assert await bed.events(job_id) == ["job.created", "job.cancel_asked", "job.cancelled"]
    assert await bed.claim() == []
    await bed.audited()


async def test_a_running_task_is_waited_for(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    lease = await bed.take()

    status = await bed.engine.jobs.cancel(job_id)
    states = await bed.states(job_id)
    await bed.release(lease)

    assert (status, states) == ("processing", ["running", "cancelled"])
    assert (await bed.status(job_id), await bed.states(job_id)) == ("cancelled", ["cancelled", "cancelled"])
    await bed.audited()


async def test_what_was_done_before_stays_done(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    await bed.done(await bed.take())

    await bed.engine.jobs.cancel(job_id)

    assert await bed.states(job_id) == ["done", "cancelled"]
    await bed.audited()


async def test_a_parked_retry_is_cancelled_too(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    await bed.fail(await bed.take())

    assert await bed.engine.jobs.cancel(job_id) == "cancelled"
    await bed.audited()


async def test_a_cancelled_job_whose_worker_dies_ends_when_the_lease_does(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    lease = await bed.take()
    await bed.engine.jobs.cancel(job_id)

    await bed.lose(lease)

    assert await bed.status(job_id) == "cancelled"
    await bed.audited()


async def test_a_second_cancel_changes_nothing(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    await bed.engine.jobs.cancel(job_id, reason="first")
    before = await bed.events(job_id), await bed.job(job_id)

    assert await bed.engine.jobs.cancel(job_id, reason="second") == "cancelled"

    assert (await bed.events(job_id), await bed.job(job_id)) == before


async def test_a_job_that_has_ended_cannot_be_cancelled(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    done = await bed.submit()
    await bed.run_all()

    with pytest.raises(WrongState, match=f"job {done} is completed: there is nothing left to cancel"):
        await bed.engine.jobs.cancel(done)
    with pytest.raises(NotFound, match="there is no job 999999"):
        await bed.engine.jobs.cancel(999_999)


async def test_cancel_and_claim_at_once_end_in_one_of_two_ways(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    other = await bed.another_engine()
    for n in range(10):
        job_id = await bed.submit()

        leases, _ = await asyncio.gather(other.claim(bed.worker, f"r{n}", bed.lanes, 1), bed.engine.jobs.cancel(job_id))

        if leases:
            assert (await bed.say(leases[0], Done())).code == "job_cancelled"
            await bed.say(leases[0], Released())
        assert await bed.status(job_id) == "cancelled"
        await bed.audited()


async def test_cancel_and_settle_at_once_end_in_one_of_two_ways(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    other = await bed.another_engine()
    for _ in range(10):
        job_id = await bed.submit()
        lease = await bed.take()

        [answer], cancelled = await asyncio.gather(
            other.settle([LeaseOutcome(lease.task_id, lease.token, Done())]),
            bed.engine.jobs.cancel(job_id),
            return_exceptions=True,
        )

        if answer.accepted:
            assert isinstance(cancelled, WrongState)
            assert await bed.status(job_id) == "completed"
        else:
            assert answer.code == "job_cancelled"
            await bed.say(lease, Released())
            assert await bed.status(job_id) == "cancelled"
        await bed.audited()
