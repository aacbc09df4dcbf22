"""The PostgreSQL that the other tests trust is new, real and durable, and comes back after kill -9."""

import asyncio
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.support.postgres import NEWEST, OLDEST, PrivatePostgres, fresh_schema, shared_postgres


def ask(url: str, *statements: str) -> list[Any]:
    async def run() -> list[Any]:
        connection = await asyncpg.connect(url)
        try:
            return [await connection.fetchval(statement) for statement in statements]
        finally:
            await connection.close()

    return asyncio.run(run())


@pytest.mark.parametrize("release", [NEWEST, OLDEST])
def test_the_server_has_the_wanted_release_and_waits_for_the_disk(release: int) -> None:
    with shared_postgres(release) as url:
        version, commit, fsync = ask(url, "show server_version", "show synchronous_commit", "show fsync")

    assert version.startswith(f"{release}.")
    assert (commit, fsync) == ("on", "on")


def test_a_module_works_in_a_schema_of_its_own(postgres_schema_url: str) -> None:
    _, found_here, elsewhere = ask(
        postgres_schema_url,
        "create table reel (id int)",
        "select to_regclass(current_schema() || '.reel')::text",
        "select to_regclass('public.reel')",
    )

    assert found_here == "reel"
    assert elsewhere is None


def test_a_schema_is_gone_after_its_use(postgres_url: str) -> None:
    with fresh_schema(postgres_url) as url:
        [schema] = ask(url, "select current_schema()::text")

    [left] = ask(postgres_url, f"select count(*) from pg_namespace where nspname = '{schema}'")
    assert left == 0


def test_a_committed_row_outlives_kill_9_of_the_server(tmp_path: Path) -> None:
    with PrivatePostgres(tmp_path) as server:
        ask(server.url, "create table reel (id int)", "insert into reel values (7)")

        server.kill()
        with pytest.raises(OSError):  # noqa: PT011 (which one depends on the moment)
            ask(server.url, "select 1")
        server.start()

        assert ask(server.url, "select id from reel") == [7]


def test_a_server_can_be_killed_while_clients_write(tmp_path: Path) -> None:
    async def write_until_cut(server: PrivatePostgres) -> int:
        connection = await asyncpg.connect(server.url)
        acknowledged = 0
        try:
            while True:
                await connection.execute("insert into reel values ($1)", acknowledged + 1)
                acknowledged += 1
                if acknowledged == 50:
                    server.kill()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return acknowledged
        finally:
            connection.terminate()

    with PrivatePostgres(tmp_path) as server:
        ask(server.url, "create table reel (id int)")

        acknowledged = asyncio.run(write_until_cut(server))
        server.start()

        assert ask(server.url, "select count(*) from reel") == [acknowledged]
