"""A submit inside the caller's own transaction: his rows and the job commit together, or not at all."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

import telecine
from telecine import Client, Done, Flow, Submission
from telecine.errors import BadSpec, KeyReused, NotFound

greet = Flow("greet")


@greet.stage(phase="planning")
def plan(bench: object) -> Done:
    return Done()


@greet.stage(needs=["plan"])
def speak(bench: object) -> Done:
    return Done()


async def exists(client: Client, job_id: int) -> bool:
    """A job that is there can be waited for."""
    try:
        await client.submit("greet", after=[job_id])
    except NotFound:
        return False
    return True


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
def test_a_job_exists_only_if_the_callers_postgresql_transaction_commits(postgres: str, commit: bool) -> None:
    async def story() -> tuple[bool, bool]:
        async with telecine.connect(postgres) as t:
            await t.register(greet)
            connection = await asyncpg.connect(postgres)
            transaction = connection.transaction()
            await transaction.start()
            submitted = await t.submit("greet", {"n": 1}, key="k", dedupe_key="d", transaction=connection)
            before = await exists(t, submitted.job_id)
            await (transaction.commit() if commit else transaction.rollback())
            await connection.close()
            return before, await exists(t, submitted.job_id)

    assert asyncio.run(story()) == (False, commit)


@pytest.mark.parametrize("commit", [True, False], ids=["commit", "rollback"])
def test_a_job_exists_only_if_the_callers_sqlite_transaction_commits(sqlite_url: str, commit: bool) -> None:
    async def story() -> bool:
        async with telecine.connect(sqlite_url) as t:
            await t.register(greet)
            with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
                submitted = await t.submit("greet", {"n": 1}, key="k", dedupe_key="d", transaction=connection)
                assert connection.in_transaction
                connection.commit() if commit else connection.rollback()
            return await exists(t, submitted.job_id)

    assert asyncio.run(story()) is commit


def test_the_callers_own_rows_and_the_job_commit_together(sqlite_url: str) -> None:
    async def story() -> list[tuple[int]]:
        async with telecine.connect(sqlite_url) as t:
            await t.register(greet)
            with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
                connection.execute("create table orders (job_id)")
                with connection:
                    submitted = await t.submit("greet", transaction=connection)
                    connection.execute("insert into orders values (?)", (submitted.job_id,))
                # Plain tuples: the caller's row factory was left as it was.
                return connection.execute("select job.id from job join orders on orders.job_id = job.id").fetchall()

    assert asyncio.run(story()) == [(1,)]


def test_a_refused_submit_leaves_nothing_in_the_callers_transaction(url: str) -> None:
    async def refused(t: Client, transaction: asyncpg.Connection | sqlite3.Connection) -> None:
        one = Submission(flow="greet", spec={"n": 1}, key="fresh")
        other = Submission(flow="greet", spec={"n": 2}, key="taken")
        with pytest.raises(KeyReused):
            await t.submit_many([one, other], transaction=transaction)

    async def story() -> bool:
        async with telecine.connect(url) as t:
            await t.register(greet)
            await t.submit("greet", {"n": 1}, key="taken")
            if url.startswith("sqlite"):
                with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
                    await refused(t, connection)
            else:
                server = await asyncpg.connect(url)
                async with server.transaction():
                    await refused(t, server)
                await server.close()
            again = await t.submit("greet", {"n": 3}, key="fresh")
            return again.created

    assert asyncio.run(story()) is True


def test_a_connection_of_an_asyncpg_pool_will_do(postgres: str) -> None:
    async def story() -> bool:
        async with telecine.connect(postgres) as t, asyncpg.create_pool(postgres, min_size=1, max_size=1) as pool:
            await t.register(greet)
            async with pool.acquire() as connection, connection.transaction():
                submitted = await t.submit("greet", transaction=connection)
            return await exists(t, submitted.job_id)

    assert asyncio.run(story()) is True


def test_the_second_of_two_racing_transactions_gets_the_twin_of_the_first(postgres: str) -> None:
    async def story() -> tuple[bool, bool]:
        async with telecine.connect(postgres) as t:
            await t.register(greet)
            one, two = await asyncpg.connect(postgres), await asyncpg.connect(postgres)
            first = one.transaction()
            await first.start()
            winner = await t.submit("greet", dedupe_key="d", transaction=one)
            async with two.transaction():
                late = asyncio.create_task(t.submit("greet", dedupe_key="d", transaction=two))
                await until_it_waits(postgres)
                await first.commit()
                loser = await late
            await one.close()
            await two.close()
            return loser.job_id == winner.job_id, loser.created

    assert asyncio.run(story()) == (True, False)


async def until_it_waits(url: str) -> None:
    """Until some transaction of this server waits for another one."""
    connection = await asyncpg.connect(url)
    async with asyncio.timeout(10):
        while not await connection.fetchval("select exists (select 1 from pg_locks where not granted)"):
            await asyncio.sleep(0.01)
    await connection.close()


def test_a_connection_without_a_transaction_is_refused(url: str) -> None:
    async def story() -> None:
        async with telecine.connect(url) as t:
            await t.register(greet)
            if url.startswith("sqlite"):
                path = url.removeprefix("sqlite:///")
                loose = closing(sqlite3.connect(path, isolation_level=None))
                with loose as connection, pytest.raises(BadSpec, match="in no transaction"):
                    await t.submit("greet", transaction=connection)
            else:
                server = await asyncpg.connect(url)
                with pytest.raises(BadSpec, match="in no transaction"):
                    await t.submit("greet", transaction=server)
                await server.close()

    asyncio.run(story())


def test_a_connection_to_another_database_is_refused(
    sqlite_url: str, postgres_url: str, postgres: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with telecine.connect(sqlite_url) as t:
            await t.register(greet)
            other = closing(sqlite3.connect(tmp_path / "other.db"))
            with other as connection, pytest.raises(BadSpec, match="same database"):
                await t.submit("greet", transaction=connection)
        async with telecine.connect(postgres) as t:
            await t.register(greet)
            elsewhere = await asyncpg.connect(postgres_url)
            async with elsewhere.transaction():
                with pytest.raises(BadSpec, match="same search_path"):
                    await t.submit("greet", transaction=elsewhere)
            await elsewhere.close()
            with closing(sqlite3.connect(":memory:")) as wrong, pytest.raises(BadSpec, match="an asyncpg connection"):
                await t.submit("greet", transaction=wrong)

    asyncio.run(story())
