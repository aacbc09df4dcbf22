"""When a task that waits will begin: guessed from what such tasks took, and from the slots that serve it."""

import pytest

from telecine.engine.queries.view_models import Waiting
from telecine.engine.queries.waiting_reasons import starts_at
from telecine.facts import MINUTE, SECOND
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

FILM = a_flow("cut")
OTHER = a_flow(a_stage("cut"), name="other")


async def ran(bed: Bed, *seconds: int, flow: str = "film") -> None:
    """Jobs that completed, and how long their task took."""
    for length in seconds:
        await bed.submit(flow)
        lease = await bed.take()
        bed.pass_time(length * SECOND)
        await bed.done(lease)


async def busy(bed: Bed, slots: int) -> None:
    """One worker whose slots are all taken, as its last beat said."""
    await bed.sql(f"update worker set slots = {slots}, load = {slots}, beat_at = {bed.now}")


async def waiting(bed: Bed, job_id: int) -> Waiting:
    [task] = await bed.tasks(job_id)
    found = (await bed.views.task(task["id"])).waiting
    assert found is not None
    return found


async def test_the_start_is_guessed_from_the_median_and_from_the_slots(bed: Bed) -> None:
    await bed.enact(FILM)
    await ran(bed, 2, 12, 18)
    jobs = [await bed.submit() for _ in range(5)]
    await busy(bed, 2)

    first, last = await waiting(bed, jobs[0]), await waiting(bed, jobs[4])

    assert (first.reason, first.ahead, first.starts_at) == ("queue", 0, bed.now + 6 * SECOND)
    assert (last.ahead, last.starts_at) == (4, bed.now + 30 * SECOND)


async def test_a_free_slot_takes_it_at_once(bed: Bed) -> None:
    await bed.enact(FILM)
    jobs = [await bed.submit() for _ in range(2)]
    await bed.sql(f"update worker set slots = 2, load = 1, beat_at = {bed.now}")

    assert [(await waiting(bed, job)).starts_at for job in jobs] == [bed.now, None]


async def test_without_an_example_nobody_can_tell(bed: Bed) -> None:
    await bed.enact(FILM, OTHER)
    await ran(bed, 10, flow="other")
    job = await bed.submit()
    await busy(bed, 1)

    assert (await waiting(bed, job)).starts_at is None


async def test_failed_and_lost_attempts_are_no_examples(bed: Bed) -> None:
    await bed.enact(FILM)
    await bed.submit()
    lease = await bed.take()
    bed.pass_time(5 * SECOND)
    await bed.fail(lease, permanent=True)
    job = await bed.submit()
    await busy(bed, 1)

    assert (await waiting(bed, job)).starts_at is None


async def test_a_job_is_an_example_for_its_own_tasks(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True)))
    job = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": [1, 2, 3]})
    lease = await bed.take()
    bed.pass_time(10 * SECOND)
    await bed.done(lease)
    await busy(bed, 1)

    tasks = [task for task in await bed.tasks(job) if task["state"] == "ready"]
    found = [(await bed.views.task(task["id"])).waiting for task in tasks]

    assert [one.starts_at for one in found if one is not None] == [bed.now + 10 * SECOND, bed.now + 20 * SECOND]


async def test_a_lost_attempt_is_no_failed_one(bed: Bed) -> None:
    await bed.enact(FILM)
    job = await bed.submit()
    await bed.lose(await bed.take())
    bed.pass_time(MINUTE)
    await bed.engine.sweep()
    await busy(bed, 1)
    await bed.fail(await bed.take())

    assert (await bed.views.job(job)).retries == 1


async def test_only_the_time_in_which_somebody_worked_counts_and_side_by_side_counts_once(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True)))
    job = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": [1, 2]})
    bed.pass_time(MINUTE)  # nobody is there
    first, second = await bed.claim(2)
    bed.pass_time(4 * SECOND)
    await bed.done(first)
    bed.pass_time(3 * SECOND)
    await bed.done(second)

    assert await bed.views.worked(job) == 7 * SECOND


async def test_a_lost_attempt_ended_when_its_worker_was_last_heard_of_not_when_somebody_came_by(bed: Bed) -> None:
    await bed.enact(FILM)
    job = await bed.submit()
    lease = await bed.take()
    running = []
    for _ in range(2):
        bed.pass_time(5 * SECOND)
        await bed.beaten(lease)
        running.append(await bed.views.worked(job))
    bed.pass_time(60 * MINUTE)
    await bed.engine.sweep()  # after such a silence it grants a fresh lease first
    await bed.lose(lease)

    assert running == [5 * SECOND, 10 * SECOND]
    assert await bed.views.worked(job) == 10 * SECOND


@pytest.mark.parametrize(
    ("ahead", "slots", "times", "start"),
    [
        (0, (0, 0), [1_000], None),
        (0, (4, 1), [], 0),
        (1, (4, 1), [], None),
        (1, (4, 1), [1_000], 250),
        (8, (4, 0), [1_000, 3_000], 4_500),
    ],
)
async def test_the_guess_itself(ahead: int, slots: tuple[int, int], times: list[int], start: int | None) -> None:
    assert starts_at(0, ahead, slots, times) == start
