"""Changing priority and run_at of a job that has not ended."""

import asyncio

import pytest

from telecine.errors import BadSpec, NotFound, VersionMismatch, WrongState
from telecine.facts import HOUR, SECOND
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

LINE = a_flow("cut", "join")


async def test_a_change_of_priority_moves_the_job_in_the_queue(bed: Bed) -> None:
    await bed.enact(LINE)
    first, second = await bed.submit(), await bed.submit()

    await bed.engine.jobs.edit(second, priority="high")

    assert [lease.job_id for lease in await bed.claim(2)] == [second, first]
    job = await bed.job(second)
    assert (job["priority"], job["version"]) == (8, 2)


async def test_a_change_of_priority_holds_for_later_stages_too(bed: Bed) -> None:
    await bed.enact(LINE)
    first, second = await bed.submit(), await bed.submit()
    await bed.engine.jobs.edit(second, priority="high")

    await bed.settle(await bed.claim(2))

    assert [lease.job_id for lease in await bed.claim(2)] == [second, first]


async def test_a_job_can_be_put_off_and_brought_forward(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()

    await bed.engine.jobs.edit(job_id, run_at=bed.now + HOUR)
    put_off = await bed.claim()
    await bed.engine.jobs.edit(job_id, run_at=bed.now + SECOND)
    bed.pass_time(SECOND)

    assert (put_off, len(await bed.claim())) == ([], 1)


async def test_what_is_put_off_keeps_its_place_among_equals(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    first, second = await bed.submit(), await bed.submit()
    await bed.engine.jobs.edit(first, run_at=bed.now + HOUR)
    bed.pass_time(2 * HOUR)
    third = await bed.submit()
    await bed.engine.sweep()
    bed.worker = await bed.enlist("bob")

    assert [lease.job_id for lease in await bed.claim(3)] == [second, first, third]


async def test_a_retry_keeps_the_time_that_was_announced(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    answer = await bed.fail(await bed.take())

    await bed.engine.jobs.edit(job_id, run_at=bed.now + HOUR)

    assert [task["ready_at"] for task in await bed.tasks(job_id)] == [answer.ready_at]


async def test_an_edit_under_an_old_version_is_refused(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    await bed.engine.jobs.edit(job_id, version=1, priority=3)

    with pytest.raises(VersionMismatch, match=f"job {job_id} is at version 2, not 1: read it again"):
        await bed.engine.jobs.edit(job_id, version=1, priority=9)

    assert (await bed.job(job_id))["priority"] == 3


async def test_work_does_not_move_the_version(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    await bed.run_all()

    assert (await bed.job(job_id))["version"] == 1


async def test_of_two_edits_at_once_under_one_version_one_is_refused(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()
    other = await bed.another_engine()

    answers = await asyncio.gather(
        bed.engine.jobs.edit(job_id, version=1, priority=1),
        other.jobs.edit(job_id, version=1, priority=9),
        return_exceptions=True,
    )

    assert sorted(type(answer).__name__ for answer in answers) == ["NoneType", "VersionMismatch"]


async def test_a_job_that_has_ended_cannot_be_edited(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    await bed.run_all()

    with pytest.raises(WrongState, match="it can no longer be changed"):
        await bed.engine.jobs.edit(job_id, priority=1)
    with pytest.raises(NotFound):
        await bed.engine.jobs.edit(999_999, priority=1)


async def test_a_bad_priority_is_refused(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit()

    with pytest.raises(BadSpec, match="out of range"):
        await bed.engine.jobs.edit(job_id, priority=99)


async def test_pausing_an_unknown_flow_is_refused(bed: Bed) -> None:
    with pytest.raises(NotFound, match="there is no flow 'opera'"):
        await bed.engine.jobs.pause("opera")
