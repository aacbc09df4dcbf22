"""A worker that is told to stop finishes what it has; told twice, it gives everything back at once."""

import asyncio
import signal

from telecine.engine import Engine
from telecine.facts import Mode, WorkerId
from tests.fault.worker_processes import Crew, ended, enlisted, lives, on, outcomes, result, rows, status, until
from tests.support.flows import quick, wait, wait_beside


def test_the_first_signal_lets_the_handler_finish_and_nothing_new_begins(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        first = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann")
        [handler] = await workers.started()

        ann.send_signal(signal.SIGTERM)
        await until(lambda: mode_is(engine, "draining"))
        second = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        workers.go()

        assert await ended(engine, first.job_id) == ["completed"]
        assert await result(engine, first.job_id) == handler
        assert await until(lambda: ann.poll() is not None)
        assert ann.returncode == 0
        assert await status(engine, second.job_id) == "pending"
        assert await rows(engine, "select id from worker where gone_at is null") == []

    on(url, play)


def test_the_second_signal_ends_handlers_at_once_and_gives_the_try_back(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        job = await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        ann = workers.start("ann")
        [handler] = await workers.started()

        ann.send_signal(signal.SIGTERM)
        await until(lambda: mode_is(engine, "draining"))
        ann.send_signal(signal.SIGTERM)

        assert await until(lambda: ann.poll() is not None)
        assert not lives(handler)
        assert await outcomes(engine, job.job_id) == ["released"]
        assert await rows(engine, "select state, tries from task") == [{"state": "ready", "tries": 0}]

    on(url, play)


def test_a_drain_that_takes_too_long_gives_back_what_is_left(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        await engine.jobs.register(wait_beside)
        jobs = [await engine.jobs.submit(flow, {"folder": str(workers.folder)}) for flow in ("wait", "wait_beside")]
        ann = workers.start("ann", grace=0.1, slots=2)
        await workers.started(2)

        ann.send_signal(signal.SIGTERM)

        assert await until(lambda: ann.poll() is not None)
        assert ann.returncode == 0
        assert [await outcomes(engine, job.job_id) for job in jobs] == [["released"], ["released"]]
        assert {row["tries"] for row in await rows(engine, "select tries from task")} == {0}

    on(url, play)


def test_once_a_drain_is_acknowledged_the_worker_is_granted_nothing(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(quick)
        workers.start("ann", slots=8)
        workers.start("bob", slots=8)
        await enlisted(engine, "ann", "bob")
        [row] = await rows(engine, "select id from worker where name = 'ann'")
        ann = WorkerId(row["id"])
        submitting = [asyncio.ensure_future(engine.jobs.submit("quick")) for _ in range(300)]
        await submitting[100]

        await engine.set_mode(ann, Mode.DRAINING)
        order, events = ("seq", "event") if url.startswith("sqlite") else ("id", "unnumbered")
        [drained] = await rows(engine, f"select max({order}) as n from {events} where kind = 'worker.draining'")
        jobs = [(await one).job_id for one in submitting]

        assert set(await ended(engine, *jobs)) == {"completed"}
        late = await rows(
            engine,
            f"select {order} from {events} where kind = 'task.started' and worker = {ann} and {order} > {drained['n']}",
        )
        assert late == []

    on(url, play)


def test_a_drained_worker_works_again_when_it_is_enabled(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(quick)
        workers.start("ann")
        await enlisted(engine, "ann")
        [row] = await rows(engine, "select id from worker")
        await engine.set_mode(row["id"], Mode.DRAINING)
        job = await engine.jobs.submit("quick")

        await engine.set_mode(row["id"], Mode.ACTIVE)

        assert await ended(engine, job.job_id) == ["completed"]

    on(url, play)


def test_a_disabled_worker_loses_its_work_at_once(url: str, workers: Crew) -> None:
    async def play(engine: Engine) -> None:
        await engine.jobs.register(wait)
        await engine.jobs.submit("wait", {"folder": str(workers.folder)})
        workers.start("ann")
        [handler] = await workers.started()
        [row] = await rows(engine, "select id from worker")

        await engine.set_mode(row["id"], Mode.DISABLED)

        await until(lambda: not lives(handler))
        assert await rows(engine, "select state, tries from task") == [{"state": "ready", "tries": 0}]

    on(url, play)


async def mode_is(engine: Engine, mode: str) -> bool:
    return await rows(engine, "select mode from worker") == [{"mode": mode}]
