"""`queue_mode` database, redis and hybrid: what each needs at the start, and what the engine offers by Redis."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from telecine.dispatch.hints import WALK_EVERY, LaneHead
from telecine.dispatch.redis import RedisBell
from telecine.engine import Registration
from telecine.errors import BadSpec, Unreachable
from telecine.facts import SECOND, Done, Lease, LeaseOutcome, WorkerId
from telecine.flow import Flow
from telecine.locks.redis import RedisLocks
from telecine.locks.sql import SqlLocks
from telecine.settings import Settings
from telecine.store import ask
from telecine.wiring import Parts, make_locks, migrate_database, open_engine
from telecine.wiring.bells import heads, namespace_of, redis_of
from tests.fault.worker_processes import until
from tests.support.builders import a_flow
from tests.support.postgres import fresh_schema
from tests.support.redis import PrivateRedis

NOBODY = "redis://:secret@127.0.0.1:1/0"
CUT, JOIN = "film/cut@1", "film/join@1"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, sqlite_url: str) -> Iterator[str]:
    fresh: Any = nullcontext(sqlite_url)
    if request.param == "postgres":
        fresh = fresh_schema(request.getfixturevalue("postgres_url"))
    with fresh as url:
        asyncio.run(migrate_database(Settings(database_url=url)))
        yield url


def settings(url: str, redis: str, mode: str = "hybrid") -> Settings:
    return Settings(database_url=url, queue_mode=mode, redis_url=redis, redis_timeout_seconds=10.0)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Process:
    """What one process has open."""

    parts: Parts
    bell: RedisBell
    worker: WorkerId
    flow: Flow

    @property
    def lanes(self) -> dict[str, str]:
        return dict.fromkeys(self.flow.graph.lanes, self.flow.name)

    async def submit(self, **how: Any) -> int:
        return (await self.parts.engine.jobs.submit(self.flow.name, **how)).job_id

    async def claim(self, request: str, wanted: int = 1) -> list[Lease]:
        return await self.parts.engine.claim(self.worker, request, self.lanes, wanted)

    async def settle(self, *leases: Lease) -> None:
        await self.parts.engine.settle([LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases])

    async def hinted(self, lane: str, count: int) -> list[LaneHead]:
        """Wait until a lane has so many hints; these."""
        hints = self.bell.hints

        async def enough() -> list[LaneHead] | bool:
            found = await hints.peek(lane, 100)
            return found if len(found) == count else False

        found: list[LaneHead] = await until(enough)
        return found


@asynccontextmanager
async def process(url: str, redis: str, *stages: str) -> AsyncIterator[Process]:
    async with open_engine(settings(url, redis)) as parts:
        flow = a_flow(*(stages or ("cut",)))
        await parts.engine.jobs.register(flow)
        lanes = tuple(flow.graph.lanes)
        worker = await parts.engine.enlist(Registration(name="ann", hostname="here", lanes=lanes))
        bell = redis_of(parts.bell)
        assert bell is not None
        yield Process(parts, bell, worker, flow)


async def no_hints(mine: Process, lane: str) -> None:
    async def empty() -> bool:
        return await mine.bell.hints.size(lane) == 0

    await until(empty)


async def test_what_is_submitted_is_hinted_at_the_most_urgent_first(database: str, redis_url: str) -> None:
    async with process(database, redis_url) as mine:
        for priority in (0, 5, 10):
            await mine.submit(priority=priority)

        found = await mine.hinted(CUT, 3)

        rows = {head.id: head.rank for head in await heads(mine.parts.store, [CUT], 10)}
        assert [head.rank for head in found] == sorted(rows.values())
        assert {head.id: head.rank for head in found} == rows


async def test_what_a_settle_opens_and_what_falls_due_is_hinted_at(database: str, redis_url: str) -> None:
    async with process(database, redis_url, "cut", "join") as mine:
        await mine.submit()
        await mine.settle(*await mine.claim("first"))
        await mine.hinted(JOIN, 1)

        soon = await ask(mine.parts.store, "pulse_get", {})
        await mine.submit(run_at=int(soon[0]["now"]) + 200)

        async def fallen_due() -> int:
            await mine.parts.engine.sweep(0)
            return await mine.bell.hints.size(CUT)

        assert await until(fallen_due) == 1


async def test_what_was_claimed_is_hinted_at_no_longer(database: str, redis_url: str) -> None:
    async with process(database, redis_url) as mine:
        for _ in range(6):
            await mine.submit()
        await mine.hinted(CUT, 6)

        leases = [lease for turn in range(6) for lease in await mine.claim(f"{turn}")]

        assert len({lease.task_id for lease in leases}) == 6
        await no_hints(mine, CUT)


async def test_an_urgent_task_that_nobody_hinted_at_waits_for_a_few_claims_at_most(
    database: str, redis_url: str
) -> None:
    async with process(database, redis_url) as mine:
        for _ in range(20):
            await mine.submit(priority=0)
        await mine.hinted(CUT, 20)
        mine.parts.engine.bell = Mute()
        urgent = await mine.submit(priority=10)

        claimed = [lease.job_id for turn in range(WALK_EVERY) for lease in await mine.claim(f"{turn}")]

        assert urgent in claimed


class Mute:
    """A process that cannot reach Redis."""

    def ring(self, lanes: object) -> None:
        return None


async def test_a_ring_and_news_travel_to_another_process(database: str, redis_url: str) -> None:
    async with process(database, redis_url) as here, process(database, redis_url) as there:
        await until(lambda: _listens(there))
        before = there.bell.vitals().wakeups
        news = asyncio.ensure_future(_follow(there))

        job = await here.submit()

        assert await asyncio.wait_for(news, 30) == job
        await until(lambda: there.bell.vitals().wakeups >= before + 1)


async def _listens(mine: Process) -> bool:
    await mine.bell.wait(0.01)
    return mine.bell.vitals().listening


async def _follow(mine: Process) -> int:
    news = mine.parts.news
    assert news is not None
    async for event in mine.parts.engine.events.follow(0, wait=news.wait, poll=30.0):
        if getattr(event, "kind", "") == "job.created":
            return int(getattr(event, "job_id", 0) or 0)
    raise AssertionError("the stream has ended")


async def test_a_name_in_redis_is_the_databases_own(database: str, redis_url: str, tmp_path: Path) -> None:
    other = f"sqlite:///{tmp_path}/other.db"
    async with (
        process(database, redis_url) as one,
        process(database, redis_url) as same,
        process(other, redis_url) as different,
    ):
        names = [await namespace_of(mine.parts.store) for mine in (one, same, different)]

        await one.submit()
        await same.hinted(CUT, 1)

        assert names[0] == names[1] != names[2]
        assert await different.bell.hints.size(CUT) == 0


async def test_redis_mode_says_in_one_sentence_that_redis_is_not_there(database: str) -> None:
    with pytest.raises(Unreachable) as refused:
        async with open_engine(settings(database, NOBODY, "redis")):
            pytest.fail("it began without")

    assert "Redis at redis://:***@127.0.0.1:1/0 does not answer" in str(refused.value)
    assert "hybrid" in str(refused.value)


@pytest.mark.parametrize("address", ["http://host:6379", "redis://host:port/0", "nowhere"])
async def test_an_address_that_is_none_is_told(sqlite_url: str, address: str) -> None:
    with pytest.raises(BadSpec, match=r"redis_url .* is not understood"):
        async with open_engine(settings(sqlite_url, address)):
            pytest.fail("it began")


async def test_hybrid_begins_and_works_without_redis(database: str) -> None:
    async with process(database, NOBODY) as mine:
        job = await mine.submit()

        [lease] = await mine.claim("first")
        await mine.settle(lease)

        assert (await mine.parts.engine.queries.job(job)).status == "completed"
        assert mine.bell.vitals().hints_taken == 0


async def test_redis_mode_goes_on_without_redis_once_it_runs(database: str) -> None:
    with PrivateRedis() as server:
        async with open_engine(settings(database, server.url, "redis")) as parts:
            await parts.engine.jobs.register(a_flow("cut"))
            server.kill()

            for _ in range(5):
                await parts.engine.jobs.submit("film")

            bell = redis_of(parts.bell)
            assert bell is not None
            assert await bell.ping() is None
            server.start()
            pulse = await bell.ping()
            assert pulse is not None
            assert pulse.version.count(".") == 2


async def test_database_mode_knows_no_redis(database: str) -> None:
    async with open_engine(Settings(database_url=database)) as parts:
        assert redis_of(parts.bell) is None
        assert parts.engine.hints is None
        assert parts.engine._store is parts.store
        assert parts.news is parts.bell
        assert isinstance(make_locks(parts), SqlLocks)


async def test_locks_stand_behind_redis_where_there_is_one(database: str, redis_url: str) -> None:
    async with process(database, redis_url) as here, process(database, NOBODY) as there:
        locks = make_locks(here.parts)
        assert isinstance(locks, RedisLocks)

        held = await locks.try_acquire("project:1", 30 * SECOND)

        assert held is not None
        assert await make_locks(there.parts).try_acquire("project:1", 30 * SECOND) is None
        assert await make_locks(there.parts).holder("project:1") == held


async def test_many_hints_and_claimers_do_everything_once(database: str, redis_url: str) -> None:
    async with process(database, redis_url) as one, process(database, redis_url) as two:
        jobs = [await mine.submit() for _ in range(20) for mine in (one, two)]
        seen: list[int] = []

        async def drain(mine: Process) -> None:
            for turn in range(60):
                leases = await mine.claim(f"{mine.worker} {turn}", 3)
                seen.extend(lease.job_id for lease in leases)
                await mine.settle(*leases)

        await asyncio.gather(*map(drain, (one, two)))

        assert sorted(seen) == sorted(jobs)
        told = [mine.bell.vitals() for mine in (one, two)]
        assert sum(vitals.hints_offered for vitals in told) > 0
        assert sum(vitals.hints_taken for vitals in told) <= 40
