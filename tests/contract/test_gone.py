"""Workers that are provably gone, that leave, and what the sweep finishes for others."""

import pytest

from telecine.engine import Engine
from telecine.facts import LEASE, MINUTE, SECOND, SWEEP, Lease, Mode
from telecine.world import Machine, World
from tests.support.builders import Loaded, a_flow, a_policy, a_stage
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


# -- Provably gone ---------------------------------------------------------------------------------


def an_engine_here(bed: Bed, processes: dict[int, int]) -> Engine:
    def is_gone(pid: int, started: int) -> bool:
        return processes.get(pid) != started

    return Engine(bed.store, world=World(dice=Loaded(), machine=HERE, is_gone=is_gone))


async def here(bed: Bed, name: str, pid: int, started: int, **other: str) -> int:
    where = {"boot_id": HERE.boot_id, "pid_space": HERE.pid_space, **other}
    return await bed.enlist(name, pid=pid, pid_started=started, **where)


async def test_a_worker_whose_process_is_gone_loses_its_leases_at_once(bed: Bed) -> None:
    await bed.enact(CUT)
    await bed.submit()
    dead = await here(bed, "dead", 7, 100)
    lease = await bed.take(dead)
    bed.pass_time(SECOND)

    sweep = await an_engine_here(bed, {}).sweep()

    task = await bed.task(lease.task_id)
    assert sweep.gone_workers == 1
    assert (task["state"], task["losses"], task["tries"]) == ("ready", 1, 0)
    assert await bed.count("worker", f"id = {dead} and gone_at is not null") == 1
    assert not (await bed.done(lease)).accepted
    await bed.audited()


@pytest.mark.parametrize(
    ("processes", "gone"),
    [({7: 100}, 0), ({7: 101}, 1), ({8: 100}, 1)],
    ids=["it lives", "its pid is another process now", "its pid is free"],
)
async def test_a_process_is_told_by_pid_and_start(bed: Bed, processes: dict[int, int], gone: int) -> None:
    await bed.enact(CUT)
    await here(bed, "ann", 7, 100)

    assert (await an_engine_here(bed, processes).sweep()).gone_workers == gone


@pytest.mark.parametrize("other", [{"boot_id": "boot-2"}, {"pid_space": "pid:[2]"}], ids=str)
async def test_nothing_is_said_about_processes_of_another_boot_or_container(bed: Bed, other: dict[str, str]) -> None:
    await bed.enact(CUT)
    await here(bed, "far", 7, 100, **other)

    assert (await an_engine_here(bed, {}).sweep()).gone_workers == 0


async def test_a_gone_worker_is_found_once(bed: Bed) -> None:
    await bed.enact(CUT)
    await here(bed, "dead", 7, 100)
    engine = an_engine_here(bed, {})

    assert [(await engine.sweep()).gone_workers for _ in range(2)] == [1, 0]


# -- Workers that leave ----------------------------------------------------------------------------


@pytest.mark.parametrize("revoke", [False, True])
async def test_a_disabled_or_revoked_worker_gives_its_leases_back_at_once(bed: Bed, revoke: bool) -> None:
    lease = await a_lease(bed)

    await bed.engine.set_mode(bed.worker, Mode.DISABLED, revoke=revoke)

    task = await bed.task(lease.task_id)
    assert (task["state"], task["tries"], task["losses"], task["releases"]) == ("ready", 0, 0, 1)
    assert not (await bed.done(lease)).accepted
    await bed.audited()


async def test_a_draining_worker_keeps_its_leases(bed: Bed) -> None:
    lease = await a_lease(bed)

    await bed.engine.set_mode(bed.worker, Mode.DRAINING)

    assert (await bed.done(lease)).accepted


async def test_a_worker_that_retires_gives_back_what_it_holds(bed: Bed) -> None:
    lease = await a_lease(bed)

    await bed.engine.retire(bed.worker)

    assert (await bed.task(lease.task_id))["state"] == "ready"
    assert await bed.count("worker", "gone_at is not null") == 1


async def test_a_worker_that_is_silent_for_long_is_given_up_once_it_holds_nothing(bed: Bed) -> None:
    lease = await a_lease(bed)
    for _ in range(2):
        await sweep_until(bed, 9 * SECOND)
        await bed.beaten(lease)

    bed.pass_time(11 * MINUTE)
    await bed.engine.sweep()
    holding = await bed.count("worker", "gone_at is null")
    await sweep_until(bed, LEASE + SWEEP)

    assert holding == 1
    assert await bed.count("worker", "gone_at is null") == 0


async def test_after_an_outage_no_worker_is_given_up_for_its_silence(bed: Bed) -> None:
    await bed.enact(CUT)
    bed.pass_time(20 * MINUTE)

    sweep = await bed.engine.sweep()

    assert sweep.grace
    assert (await bed.beaten()).now == bed.now


# -- What the sweep finishes for others ------------------------------------------------------------


async def test_a_job_whose_winding_down_was_interrupted_is_ended_by_the_sweep(bed: Bed) -> None:
    await bed.enact(a_flow("cut", "join"))
    job_id = await bed.submit()
    yes = "true" if bed.is_postgres else "1"
    await bed.sql(f"update {bed.table('job')} set cancel_asked = {yes} where id = {job_id}")
    bed.pass_time(SWEEP)

    await bed.engine.sweep()

    assert await bed.status(job_id) == "cancelled"
    await bed.audited()


async def test_the_sweep_unparks_what_is_due(bed: Bed) -> None:
    await bed.enact(CUT)
    job_id = await bed.submit(run_at=bed.now + 3 * SECOND)

    await sweep_until(bed, 2 * SECOND)
    early = [bool(task["parked"]) for task in await bed.tasks(job_id)]
    await sweep_until(bed, 2 * SECOND)
    due = [bool(task["parked"]) for task in await bed.tasks(job_id)]

    assert (early, due) == ([True], [False])


async def test_a_dependent_that_nobody_released_is_opened_by_the_sweep(bed: Bed) -> None:
    """The process that ended the first job died before it could look who waits."""
    await bed.enact(CUT)
    first = await bed.submit()
    second = await bed.submit(after=(first,))
    await bed.give_rows()
    ended = "status = 'completed', outcome = 'completed', ended_at = 1"
    await bed.sql(f"update {bed.table('job')} set {ended} where id = {first}")
    bed.pass_time(SWEEP)

    sweep = await bed.engine.sweep()

    assert sweep.resolved == 1
    assert await bed.states(second) == ["ready"]
