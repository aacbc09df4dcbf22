"""Pieces that only a worker with a label can make: a busy one keeps them, a killed one loses them in the end."""

import time

from telecine.engine import Engine
from tests.fault.worker_processes import Crew, ended, enlisted, on, rows, until
from tests.support.flows import patient

PIECES = 30


async def states(engine: Engine, job_id: int) -> list[str]:
    found = await rows(engine, f"select state from task where job_id = {job_id} and stage = 1 order by position")
    return [row["state"] for row in found]


def test_a_busy_worker_makes_all_of_its_pieces_although_they_wait_longer_than_their_patience(
    url: str, workers: Crew
) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(patient)
        workers.start("gpu", labels=["gpu"], slots=1, flows=["patient"])
        workers.start("cpu", flows=["patient"])  # it sweeps, too
        await enlisted(engine, "gpu", "cpu")
        job = await engine.jobs.submit("patient", {"pieces": PIECES, "seconds": 0.1, "patience": 300})

        assert await ended(engine, job.job_id) == ["completed"]
        assert await states(engine, job.job_id) == ["done"] * PIECES

    on(url, play)


def test_what_a_killed_worker_leaves_is_skipped_after_its_patience(url: str, workers: Crew) -> None:
    patience = 1.0

    async def play(engine: Engine) -> None:
        await engine.jobs.register(patient)
        gpu = workers.start("gpu", labels=["gpu"], slots=1, flows=["patient"])
        workers.start("cpu", flows=["patient"])
        await enlisted(engine, "gpu", "cpu")
        spec = {"pieces": PIECES, "seconds": 0.2, "patience": round(1000 * patience)}
        job = await engine.jobs.submit("patient", spec)

        async def some_are_made() -> bool:
            return (await states(engine, job.job_id)).count("done") >= 8  # the rest has waited longer than its patience

        await until(some_are_made)
        gpu.kill()
        gpu.wait()
        killed = time.monotonic()
        left = await states(engine, job.job_id)
        assert await ended(engine, job.job_id) == ["completed"]

        assert "skipped" not in left
        assert patience - 0.3 < time.monotonic() - killed < patience + 5.0
        found = await states(engine, job.job_id)
        assert found.count("skipped") >= PIECES - 15
        assert set(found) == {"done", "skipped"}

    on(url, play)
