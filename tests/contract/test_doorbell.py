"""PostgreSQL: the commit of a submit rings the bell by itself, if nothing was rung for a while."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import pytest

from telecine.dispatch import postgres
from telecine.dispatch.postgres import SPACING, NotifySender, PostgresBell
from telecine.engine import Engine, Submission
from telecine.errors import BadSpec
from telecine.settings import Settings
from telecine.store.postgres import Postgres
from telecine.wiring import migrate_database, open_engine
from telecine.world import World
from tests.support.builders import a_flow, a_stage
from tests.support.postgres import PrivatePostgres
from tests.support.scene import Scene, on_postgres

SONG = a_flow(a_stage("sing"), name="song")
LONG = 10.0
SHORT = 0.3


@dataclass
class House:
    """A process that submits, what its mouth says by itself, and the bell of another process."""

    engine: Engine
    own: PostgresBell
    other: PostgresBell
    spoken: list[float] = field(default_factory=list)

    async def rest(self) -> None:
        """Until nothing was rung for a while, and nothing is left to be heard."""
        await asyncio.sleep(2 * SPACING)
        for bell in (self.own, self.other):
            while await wakes(bell):
                pass
        self.spoken.clear()


async def wakes(bell: PostgresBell, within: float = SHORT) -> bool:
    begun = time.monotonic()
    await bell.wait(within)
    return time.monotonic() - begun < within * 0.9


@asynccontextmanager
async def house(scene: Scene, patch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    store = scene.store
    assert isinstance(store, Postgres)
    await scene.enact(SONG)
    own, other = [PostgresBell(scene.url, World()) for n in range(2)]
    home = House(Engine(store, bell=own), own, other)
    await home.engine.jobs.register(SONG)
    say = NotifySender._said

    async def heard(mouth: NotifySender) -> bool:
        home.spoken.append(time.monotonic())
        return await say(mouth)

    patch.setattr(NotifySender, "_said", heard)
    store.doorbell = own
    try:
        assert await other.probe()
        assert await own.probe()
        own.ring(["any"])  # from now on it knows the channel
        assert await wakes(other, LONG)
        await home.rest()
        yield home
    finally:
        store.doorbell = None
        await own.close()
        await other.close()


@on_postgres
async def test_a_submit_after_a_quiet_while_rings_with_its_commit_and_only_once(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with house(scene, patch) as home:
            for _ in range(3):
                await home.engine.jobs.submit("song")

                assert await wakes(home.other, LONG)
                assert await wakes(home.own), "whoever waits in the same process is woken, too"
                assert not await wakes(home.own)
                assert not await wakes(home.other)
                assert home.spoken == []


@on_postgres
async def test_whoever_submits_all_the_time_holds_up_no_commit_and_is_heard(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with house(scene, patch) as home:
            patch.setattr(postgres, "RESTED", LONG)  # however slow the machine is
            with_commit: list[object] = []
            patch.setattr(home.own, "said", lambda: with_commit.append(home.own._mouth.was_said()))

            for _ in range(40):
                home.own.ring(["any"])  # somebody else submits in between
                await home.engine.jobs.submit("song")

            assert with_commit == []
            assert home.spoken
            assert await wakes(home.other, LONG)


@on_postgres
async def test_what_is_rung_soon_after_a_commit_that_rang_goes_out(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with house(scene, patch) as home:
            await home.engine.jobs.submit("song")
            home.own.ring(["any"])
            await asyncio.sleep(10 * SPACING)

            assert len(home.spoken) == 1


@on_postgres
async def test_a_ring_that_never_followed_its_commit_swallows_no_later_one(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with house(scene, patch) as home:
            home.own.said()  # and then the submit was cancelled
            await asyncio.sleep(2 * SPACING)

            home.own.ring(["any"])

            assert await wakes(home.other, LONG)
            assert len(home.spoken) == 1


@on_postgres
async def test_what_was_refused_or_waits_rings_nobody_and_many_ring_as_ever(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with house(scene, patch) as home:
            with pytest.raises(BadSpec):
                await home.engine.jobs.submit("song", priority=99)
            assert not await wakes(home.other)

            first = await home.engine.jobs.submit("song")
            assert await wakes(home.other, LONG)
            await home.rest()
            await home.engine.jobs.submit("song", after=(first.job_id,))
            assert not await wakes(home.other)

            await home.rest()
            await home.engine.jobs.submit_many([Submission(flow="song")] * 3)
            assert await wakes(home.other, LONG)
            assert len(home.spoken) == 1


@on_postgres
async def test_of_many_submits_at_once_one_rings_with_its_commit(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with house(scene, patch) as home:
            patch.setattr(postgres, "RESTED", SHORT)
            await asyncio.sleep(2 * SHORT)

            allowed = [home.own.word() for _ in range(3)]

            assert [one is not None for one in allowed] == [True, False, False]

            await asyncio.sleep(2 * SHORT)
            with_commit: list[object] = []
            patch.setattr(home.own, "said", lambda: with_commit.append(home.own._mouth.was_said()))
            await asyncio.gather(*(home.engine.jobs.submit("song") for _ in range(12)))

            assert len(with_commit) == 1
            assert await wakes(home.other, LONG)


@on_postgres
async def test_whoever_hears_others_ring_leaves_his_commits_alone(scene: Scene) -> None:
    with pytest.MonkeyPatch.context() as patch:
        async with house(scene, patch) as home:
            patch.setattr(postgres, "RESTED", LONG)
            home.own._mouth._stirred = home.own._mouth._last = float("-inf")
            home.other.ring(["any"])
            assert await wakes(home.own, LONG)

            assert home.own.word() is None


async def test_news_that_nobody_takes_keep_no_submit_from_being_taken(tmp_path: Path) -> None:
    """A session that listens and sits in a transaction fills the queue of notifications, for the whole server."""
    with PrivatePostgres(tmp_path) as server:
        await _let_queue_be_small(server)
        settings = Settings(database_url=server.url)
        await migrate_database(settings)
        async with open_engine(settings) as parts:
            await parts.engine.jobs.register(SONG)
            await parts.engine.jobs.submit("song")  # from now on its bell knows the channel
            sleeper, loud = [await asyncpg.connect(server.url) for _ in range(2)]
            await sleeper.execute("listen noise")
            await sleeper.execute("begin; select 1")
            with pytest.raises(asyncpg.ProgramLimitExceededError):
                await _make_noise(loud)
            await asyncio.sleep(2 * SPACING)

            taken = [await parts.engine.jobs.submit("song") for _ in range(3)]

            assert await loud.fetchval("select count(*) from job") == 1 + len(taken)
            sleeper.terminate()
            loud.terminate()


async def _make_noise(connection: asyncpg.Connection) -> None:
    for n in range(10_000):
        await connection.execute(f"notify noise, '{n:07000d}'")


async def _let_queue_be_small(server: PrivatePostgres) -> None:
    connection = await asyncpg.connect(server.url)
    await connection.execute("alter system set max_notify_queue_pages = 64")
    await connection.close()
    server.stop()
    server.start()
