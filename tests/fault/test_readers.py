"""Readers of live events come and go, read slowly or not at all, and the server dies: none misses or hears twice.

The same with 1,000 readers is in `proof/test_readers.py`.
"""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from telecine.engine import Engine
from telecine.engine.accounts.keys import Keys, Scope
from telecine.world import World
from tests.api.sse_client import Ear
from tests.fault.many_readers import ROOMY, Crowd
from tests.fault.server_processes import Outpost, outpost
from tests.fault.worker_processes import on, until
from tests.support.builders import a_flow
from tests.support.postgres import fresh_schema
from tests.support.scene import execute

READERS = 40
PATIENCE = 120.0
MANY, SIZE = 9_000, 1_500


@pytest.fixture
def post(url: str, tmp_path: Path) -> Iterator[Outpost]:
    with outpost(tmp_path, url, **ROOMY) as post:
        yield post


def test_readers_that_are_cut_off_while_the_server_is_killed_miss_nothing_and_hear_nothing_twice(
    post: Outpost, url: str
) -> None:
    post.serve()

    async def play(engine: Engine) -> None:
        crowd = Crowd(engine, lambda: [post.port])
        await crowd.gather(READERS)

        async def happen() -> None:
            await crowd.happen(60, pause=0.1)
            assert post.server is not None
            await until(lambda: all(reader.connections for reader in crowd.everyone()))
            post.server.kill()
            post.server.wait()
            await crowd.happen(30)
            await asyncio.to_thread(post.serve)
            await crowd.happen(60, pause=0.1)

        expected = await crowd.follow(happen, PATIENCE)
        rests = [await some[0].rest() for some in crowd.readers.values()]

        assert crowd.faults(expected) == {}
        assert len(expected[None]) >= 4 * 150
        assert all(reader.connections > 1 for reader in crowd.everyone())
        assert rests == [[], [], [], []]

    on(url, play)


def test_readers_that_go_from_one_server_to_another_hear_everything_once(postgres_url: str, tmp_path: Path) -> None:
    with fresh_schema(postgres_url) as url, ExitStack() as stack:
        posts = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            posts.append(stack.enter_context(outpost(tmp_path / name, url, **ROOMY)))
            posts[-1].serve()

        async def play(engine: Engine) -> None:
            crowd = Crowd(engine, lambda: [post.port for post in posts])
            await crowd.gather(40, lives=(0.05, 0.7))

            expected = await crowd.follow(lambda: crowd.happen(100, pause=0.1), PATIENCE)

            assert crowd.faults(expected) == {}

        on(url, play)


async def much(engine: Engine, job: int) -> None:
    """More than any buffer between a server and a reader holds."""
    text = "x" * SIZE
    if hasattr(engine._store, "connections"):
        table, who = "unnumbered (at, kind, job_ids, data)", f"array[{job}]"
        numbers, data = f"generate_series(1, {MANY}) as n", "jsonb_build_object('n', n, 'text', '" + text + "')"
    else:
        table, who = "event (at, kind, job_id, data)", str(job)
        numbers = f"(with recursive c(n) as (select 1 union all select n + 1 from c where n < {MANY}) select n from c)"
        data = "json_object('n', n, 'text', '" + text + "')"
    await execute(engine._store, f"insert into {table} select 1, 'job.edited', {who}, {data} from {numbers}")


def test_a_reader_that_does_not_read_costs_no_memory_and_no_others_time(post: Outpost, url: str) -> None:
    post.serve()

    async def play(engine: Engine) -> None:
        await engine.jobs.register(a_flow())
        job = (await engine.jobs.submit("film", owner="ada")).job_id
        key = (await Keys(engine._store, World()).issue(Scope.OWNER, owner="ada")).text
        assert post.server is not None
        stuck = [await Ear.open(post.port, "after=0", key=key) for _ in range(3)]
        quick = await Ear.open(post.port, "after=0", key=key)
        await quick.until(lambda heard: heard.kind == "job.created")
        process = psutil.Process(post.server.pid)
        before = process.memory_info().rss

        await much(engine, job)
        heard = await quick.until(lambda heard: heard.data["data"]["n"] == MANY, PATIENCE)
        grown = process.memory_info().rss - before
        late = await stuck[0].until(lambda heard: (heard.data["data"] or {}).get("n") == MANY, PATIENCE)
        for ear in (*stuck, quick):
            ear.cut()

        assert len(heard) == MANY
        assert [one.data["seq"] for one in late[1:]] == [one.data["seq"] for one in heard]
        # The ring holds a bounded number of events, and each connection a bounded number of bytes.
        assert grown < 64 << 20, f"{grown >> 20} MiB for {MANY * SIZE >> 20} MiB of events to four readers"

    on(url, play)


def test_a_server_that_stops_in_order_ends_its_streams_at_once(post: Outpost, url: str) -> None:
    post.serve()

    async def play(engine: Engine) -> None:
        key = (await Keys(engine._store, World()).issue(Scope.OWNER, owner="ada")).text
        ears = [await Ear.open(post.port, key=key) for _ in range(20)]
        for ear in ears:
            await anext(ear.blocks())
        assert post.server is not None

        post.server.terminate()
        async with asyncio.timeout(5.0):
            rests = [await ear.rest() for ear in ears]
        code = await asyncio.to_thread(post.server.wait, 20)
        for ear in ears:
            ear.cut()

        assert rests == [[]] * 20
        assert code == 0

    on(url, play)
