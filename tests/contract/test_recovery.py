"""Recovery: lost leases, stalls, limits and outages."""

import asyncio

from telecine.facts import LEASE, MINUTE, SECOND, SWEEP, Expired, Lease, LeaseOutcome
from telecine.world import Machine
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed

CUT = a_flow("cut")
HERE = Machine("here", "boot-1", "pid:[1]")


async def a_lease(bed: Bed, **policy: int) -> Lease:
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(**policy))))
    await bed.submit()
    return await bed.take()


async def sweep_until(bed: Bed, ms: int) -> None:
    """Let time pass with a sweep every two seconds, as in a healthy fleet."""
    end = bed.now + ms
    while bed.now < end:
        bed.pass_time(min(SWEEP, end - bed.now))
        await bed.engine.sweep()


# -- Lost leases -----------------------------------------------------------------------------------


async def test_a_lease_that_nobody_renews_goes_to_the_next_worker(bed: Bed) -> None:
    lease = await a_lease(bed)
    bob = await bed.enlist("bob")

    await sweep_until(bed, LEASE)
    next_lease = await bed.take(bob)

    assert (next_lease.task_id, next_lease.token, next_lease.attempt) == (lease.task_id, 2, 1)
    await bed.audited()


async def test_a_lease_that_is_renewed_is_never_swept(bed: Bed) -> None:
    lease = await a_lease(bed)

    for _ in range(20):
        await sweep_until(bed, 5 * SECOND)
        await bed.beaten(lease)

    assert (await bed.task(lease.task_id))["token"] == 1
    assert (await bed.done(lease)).accepted


async def test_history_says_who_was_lost_under_which_token_and_for_how_long(bed: Bed) -> None:
    lease = await a_lease(bed)

    await sweep_until(bed, LEASE + 1_500)

    [attempt] = await bed.attempts(lease.task_id)
    task = await bed.task(lease.task_id)
    assert (attempt["worker"], attempt["token"], attempt["outcome"]) == (bed.worker, 1, "lost")
    assert LEASE <= attempt["silent_ms"] <= LEASE + SWEEP, "since it was heard of last"
    assert (task["tries"], task["losses"]) == (0, 1)
    assert "task.lost" in await bed.events(lease.job_id)


async def test_silence_is_counted_from_the_last_beat(bed: Bed) -> None:
    lease = await a_lease(bed)
    bed.pass_time(5 * SECOND)
    await bed.beaten(lease)

    await sweep_until(bed, LEASE + 1_500)

    [attempt] = await bed.attempts(lease.task_id)
    assert (attempt["outcome"], LEASE <= attempt["silent_ms"] <= LEASE + SWEEP) == ("lost", True)


async def test_three_losses_in_a_row_are_quarantine(bed: Bed) -> None:
    lease = await a_lease(bed)
    for _ in range(2):
        await bed.lose(lease)
        lease = await bed.take()

    await bed.lose(lease)

    task = await bed.task(lease.task_id)
    assert (task["state"], task["losses"], task["tries"]) == ("error", 3, 0)
    assert "quarantined" in str(task["error"])
    assert [attempt["outcome"] for attempt in await bed.attempts(lease.task_id)] == ["lost"] * 3
    await bed.audited()


async def test_progress_between_losses_prevents_quarantine(bed: Bed) -> None:
    lease = await a_lease(bed)
    for n in range(5):
        await bed.beaten(lease, progress=(n + 1) / 10)
        await bed.lose(lease)
        lease = await bed.take()

    assert lease.token == 6


async def test_a_failure_between_losses_prevents_quarantine(bed: Bed) -> None:
    lease = await a_lease(bed, max_attempts=9)
    for _ in range(2):
        await bed.lose(lease)
        lease = await bed.take()
    await bed.fail(lease)
    await sweep_until(bed, MINUTE)

    assert (await bed.task(lease.task_id))["losses"] == 0


async def test_a_sweep_does_not_take_what_was_renewed_after_it_looked(bed: Bed) -> None:
    lease = await a_lease(bed)
    bed.pass_time(LEASE - 1)
    await bed.beaten(lease)

    [answer] = await bed.engine.settle([LeaseOutcome(lease.task_id, 1, Expired())])

    assert (answer.accepted, answer.code) == (False, "still_held")
    assert (await bed.task(lease.task_id))["losses"] == 0


async def test_of_two_sweepers_one_has_the_turn(bed: Bed) -> None:
    await a_lease(bed)
    other = await bed.another_engine()
    bed.pass_time(SWEEP)

    sweeps = await asyncio.gather(bed.engine.sweep(), other.sweep())

    assert sorted(sweep.mine for sweep in sweeps) == [False, True]


async def test_the_turn_comes_once_in_a_period(bed: Bed) -> None:
    await a_lease(bed)
    bed.pass_time(SWEEP)
    first = await bed.engine.sweep()

    bed.pass_time(SWEEP - 1)
    early = await bed.engine.sweep()
    bed.pass_time(1)
    second = await bed.engine.sweep()

    assert (first.mine, early.mine, second.mine) == (True, False, True)


async def test_two_sweepers_that_saw_the_same_lost_lease_count_one_loss(bed: Bed) -> None:
    lease = await a_lease(bed)
    other = await bed.another_engine()
    bed.pass_time(LEASE)
    word = [LeaseOutcome(lease.task_id, 1, Expired())]

    answers = await asyncio.gather(bed.engine.settle(word), other.settle(word))

    assert sorted(answer.accepted for [answer] in answers) == [False, True]
    task = await bed.task(lease.task_id)
    assert (task["losses"], task["tries"]) == (1, 0)
    assert await bed.count("attempt") == 1
    await bed.audited()


async def test_more_lost_leases_than_fit_in_one_batch_are_all_returned_in_one_pass(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True)))
    await bed.submit()
    await bed.done(await bed.take(), plan={"cut": list(range(450))})
    await bed.claim(450)
    bed.pass_time(LEASE - SWEEP)
    await bed.sql(f"update pulse set at = {bed.now}")
    bed.pass_time(SWEEP)

    sweep = await bed.engine.sweep()

    assert sweep.returned == 450


# -- Stalls and limits -----------------------------------------------------------------------------


async def test_work_without_progress_ends_as_stalled_and_costs_a_try(bed: Bed) -> None:
    lease = await a_lease(bed, stall=10 * SECOND)
    for _ in range(3):
        await sweep_until(bed, 4 * SECOND)
        await bed.beaten(lease)

    [attempt] = await bed.attempts(lease.task_id)
    task = await bed.task(lease.task_id)
    assert (attempt["outcome"], task["state"], task["tries"], task["losses"]) == ("stalled", "ready", 1, 0)
    assert task["ready_at"] == attempt["ready_at"] > bed.now - 3 * SECOND


async def test_progress_keeps_it_from_stalling(bed: Bed) -> None:
    lease = await a_lease(bed, stall=10 * SECOND)
    for n in range(6):
        await sweep_until(bed, 4 * SECOND)
        await bed.beaten(lease, progress=n / 10)

    assert await bed.attempts(lease.task_id) == []


async def test_a_hard_limit_ends_it_in_spite_of_progress(bed: Bed) -> None:
    lease = await a_lease(bed, stall=10 * SECOND, limit=15 * SECOND)
    for n in range(5):
        await sweep_until(bed, 4 * SECOND)
        await bed.beaten(lease, progress=n / 10)

    assert [attempt["outcome"] for attempt in await bed.attempts(lease.task_id)] == ["timed_out"]


async def test_limits_in_the_last_attempt_are_an_error(bed: Bed) -> None:
    lease = await a_lease(bed, stall=4 * SECOND, max_attempts=1)

    await sweep_until(bed, 6 * SECOND)

    assert await bed.status(lease.job_id) == "failed"
    assert (await bed.engine.queries.job(lease.job_id)).error["code"] == "stalled"


# -- Outages ---------------------------------------------------------------------------------------


async def test_after_an_outage_every_lease_gets_a_fresh_term_and_nobody_is_blamed(bed: Bed) -> None:
    lease = await a_lease(bed)
    bed.pass_time(10 * MINUTE)

    sweep = await bed.engine.sweep()

    task = await bed.task(lease.task_id)
    assert (sweep.grace, sweep.returned) == (True, 0)
    assert (task["state"], task["losses"], task["lease_until"]) == ("running", 0, bed.now + LEASE)
    assert (await bed.done(lease)).accepted


async def test_what_was_claimed_just_before_the_grace_has_its_term_already(bed: Bed) -> None:
    """Who starts a fleet in the morning claims first: nobody missed anything of that."""
    old = await a_lease(bed)
    bed.pass_time(10 * MINUTE)
    await bed.submit()
    fresh = await bed.take()
    bed.pass_time(SWEEP)
    await bed.submit()
    freshest = await bed.take()

    assert (await bed.engine.sweep()).grace

    terms = [(await bed.task(lease.task_id))["lease_until"] - bed.now for lease in (old, fresh, freshest)]
    assert terms == [LEASE, LEASE - SWEEP, LEASE]


async def test_the_grace_begins_beyond_half_a_lease(bed: Bed) -> None:
    await a_lease(bed)
    bed.pass_time(LEASE // 2)
    just = await bed.engine.sweep()
    bed.pass_time(LEASE // 2 + 1)
    beyond = await bed.engine.sweep()

    assert (just.grace, beyond.grace) == (False, True)


async def test_after_the_grace_a_dead_worker_is_still_found(bed: Bed) -> None:
    lease = await a_lease(bed)
    bed.pass_time(10 * MINUTE)
    await bed.engine.sweep()

    await sweep_until(bed, LEASE)

    assert (await bed.task(lease.task_id))["losses"] == 1


async def test_an_outage_does_not_count_as_a_stall(bed: Bed) -> None:
    """A laptop that slept for an hour: the work slept too."""
    lease = await a_lease(bed, stall=30 * SECOND)
    await sweep_until(bed, 10 * SECOND)
    await bed.beaten(lease)
    bed.pass_time(60 * MINUTE)
    await bed.engine.sweep()

    await sweep_until(bed, 10 * SECOND)
    await bed.beaten(lease)

    assert await bed.attempts(lease.task_id) == []
    await sweep_until(bed, 12 * SECOND)
    assert [attempt["outcome"] for attempt in await bed.attempts(lease.task_id)] == ["stalled"]


async def test_a_task_that_began_in_the_outage_is_not_given_its_length(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(stall=10 * SECOND))))
    await bed.submit()
    bed.pass_time(10 * MINUTE)
    lease = await bed.take()
    bed.pass_time(SECOND)

    await bed.engine.sweep()

    assert (await bed.task(lease.task_id))["stops_at"] <= bed.now + 11 * SECOND
