"""Submits jobs to a SQLite file as fast as it can, and says each id once it was acknowledged. Made to be killed."""

from __future__ import annotations

import asyncio
import random
import sys

from telecine.engine import Engine, Submission
from telecine.facts import Done, LeaseOutcome, WorkerId
from telecine.store.open import bring_up_to_date, open_store
from tests.support.builders import a_flow


async def submit_for_ever(url: str, worker: int) -> None:
    store = open_store(url, dice=random.Random(1))
    await bring_up_to_date(store, url)
    engine = Engine(store)
    flow = a_flow("cut")
    await engine.jobs.register(flow)
    lanes = {flow.graph.lane(0): "film"}

    async def submit() -> None:
        while True:
            answers = await engine.jobs.submit_many([Submission(flow="film")] * random.Random().randint(1, 5))
            for answer in answers:
                print("job", answer.job_id, flush=True)

    async def settle() -> None:
        turn = 0
        while True:
            turn += 1
            leases = await engine.claim(WorkerId(worker), f"{worker} {turn}", lanes, 5)
            for answer in await engine.settle([LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases]):
                if answer.accepted:
                    print("done", answer.task_id, flush=True)

    await asyncio.gather(*(submit() for _ in range(4)), settle())


if __name__ == "__main__":
    asyncio.run(submit_for_ever(sys.argv[1], int(sys.argv[2])))
