"""Behind a transaction pooler everything works; only wake-ups do not arrive, and that is found out."""

import asyncio
import random
from pathlib import Path

import asyncpg
import pytest

from telecine import Flow
from telecine.dispatch.postgres import PostgresBell
from telecine.engine import Submission
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance.audit import Auditor
from telecine.facts import Status
from telecine.settings import Settings
from telecine.store import Ask, Rows, Steps
from telecine.store.open import bring_up_to_date, open_store
from telecine.store.postgres import Postgres
from telecine.store.statements import Statement
from telecine.wiring import make_worker, open_engine
from telecine.world import World
from tests.support.pooler import pooled

LONG = 60.0
JOBS = 20


def relay() -> Flow:
    flow = Flow("relay")

    @flow.stage(run="inline")
    async def first(bench: object) -> None:
        await asyncio.sleep(0)

    @flow.stage(run="inline", needs=["first"])
    async def second(bench: object) -> None:
        await asyncio.sleep(0)

    return flow


async def prepared(url: str) -> None:
    store = open_store(url, dice=random.Random())
    await bring_up_to_date(store, url)
    await store.close()


def settings_for(address: str, folder: Path) -> Settings:
    return Settings(database_url=address, artifacts_url=str(folder / "a"), scratch=folder / "s", slots=4)


WAYS = pytest.mark.parametrize("refuses", [True, False], ids=["settings are refused", "settings are forgotten"])


@WAYS
def test_workers_submitters_and_readers_share_two_connections(
    postgres_schema_url: str, tmp_path: Path, refuses: bool
) -> None:
    async def play() -> None:
        await prepared(postgres_schema_url)
        async with pooled(postgres_schema_url, refuses=refuses) as (address, pooler):
            settings = settings_for(address, tmp_path)
            async with open_engine(settings) as here, open_engine(settings) as there:
                engine = here.engine
                await engine.jobs.register(relay())
                worker = make_worker(there, [relay()])
                working = asyncio.create_task(worker.run())
                half = range(JOBS // 2)
                singly = [engine.jobs.submit("relay", {"n": n}) for n in half]
                made = [one.job_id for one in await asyncio.gather(*singly)]
                made += [one.job_id for one in await engine.jobs.submit_many([Submission(flow="relay") for _ in half])]
                while {(await engine.queries.job(job)).status for job in made} != {Status.COMPLETED}:
                    await asyncio.gather(*(engine.queries.job(job) for job in made))
                    await engine.queries.stats()
                used = dict(pooler.transactions)
                worker.stop()
                await working
                attempts = [len((await engine.queries.attempts(job)).items) for job in made]
                found = await Auditor(here.store, GraphCache()).look_at_everything()
            assert attempts == [2] * JOBS
            assert found == ()
            assert len(used) >= 2
            assert sorted(used.values())[-2] > JOBS

    asyncio.run(asyncio.wait_for(play(), LONG))


def test_all_who_come_first_at_once_are_let_in(postgres_schema_url: str) -> None:
    async def play() -> None:
        await prepared(postgres_schema_url)
        async with pooled(postgres_schema_url) as (address, _):
            store = open_store(address, dice=random.Random(), size=8)
            versions = await asyncio.gather(*(store.schema_version() for _ in range(8)))
            await store.close()
        assert len(set(versions)) == 1

    asyncio.run(asyncio.wait_for(play(), LONG))


@WAYS
def test_limits_hold_for_each_transaction_and_each_look(postgres_schema_url: str, refuses: bool) -> None:
    asked = "select current_setting('lock_timeout') as waits, current_setting('enable_seqscan') as scans"

    def steps() -> Steps[Rows]:
        rows: Rows = yield Ask("limits", {}, whole=True)
        return rows

    async def play() -> None:
        async with pooled(postgres_schema_url, refuses=refuses) as (address, _):
            store = open_store(address, dice=random.Random())
            assert isinstance(store, Postgres)
            store._statements = {"limits": Statement("limits", asked, (), (asked,))}
            for _ in range(4):
                for way in (store.run, store.read):
                    [row] = await way(steps)
                    assert dict(row) == {"waits": "2s", "scans": "off"}
            async with store.connections.borrow() as connection:
                assert await connection.fetchval("show lock_timeout") == "0", "it would be there for strangers, too"
            await store.close()

    asyncio.run(asyncio.wait_for(play(), LONG))


def test_the_probe_finds_out_that_nobody_hears_anything(postgres_schema_url: str) -> None:
    async def play() -> None:
        direct = PostgresBell(postgres_schema_url, World())
        assert await direct.probe()
        await direct.close()
        # One connection: what a client says to itself comes back to it.
        async with pooled(postgres_schema_url, servers=1) as (address, _):
            bell = PostgresBell(address, World())
            assert not await bell.probe()
            await bell.close()

    asyncio.run(asyncio.wait_for(play(), LONG))


def test_who_may_have_one_connection_listens_all_the_same(
    postgres_schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect, first = asyncpg.connect, []

    async def one_alone(*arguments: object, **options: object) -> object:
        if first:
            raise asyncpg.TooManyConnectionsError("too many connections for role")
        first.append(await connect(*arguments, **options))
        return first[0]

    async def play() -> None:
        monkeypatch.setattr(asyncpg, "connect", one_alone)
        bell = PostgresBell(postgres_schema_url, World())
        assert await bell.probe()
        await bell.close()

    asyncio.run(asyncio.wait_for(play(), LONG))
