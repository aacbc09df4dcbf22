"""Many who claim at once: every task is granted once, done once, and nobody waits for ever."""

import asyncio

import pytest

from telecine.engine import Submission
from telecine.facts import Done, LeaseOutcome
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed


@pytest.mark.parametrize(("claimers", "jobs"), [(10, 5), (100, 10)])
async def test_of_many_claimers_each_task_goes_to_one(bed: Bed, claimers: int, jobs: int) -> None:
    await bed.enact(a_flow("cut"))
    engines = [await bed.another_engine() for _ in range(5)]
    workers = [await bed.enlist(f"worker {n}") for n in range(claimers)]
    await bed.engine.jobs.submit_many([Submission(flow="film")] * jobs)

    claims = await asyncio.gather(
        *(engines[n % 5].claim(worker, "r", bed.lanes, 1) for n, worker in enumerate(workers))
    )
    leases = [lease for some in claims for lease in some]
    answers = await asyncio.gather(
        *(engines[n % 5].settle([LeaseOutcome(lease.task_id, lease.token, Done())]) for n, lease in enumerate(leases))
    )

    assert len(leases) == len({lease.task_id for lease in leases}) == jobs
    assert {lease.token for lease in leases} == {1}
    assert all(answer.accepted for [answer] in answers)
    assert await bed.count("job", "status = 'completed'") == jobs
    assert await bed.count("attempt") == jobs
    await bed.audited()


async def test_many_who_work_until_nothing_is_left_do_every_task_once(bed: Bed) -> None:
    await bed.enact(a_flow("cut", "join"))
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 60)

    async def work(n: int) -> int:
        engine, worker, done = await bed.another_engine(), await bed.enlist(f"worker {n}"), 0
        for turn in range(1_000):
            leases = await engine.claim(worker, f"r{turn}", bed.lanes, 3)
            answers = await engine.settle([LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases])
            done += sum(answer.accepted for answer in answers)
            if not leases and await bed.count("job", "outcome is null") == 0:
                break
        return done

    done = await asyncio.gather(*(work(n) for n in range(4)))

    assert sum(done) == 120
    assert await bed.count("attempt", "outcome = 'done'") == 120
    await bed.audited()
