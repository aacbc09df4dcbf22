"""Redis is flushed, stopped, killed, filled up, cut off, lied into, or was never there: nothing is lost or done twice.

A fleet of workers, each with connections of its own, works off jobs that keep coming while the fault happens. Redis's
time limit is longer than a test may take where Redis hangs: whoever waited for it would be found out.
"""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from telecine import Bench, Done, Flow
from telecine.engine import Engine
from telecine.settings import Settings
from telecine.wiring import Parts, make_worker, migrate_database, open_engine
from telecine.wiring.bells import redis_of
from tests.fault.worker_processes import ended, enlisted, outcomes, rows, until
from tests.support.audit import audit
from tests.support.flows import fan
from tests.support.process_pool import TELECINE, Actor, enter
from tests.support.redis import PrivateRedis, gap_before
from tests.support.thorough import thorough

# On PostgreSQL, which is what a fleet with Redis has; in the proof on SQLite, too.
pytestmark = pytest.mark.parametrize("url", [pytest.param("sqlite", marks=thorough), "postgres"], indirect=True)

WORKERS = 4
JOBS = 20
TASKS = 6
LONG = 40.0

film = Flow("film")


@film.stage(name="plan", run="inline")
async def _plan(bench: Bench) -> Done:
    return Done(plan={"cut": [{"n": n} for n in range(TASKS - 2)]})


@film.stage(name="cut", run="inline", needs=["plan"], fan_out=True)
async def _cut(bench: Bench) -> None:
    await asyncio.sleep(0)


@film.stage(name="join", run="inline", needs=["cut"])
async def _join(bench: Bench) -> None:
    return None


class Fleet:
    """Workers on one database. `slowest` is the longest that a submit took."""

    def __init__(self, parts: list[Parts]) -> None:
        self.parts = parts
        self.slowest = 0.0
        self.jobs: list[int] = []

    async def submit(self, count: int = JOBS) -> None:
        clock = asyncio.get_running_loop().time
        for number in range(count):
            began = clock()
            submitted = await self.parts[number % len(self.parts)].engine.jobs.submit("film", priority=number % 11)
            self.slowest = max(self.slowest, clock() - began)
            self.jobs.append(submitted.job_id)
            await asyncio.sleep(0.005)

    async def finish(self) -> None:
        """All is done, once each, and everything derived is right."""
        raw = Engine(self.parts[0].store)
        assert set(await ended(raw, *self.jobs, within=LONG)) == {"completed"}
        found = await rows(raw, "select task_id, outcome from attempt")
        assert len(found) == len(self.jobs) * TASKS
        assert len({row["task_id"] for row in found}) == len(found)
        assert {row["outcome"] for row in found} == {"done"}
        assert await audit(partial(rows, raw)) == []

    def sum(self, name: str) -> int:
        """One of the counts of `Vitals`, over all workers."""
        bells = [redis_of(parts.bell) for parts in self.parts]
        return sum(getattr(bell.vitals(), name) for bell in bells if bell is not None)


@asynccontextmanager
async def fleet(url: str, folder: Path, redis: list[str], *, timeout: float = 1.0) -> AsyncIterator[Fleet]:
    """One worker for each address of Redis."""
    base = {"database_url": url, "scratch": folder, "slots": 4, "poll_seconds": 0.2, "sweep_seconds": 0.5}
    await migrate_database(Settings(database_url=url))
    async with AsyncExitStack() as stack:
        parts = []
        for number, address in enumerate(redis):
            more = {"queue_mode": "hybrid", "redis_url": address, "worker_name": f"worker-{number}"}
            settings = Settings(**base, **more, redis_timeout_seconds=timeout)  # type: ignore[arg-type]
            own = await stack.enter_async_context(open_engine(settings))
            await own.engine.jobs.register(film)
            worker = make_worker(own, [film])
            running = asyncio.create_task(worker.run())
            stack.push_async_callback(_ended, running)
            stack.callback(worker.stop)
            parts.append(own)
        yield Fleet(parts)


async def _ended(running: asyncio.Task[None]) -> None:
    await asyncio.wait_for(running, LONG)


def play(story: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await asyncio.wait_for(story(), 3 * LONG)

    asyncio.run(run())


async def flush_often(server: PrivateRedis, over: asyncio.Event) -> None:
    dice = random.Random(7)
    while not over.is_set():
        await asyncio.to_thread(server.say, "FLUSHALL")
        await asyncio.sleep(0.05 * dice.random())


async def lie(server: PrivateRedis, over: asyncio.Event) -> None:
    """Doubled, late, early, reordered and invented messages and hints."""
    dice = random.Random(11)

    def once() -> None:
        with server.client() as client:
            for key in client.scan_iter("telecine:*:ready:*"):
                ids = client.zrange(key, 0, -1)
                wrong = {str(dice.randrange(1, 500)): dice.random() * 1e13 for _ in range(20)}
                client.zadd(key, {**wrong, "rubbish": 0, str(1 << 70): -1, **dict.fromkeys(ids[:5], 0.0)})
                client.zrem(key, *ids[5:10], "none")
            for channel in client.pubsub_channels("telecine:*"):
                for word in ("", "again", "again", "\x00" * 100):
                    client.publish(channel, word)

    while not over.is_set():
        await asyncio.to_thread(once)
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("trouble", [flush_often, lie])
def test_while_redis_is_flushed_or_lied_into_everything_is_done_once(
    url: str, tmp_path: Path, trouble: Callable[[PrivateRedis, asyncio.Event], Awaitable[None]]
) -> None:
    async def story() -> None:
        with PrivateRedis() as server:
            async with fleet(url, tmp_path, [server.url] * WORKERS, timeout=LONG) as ours:
                over = asyncio.Event()
                troubling = asyncio.ensure_future(trouble(server, over))
                await ours.submit()
                await ours.finish()
                over.set()
                await troubling
                assert ours.sum("hints_offered") > 0
                # Those who were lied to have noticed; what was flushed may have been seen by nobody.
                assert trouble is flush_often or ours.sum("hints_taken") + ours.sum("hints_stale") > 0

    play(story)


def test_a_redis_that_has_stopped_keeps_nobody_waiting(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        with PrivateRedis() as server:
            async with fleet(url, tmp_path, [server.url] * WORKERS, timeout=LONG) as ours:
                await ours.submit(5)
                server.pause()

                await ours.submit()
                await ours.finish()

                assert ours.slowest < LONG / 2, "whoever waits for Redis waits for as long as its time limit"
                server.resume()

    play(story)


def test_the_circuit_opens_while_redis_is_stopped_and_closes_when_it_goes_on(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        with PrivateRedis() as server:
            async with fleet(url, tmp_path, [server.url] * 2, timeout=0.3) as ours:
                server.pause()
                while not ours.sum("outages"):
                    await ours.submit(5)
                server.resume()

                bells = [bell for parts in ours.parts if (bell := redis_of(parts.bell)) is not None]
                await until(lambda: all(bell.vitals().circuit == "closed" for bell in bells))
                await ours.submit(5)
                await ours.finish()

    play(story)


def test_a_redis_that_is_killed_and_comes_back_empty_loses_nothing(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        with PrivateRedis() as server:
            async with fleet(url, tmp_path, [server.url] * WORKERS) as ours:
                for _ in range(2):
                    submitting = asyncio.ensure_future(ours.submit())
                    await until(lambda: len(ours.jobs) % JOBS > 3)
                    server.kill()
                    await submitting
                    await asyncio.to_thread(server.start)
                await ours.finish()

    play(story)


def test_a_redis_that_is_full_is_as_good_as_none(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        with PrivateRedis() as server:
            async with fleet(url, tmp_path, [server.url] * WORKERS, timeout=LONG) as ours:
                await ours.submit(5)
                server.say("CONFIG", "SET", "maxmemory", "1")
                await ours.submit()
                await ours.finish()
                assert ours.sum("refusals") > 0

    play(story)


def test_half_of_the_workers_cut_off_from_redis_still_get_their_share(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        with PrivateRedis() as server:
            async with (
                gap_before(server.url) as gap,
                fleet(url, tmp_path, [server.url, gap.url] * (WORKERS // 2)) as ours,
            ):
                await ours.submit(5)
                gap.shut()
                await ours.submit()
                await ours.finish()
                await until(lambda: ours.sum("errors") > 0)

                gap.open()
                await ours.submit(5)
                await ours.finish()

    play(story)


def test_without_any_redis_from_the_start_all_work_finishes(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with fleet(url, tmp_path, ["redis://127.0.0.1:1/0"] * 2) as ours:
            await ours.submit()
            await ours.finish()
            assert ours.sum("outages") == 2

    play(story)


def test_workers_and_redis_killed_together_lose_nothing(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        with PrivateRedis() as server:
            own = Settings(database_url=url, queue_mode="hybrid", redis_url=server.url)
            await migrate_database(own)
            async with open_engine(own) as parts:
                await parts.engine.jobs.register(fan)
                ann, bob = (worker_process(name, own, tmp_path) for name in ("ann", "bob"))
                raw = Engine(parts.store)
                try:
                    await enlisted(raw, "ann", "bob")
                    jobs = [(await parts.engine.jobs.submit("fan", {"pieces": 4})).job_id for _ in range(2)]
                    server.kill()
                    ann.kill()
                    jobs.append((await parts.engine.jobs.submit("fan", {"pieces": 4})).job_id)
                    await asyncio.to_thread(server.start)

                    assert set(await ended(raw, *jobs, within=2 * LONG)) == {"completed"}
                    for job in jobs:
                        assert (await outcomes(raw, job)).count("done") == 6
                    assert await audit(partial(rows, raw)) == []
                finally:
                    for process in (ann, bob):
                        process.kill()
                        process.wait()

    play(story)


def worker_process(name: str, settings: Settings, folder: Path) -> Actor:
    """`telecine worker`, as one starts it by hand."""
    values = {
        "DATABASE_URL": settings.database_url,
        "QUEUE_MODE": settings.queue_mode,
        "REDIS_URL": str(settings.redis_url),
        "WORKER_NAME": name,
        "SLOTS": "4",
        "SCRATCH": str(folder / "scratch"),
        "ARTIFACTS_URL": str(folder / "artifacts"),
        "SWEEP_SECONDS": "0.5",
    }
    environment = {**os.environ, **{f"TELECINE_{key}": value for key, value in values.items()}}
    log = folder / f"{name}.log"
    return enter(TELECINE, ["worker", "--flows", "tests.support.flows"], environ=environment, out=log, log=log)
