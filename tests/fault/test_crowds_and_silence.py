"""Many workers at once, bells that nobody hears, and what a dead worker left on the disk."""

from pathlib import Path

from telecine.engine import Engine
from telecine.engine.accounts.keys import Keys
from telecine.engine.leases.remote_workers import RemoteWorkers
from tests.fault.worker_processes import Crew, ended, on, outcomes, result, rows, until
from tests.support.flows import fan, quick, wait


def test_ten_workers_do_five_jobs_once_each(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(fan)
        jobs = [(await engine.jobs.submit("fan", {"pieces": 20})).job_id for _ in range(5)]

        for number in range(10):
            workers.start(f"worker-{number}", slots=2)

        assert set(await ended(engine, *jobs)) == {"completed"}
        assert [await outcomes(engine, job) for job in jobs] == [["done"] * 22] * 5
        assert {await result(engine, job) for job in jobs} == {2 * sum(range(20))}

    on(url, play)


def test_with_every_bell_silent_all_work_still_finishes(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(fan)
        await engine.jobs.register(quick)
        for name in ("ann", "bob"):
            workers.start(name, deaf=True, slots=4)

        jobs = [await engine.jobs.submit("fan", {"pieces": 10}), await engine.jobs.submit("quick")]

        assert await ended(engine, *(job.job_id for job in jobs)) == ["completed", "completed"]

    on(url, play)


def test_the_scratch_of_a_killed_worker_is_removed_by_the_next_and_that_of_a_live_one_is_not(
    url: str, workers: Crew
) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        for _ in range(2):
            await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        victim = workers.start("victim")
        await workers.started(1)
        workers.start("living")
        await workers.started(2)

        victim.kill()
        workers.start("next", flows=["quick"])

        await until(lambda: homes(workers) == ["living"] or "next" in " ".join(homes(workers)))
        await until(lambda: "victim" not in homes(workers))
        assert "living" in homes(workers)

    on(url, play)


def homes(workers: Crew) -> list[str]:
    """Whose scratch folders there are."""
    folder = Path(workers.folder / "scratch")
    return sorted(path.name.rpartition("-")[0] for path in folder.iterdir() if path.is_dir())


def test_a_worker_that_was_given_up_comes_back_as_a_new_one(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann")
        await workers.started()
        [first] = await rows(engine, "select id from worker")

        await engine.retire(first["id"])
        await workers.started(2)
        workers.go()

        assert await ended(engine, job.job_id) == ["completed"]
        assert await outcomes(engine, job.job_id) == ["released", "done"]
        assert ann.poll() is None
        assert len(await rows(engine, "select id from worker where name = 'ann'")) == 2

    on(url, play)


def test_a_worker_that_was_revoked_ends_and_does_not_come_back(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann")
        await workers.started()
        [first] = await rows(engine, "select id from worker")

        await RemoteWorkers(engine).revoke(first["id"], Keys(engine._store, engine.world))
        await until(lambda: ann.poll() is not None)
        workers.start("bob")
        await workers.started(2)
        workers.go()

        assert await ended(engine, job.job_id) == ["completed"]
        assert await outcomes(engine, job.job_id) == ["released", "done"]
        assert ann.poll() not in (None, 0)
        assert len(await rows(engine, "select id from worker where name = 'ann'")) == 1

    on(url, play)
