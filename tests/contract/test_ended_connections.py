"""PostgreSQL ends a session, and its last words arrive before the end of the stream: nothing is lost, nothing fails."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg
import pytest

from telecine.dispatch.postgres import PostgresBell
from telecine.errors import Unreachable
from telecine.store import Ask, Rows, Steps
from telecine.store.connections import Connections
from telecine.store.open import bring_up_to_date, open_store
from telecine.store.postgres import Postgres
from telecine.world import World
from tests.support.delayed_close import delayed_close

# Longer than any test: the connection looks open until the proxy closes it.
LATE = 60.0


@asynccontextmanager
async def behind_proxy(url: str) -> AsyncIterator[Postgres]:
    """A store whose sessions may end without that its connections do."""
    async with delayed_close(url, LATE) as proxy:
        store = open_store(proxy.url, dice=random.Random(1))
        assert isinstance(store, Postgres)
        try:
            await bring_up_to_date(store, url)
            yield store
        finally:
            await store.close()


async def end_sessions(url: str, *connections: Connections) -> list[asyncpg.Connection]:
    """End every idle session of these; the connections, which have heard of it and look open."""
    idle = [connection for some in connections for _, connection in some._idle]
    assert idle
    other = await asyncpg.connect(url)
    try:
        for connection in idle:
            await other.fetch("select pg_terminate_backend($1)", connection.get_server_pid())
            while await other.fetchval(
                "select count(*) from pg_stat_activity where pid = $1", connection.get_server_pid()
            ):
                await asyncio.sleep(0.01)
    finally:
        await other.close()
    # The last words have gone into the socket by now; one round of the loop reads them.
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert not any(connection.is_closed() for connection in idle)
    return idle


def count_jobs() -> Steps[Rows]:
    rows: Rows = yield Ask("vitals", {})
    return rows


async def test_a_statement_on_an_ended_session_runs_on_another_connection(postgres_schema_url: str) -> None:
    async with behind_proxy(postgres_schema_url) as store:
        await asyncio.gather(*(store.run(count_jobs) for _ in range(3)), store.read(count_jobs))
        ended = await end_sessions(postgres_schema_url, store.connections, store._readers)

        assert len(await store.run(count_jobs)) == 1
        assert len(await store.read(count_jobs)) == 1

        idle = [connection for some in (store.connections, store._readers) for _, connection in some._idle]
        used = [connection for connection in ended if connection.is_closed()]
        assert used
        assert not any(connection in used for connection in idle)


async def test_no_error_of_the_driver_leaves_the_store(postgres_schema_url: str) -> None:
    async with behind_proxy(postgres_schema_url) as store:
        await store.run(count_jobs)
        await end_sessions(postgres_schema_url, store.connections)

        with pytest.raises(Unreachable, match="PostgreSQL ended the session"):
            await store.schema_version()

        assert await store.schema_version()


async def test_an_ended_session_is_closed_without_a_word(postgres_schema_url: str) -> None:
    async with behind_proxy(postgres_schema_url) as store:
        await store.run(count_jobs)
        await end_sessions(postgres_schema_url, store.connections)

        async with asyncio.timeout(10):
            await store.close()


async def test_a_bell_whose_sessions_were_ended_listens_and_rings_again(postgres_schema_url: str) -> None:
    async with delayed_close(postgres_schema_url, 0.05) as proxy:
        bell, other = PostgresBell(proxy.url, World()), PostgresBell(proxy.url, World())
        try:
            assert await bell.probe()
            for _ in range(5):
                other.ring(["lane"])
                await asyncio.sleep(0.02)
                await end_everything(postgres_schema_url)

            async with asyncio.timeout(30):
                while True:
                    other.ring(["lane"])
                    waited = asyncio.get_running_loop().time()
                    await bell.wait(1.0)
                    if asyncio.get_running_loop().time() - waited < 0.9:
                        break
        finally:
            await bell.close()
            await other.close()


async def end_everything(url: str) -> None:
    connection = await asyncpg.connect(url, server_settings={"application_name": "ender"})
    try:
        await connection.fetch(
            "select pg_terminate_backend(pid) from pg_stat_activity where backend_type = 'client backend' "
            "and application_name = '' and query ilike any(array['%listen%', '%notify%'])"
        )
    finally:
        await connection.close()
