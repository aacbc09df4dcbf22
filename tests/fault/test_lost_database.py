"""PostgreSQL is killed and started again while a worker works: the worker stays, and the work is done."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.engine import Engine
from tests.fault.worker_processes import SHORT, Crew, crew, ended, enlisted, lives, on, outcomes, rows, until
from tests.support.flows import fan, wait
from tests.support.postgres import PrivatePostgres, fresh_schema

PIECES = 1_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivatePostgres]:
    with PrivatePostgres(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def crew_there(server: PrivatePostgres, tmp_path: Path) -> Iterator[Crew]:
    with fresh_schema(server.url) as url, crew(url, tmp_path) as own:
        yield own


def test_a_handler_outlives_an_outage_that_is_shorter_than_its_lease(server: PrivatePostgres, crew_there: Crew) -> None:
    workers = crew_there

    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann")
        [handler] = await workers.started()

        server.kill()
        workers.go()
        await until(lambda: not lives(handler))  # it has ended while nobody could be told
        server.start()

        assert await ended(engine, job.job_id) == ["completed"]
        assert await outcomes(engine, job.job_id) == ["done"]
        assert ann.poll() is None

    on(workers.url, play)


def test_an_outage_longer_than_the_lease_ends_the_work_and_costs_no_try(
    server: PrivatePostgres, crew_there: Crew
) -> None:
    workers = crew_there

    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann", **SHORT)
        [handler] = await workers.started()

        server.kill()
        await until(lambda: not lives(handler), within=SHORT["lease"] / 1_000 + 2)
        server.start()
        await workers.started(2)
        workers.go()

        assert await ended(engine, job.job_id) == ["completed"]
        assert await outcomes(engine, job.job_id) in (["released", "done"], ["lost", "done"])
        assert await rows(engine, "select tries from task") == [{"tries": 1}]
        assert ann.poll() is None

    on(workers.url, play)


def test_work_goes_on_after_a_restart_in_the_middle_of_many_small_tasks(
    server: PrivatePostgres, crew_there: Crew
) -> None:
    workers = crew_there

    async def play(engine: Engine) -> None:
        await engine.jobs.register(fan)
        workers.start("ann", slots=20)
        workers.start("bob", slots=20)
        await enlisted(engine, "ann", "bob")
        job = await engine.jobs.submit("fan", {"pieces": PIECES})
        assert await until(lambda: some_done(engine)) < PIECES

        server.kill()
        server.start()

        assert await ended(engine, job.job_id) == ["completed"]
        done = [outcome for outcome in await outcomes(engine, job.job_id) if outcome == "done"]
        assert len(done) == PIECES + 2
        assert [worker.poll() for worker in workers.workers.values()] == [None, None]

    on(workers.url, play)


async def some_done(engine: Engine) -> int:
    """How many, once there are enough."""
    [row] = await rows(engine, "select count(*) as n from task where state = 'done'")
    return int(row["n"]) if row["n"] > 50 else 0
