"""Beat: renews exactly what it names, and brings back orders."""

from fractions import Fraction

import pytest

from telecine.errors import WorkerGone, WorkerRevoked
from telecine.facts import LEASE, SECOND, HeldLease, Mode
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed, pairs

CUT = a_flow("cut")


async def two_leases(bed: Bed) -> list:  # type: ignore[type-arg]
    await bed.enact(CUT)
    await bed.submit()
    await bed.submit()
    return await bed.claim(2)


async def test_a_beat_renews_exactly_what_it_names(bed: Bed) -> None:
    named, other = await two_leases(bed)
    bed.pass_time(5 * SECOND)

    orders = await bed.beaten(named)

    assert orders.renewed == ((named.task_id, 1),)
    assert (orders.now, orders.mode, orders.lost, orders.stop) == (bed.now, Mode.ACTIVE, (), ())
    assert (await bed.task(named.task_id))["lease_until"] == bed.now + LEASE
    assert (await bed.task(other.task_id))["lease_until"] == other.until


async def test_a_beat_renews_until_the_lease_ends_and_not_at_its_end(bed: Bed) -> None:
    first, second = await two_leases(bed)
    bed.pass_time(LEASE - 1)
    in_time = await bed.beaten(first)

    bed.pass_time(1)
    late = await bed.beaten(second)

    assert in_time.renewed == ((first.task_id, 1),)
    assert (late.renewed, late.lost) == ((), ((second.task_id, 1),))


async def test_a_beat_under_an_old_token_or_of_another_worker_renews_nothing(bed: Bed) -> None:
    old, mine = await two_leases(bed)
    bob = await bed.enlist("bob")
    await bed.release(old)
    new = await bed.take(bob)

    stale = await bed.beaten(old)
    foreign = await bed.beaten(mine, worker=bob)

    assert new.task_id == old.task_id
    assert (stale.renewed, stale.lost) == ((), ((old.task_id, 1),))
    assert (foreign.renewed, foreign.lost) == ((), ((mine.task_id, 1),))
    assert (await bed.task(new.task_id))["lease_until"] == new.until


async def test_a_beat_under_the_token_of_an_earlier_attempt_of_its_own_renews_nothing(bed: Bed) -> None:
    old, _ = await two_leases(bed)
    await bed.release(old)
    new = await bed.take()
    bed.pass_time(SECOND)

    orders = await bed.beaten(old)

    assert (new.task_id, orders.renewed, orders.lost) == (old.task_id, (), ((old.task_id, 1),))
    assert (await bed.task(new.task_id))["lease_until"] == new.until


async def test_a_beat_of_nothing_still_tells_the_worker_its_mode(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.engine.set_mode(bed.worker, Mode.DRAINING)

    assert (await bed.beaten()).mode is Mode.DRAINING


async def test_a_beat_of_a_worker_that_is_unknown_or_gone_tells_it_to_register_and_of_a_revoked_one_to_end(
    bed: Bed,
) -> None:
    await bed.enact(CUT)
    gone, revoked = await bed.enlist("bob"), await bed.enlist("cid")
    await bed.engine.retire(gone)
    await bed.engine.set_mode(revoked, Mode.DISABLED, revoke=True)

    with pytest.raises(WorkerRevoked, match="was revoked: it ends"):
        await bed.engine.beat(revoked, [])
    for worker in (gone, bed.worker + 1_000):
        with pytest.raises(WorkerGone, match="register again"):
            await bed.beaten(worker=worker)


async def test_a_cancelled_job_is_told_to_stop_by_the_next_beat(bed: Bed) -> None:
    first, second = await two_leases(bed)
    await bed.engine.jobs.cancel(first.job_id)

    orders = await bed.beaten(first, second)

    assert orders.stop == ((first.task_id, 1),)
    assert set(orders.renewed) == set(pairs([first, second]))


async def test_the_siblings_of_a_required_error_are_told_to_stop(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut"), a_stage("dub")))
    await bed.submit()
    cut, dub = await bed.claim(2)
    await bed.fail(cut, permanent=True)

    assert (await bed.beaten(dub)).stop == ((dub.task_id, 1),)


async def test_a_lease_that_is_named_twice_is_renewed_once(bed: Bed) -> None:
    lease, _ = await two_leases(bed)

    assert (await bed.beaten(lease, lease)).renewed == ((lease.task_id, 1),)


async def test_progress_and_note_are_kept_and_nothing_wipes_them_out(bed: Bed) -> None:
    lease, _ = await two_leases(bed)
    await bed.engine.beat(bed.worker, [HeldLease(task_id=lease.task_id, token=1, progress=0.5, note="half")])

    await bed.beaten(lease)

    task = await bed.task(lease.task_id)
    assert (task["progress"], task["best"], task["note"]) == (0.5, 0.5, "half")


@pytest.mark.parametrize("progress", [5e-324, 1e-50, 1e-46, 1e-39, Fraction(1, 3), -1e-50, 1e300])
async def test_whatever_one_handler_calls_progress_costs_no_lease(bed: Bed, progress: float) -> None:
    leases = await two_leases(bed)
    held = [
        HeldLease(task_id=lease.task_id, token=1, progress=progress if n else 0.5) for n, lease in enumerate(leases)
    ]

    orders = await bed.engine.beat(bed.worker, held)

    assert sorted(orders.renewed) == sorted((lease.task_id, 1) for lease in leases)
    kept = (await bed.task(leases[1].task_id))["progress"]
    assert kept == pytest.approx(min(1.0, max(0.0, float(progress))), abs=1e-7)


async def test_only_progress_beyond_the_best_ends_a_row_of_losses(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()
    lease = await bed.take()
    await bed.beaten(lease, progress=0.5)
    await bed.lose(lease)
    lease = await bed.take()

    await bed.beaten(lease, progress=0.5)
    same = (await bed.task(lease.task_id))["losses"]
    await bed.beaten(lease, progress=0.75)
    further = (await bed.task(lease.task_id))["losses"]

    assert (same, further) == (1, 0)


async def test_progress_moves_the_stall_limit_but_never_the_hard_limit(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(stall=10 * SECOND, limit=25 * SECOND))))
    await bed.submit()
    lease = await bed.take()
    first = (await bed.task(lease.task_id))["stops_at"]

    bed.pass_time(8 * SECOND)
    await bed.beaten(lease, progress=0.1)
    moved = (await bed.task(lease.task_id))["stops_at"]
    await bed.beaten(lease, progress=0.1)
    bed.pass_time(1 * SECOND)
    await bed.beaten(lease)
    silent = (await bed.task(lease.task_id))["stops_at"]
    bed.pass_time(8 * SECOND)
    await bed.beaten(lease, progress=0.2)
    capped = (await bed.task(lease.task_id))["stops_at"]

    begun = lease.until - LEASE
    assert [t - begun for t in (first, moved, silent, capped)] == [10_000, 18_000, 18_000, 25_000]


async def test_a_retried_attempt_may_go_over_old_ground_without_stalling(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(stall=10 * SECOND))))
    await bed.submit()
    lease = await bed.take()
    await bed.beaten(lease, progress=0.9)
    await bed.release(lease)
    lease = await bed.take()

    bed.pass_time(5 * SECOND)
    await bed.beaten(lease, progress=0.1)

    assert (await bed.task(lease.task_id))["stops_at"] == bed.now + 10 * SECOND
