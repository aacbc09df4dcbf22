"""Every bell wakes whoever waits, and costs nothing but time when it does not."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import asyncpg
import pytest

from telecine.dispatch import Bell
from telecine.dispatch.local import LocalBell
from telecine.dispatch.postgres import PostgresBell
from telecine.dispatch.sqlite import SqliteBell
from telecine.world import World
from tests.support.redis import Newsbell, redis_bell

LONG = 20.0
LANES = ["echo/echo@1"]

MakeBell = Callable[[], Bell]


@pytest.fixture
def sqlite_file(tmp_path: Path) -> Path:
    path = tmp_path / "bell.db"
    connection = sqlite3.connect(path)
    connection.execute("pragma journal_mode = wal")
    connection.execute("create table mark (n integer)")
    connection.close()
    return path


@pytest.fixture(params=["local", "sqlite", "postgres", "redis", "news by redis", "redis that is away"])
def make_bell(request: pytest.FixtureRequest) -> Iterator[MakeBell]:
    match request.param:
        case "local":
            yield LocalBell
        case "sqlite":
            path = request.getfixturevalue("sqlite_file")
            yield lambda: SqliteBell(path)
        case "redis" | "news by redis":
            url = request.getfixturevalue("redis_url")
            yield lambda: redis_bell(url) if request.param == "redis" else Newsbell(redis_bell(url))
        case "redis that is away":
            yield lambda: redis_bell("redis://127.0.0.1:1/0")
        case _:
            url = request.getfixturevalue("postgres_schema_url")
            yield lambda: PostgresBell(url, World())


def scene(play: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await asyncio.wait_for(play(), LONG)

    asyncio.run(run())


async def quiet(bell: Bell) -> None:
    """Wait until the bell has nothing old to tell."""
    while True:
        began = time.monotonic()
        await bell.wait(0.2)
        if time.monotonic() - began > 0.15:
            return


def test_a_ring_wakes_whoever_waits(make_bell: MakeBell) -> None:
    async def play() -> None:
        bell = make_bell()
        await quiet(bell)
        asyncio.get_running_loop().call_later(0.05, bell.ring, LANES)

        began = time.monotonic()
        await bell.wait(LONG)

        assert time.monotonic() - began < LONG / 4
        await bell.close()

    scene(play)


def test_a_ring_between_two_waits_is_not_lost(make_bell: MakeBell) -> None:
    async def play() -> None:
        bell = make_bell()
        await quiet(bell)
        bell.ring(LANES)

        began = time.monotonic()
        await bell.wait(LONG)

        assert time.monotonic() - began < LONG / 4
        await bell.close()

    scene(play)


def test_without_a_ring_the_wait_ends_by_itself(make_bell: MakeBell) -> None:
    async def play() -> None:
        bell = make_bell()
        await quiet(bell)

        began = time.monotonic()
        await bell.wait(0.1)

        assert 0.05 < time.monotonic() - began < LONG / 4
        await bell.close()

    scene(play)


def test_a_ring_for_no_lane_is_none(make_bell: MakeBell) -> None:
    async def play() -> None:
        bell = make_bell()
        await quiet(bell)
        bell.ring([])

        began = time.monotonic()
        await bell.wait(0.1)

        assert time.monotonic() - began > 0.05
        await bell.close()

    scene(play)


def test_one_ring_wakes_everybody_and_nobody_steals_it(make_bell: MakeBell) -> None:
    async def play() -> None:
        bell = make_bell()
        heard: list[int] = []

        async def idle(number: int) -> None:
            await quiet(bell)
            ready.release()
            await bell.wait(LONG)
            heard.append(number)

        ready = asyncio.Semaphore(0)
        waiters = [asyncio.ensure_future(idle(number)) for number in range(3)]
        for _ in waiters:
            await ready.acquire()
        bell.ring(LANES)
        await asyncio.wait_for(asyncio.gather(*waiters), LONG / 4)

        assert sorted(heard) == [0, 1, 2]
        await bell.close()

    scene(play)


def test_a_ring_from_another_thread_is_heard(make_bell: MakeBell) -> None:
    async def play() -> None:
        bell = make_bell()
        await quiet(bell)
        waiting = asyncio.ensure_future(bell.wait(LONG))

        await asyncio.to_thread(bell.ring, LANES)

        await asyncio.wait_for(waiting, LONG / 4)
        await bell.close()

    scene(play)


def test_nothing_breaks_by_a_ring_that_nobody_can_hear(make_bell: MakeBell) -> None:
    bell = make_bell()

    bell.ring(LANES)

    async def play() -> None:
        await bell.wait(0.01)
        await bell.close()
        bell.ring(LANES)

    scene(play)
    bell.ring(LANES)


def test_a_commit_by_another_connection_wakes_who_waits_on_the_file(sqlite_file: Path) -> None:
    async def play() -> None:
        bell = SqliteBell(sqlite_file)
        await quiet(bell)
        waiting = asyncio.ensure_future(bell.wait(LONG))
        await asyncio.sleep(0)

        with sqlite3.connect(sqlite_file) as other:
            other.execute("insert into mark values (1)")
        other.close()

        await asyncio.wait_for(waiting, LONG / 4)
        await bell.close()

    scene(play)


def test_a_file_that_is_not_there_yet_is_waited_for(tmp_path: Path) -> None:
    async def play() -> None:
        bell = SqliteBell(tmp_path / "later.db")

        began = time.monotonic()
        await bell.wait(0.1)

        assert time.monotonic() - began > 0.05
        await bell.close()

    scene(play)


def test_a_ring_travels_to_another_process(postgres_schema_url: str) -> None:
    async def play() -> None:
        here, there = (PostgresBell(postgres_schema_url, World()) for _ in range(2))
        assert await there.probe()
        await quiet(there)

        here.ring(LANES)

        began = time.monotonic()
        await there.wait(LONG)
        assert time.monotonic() - began < LONG / 4
        await here.close()
        await there.close()

    scene(play)


def test_a_thousand_rings_are_few_messages_and_the_first_goes_at_once(postgres_schema_url: str) -> None:
    async def play() -> None:
        bell = PostgresBell(postgres_schema_url, World())
        connection = await asyncpg.connect(postgres_schema_url)
        heard: list[float] = []
        schema = await connection.fetchval("select current_schema()")
        await connection.add_listener(f"telecine_{schema}", lambda *_: heard.append(time.monotonic()))

        began = time.monotonic()
        for _ in range(1_000):
            bell.ring(LANES)
        while not heard:
            await asyncio.sleep(0.001)
        await bell.close()
        await connection.fetchval("select 1")

        assert 1 <= len(heard) <= 3
        assert heard[0] - began < LONG / 4
        await connection.close()

    scene(play)


def test_a_listener_whose_connection_was_cut_listens_again(postgres_schema_url: str) -> None:
    async def play() -> None:
        here, there = (PostgresBell(postgres_schema_url, World()) for _ in range(2))
        assert await there.probe()
        await quiet(there)
        here.ring(LANES)
        await there.wait(LONG)

        await cut_all(postgres_schema_url)

        await there.wait(LONG)  # it is back, and says "look": something may have been missed
        await quiet(there)
        here.ring(LANES)  # its own connection was cut as well
        began = time.monotonic()
        await there.wait(LONG)
        assert time.monotonic() - began < LONG / 4
        await here.close()
        await there.close()

    scene(play)


async def cut_all(url: str) -> None:
    """Cut every connection to this database but our own."""
    connection = await asyncpg.connect(url)
    await connection.fetch(
        "select pg_terminate_backend(pid) from pg_stat_activity "
        "where pid <> pg_backend_pid() and query like '%telecine_%'"
    )
    await connection.close()


def test_a_bell_on_a_server_that_is_away_only_keeps_silent(tmp_path: Path) -> None:
    async def play() -> None:
        bell = PostgresBell(f"postgresql://postgres@/postgres?host={tmp_path}", World())

        bell.ring(LANES)
        await bell.wait(0.1)
        began = time.monotonic()
        await bell.wait(0.1)

        assert time.monotonic() - began > 0.05
        await bell.close()

    scene(play)
