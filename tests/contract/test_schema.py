"""The schema: the same in both dialects, refused when it does not fit, and strict about what it holds."""

import asyncio
import random
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from telecine.errors import SchemaMissing, SchemaTooNew, StoreError
from telecine.store import Store, migrate
from telecine.store.open import bring_up_to_date, check_schema, open_store
from telecine.store.statements import Dialect
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed
from tests.support.postgres import fresh_schema
from tests.support.scene import ROWS, execute

OBJECTS = "select type, name, tbl_name, sql from sqlite_master where name not like 'sqlite_%' order by type, name"
COLUMNS = """select table_name, column_name, data_type, is_nullable, column_default, is_identity, identity_generation
from information_schema.columns where table_schema = current_schema() order by table_name, ordinal_position"""
INDEXES = "select tablename, indexdef from pg_indexes where schemaname = current_schema() order by indexname"
CONSTRAINTS = """select c.relname, k.conname, pg_get_constraintdef(k.oid) as said from pg_constraint k
join pg_class c on c.oid = k.conrelid where k.connamespace = current_schema()::regnamespace order by 1, 2"""
RELATIONS = """select c.relname, c.relkind::text as kind, c.reloptions::text as options from pg_class c
where c.relnamespace = current_schema()::regnamespace order by 1"""
LOOKS: dict[Dialect, list[str]] = {"sqlite": [OBJECTS], "postgres": [COLUMNS, INDEXES, CONSTRAINTS, RELATIONS]}


async def built(url: str) -> list[list[dict[str, Any]]]:
    """Everything that the database says about its own shape."""
    dialect: Dialect = "postgres" if url.startswith("postgres") else "sqlite"
    store = open_store(url, dice=random.Random(1))
    try:
        await bring_up_to_date(store, url)
        schema = (await execute(store, "select current_schema() as name"))[0]["name"] if dialect == "postgres" else "-"
        return [
            [{key: _plain(value, schema) for key, value in row.items()} for row in await execute(store, look)]
            for look in LOOKS[dialect]
        ]
    finally:
        await store.close()


def _plain(value: Any, schema: str) -> Any:
    return " ".join(value.replace(schema, "schema").split()) if isinstance(value, str) else value


@pytest.fixture
def next_migration(monkeypatch: pytest.MonkeyPatch) -> int:
    """A release that has one more migration."""
    found = {dialect: migrate.migrations(dialect) for dialect in ("sqlite", "postgres")}
    number = max(found["sqlite"]) + 1
    more = "create table added (id integer primary key);\n"
    monkeypatch.setattr(migrate, "migrations", lambda dialect: {**found[dialect], number: more})
    return number


def test_the_next_migration_is_applied_to_an_empty_and_to_an_older_database_alike(
    tmp_path: Path, postgres_url: str, request: pytest.FixtureRequest
) -> None:
    with fresh_schema(postgres_url) as older, fresh_schema(postgres_url) as empty:
        pairs = [(older, empty), (f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db")]
        before = [asyncio.run(built(first)) for first, _ in pairs]
        number: int = request.getfixturevalue("next_migration")
        for (first, second), was in zip(pairs, before, strict=True):
            upgraded = asyncio.run(built(first))
            assert upgraded == asyncio.run(built(second)) != was
            assert asyncio.run(versions_in(first))[-1] == number


async def versions_in(url: str) -> list[int]:
    store = open_store(url, dice=random.Random(1))
    try:
        return [row["version"] for row in await execute(store, "select version from schema_version order by version")]
    finally:
        await store.close()


async def test_a_start_before_the_next_migration_is_refused(bed: Bed, next_migration: int) -> None:
    with pytest.raises(SchemaMissing, match=f"this release needs {next_migration}: run `telecine migrate`"):
        await check_schema(bed.store, bed.url)


async def test_a_schema_of_a_development_version_is_refused_in_one_sentence(bed: Bed) -> None:
    versions = await bed.sql("select version, applied_at from schema_version")
    await bed.sql("update schema_version set version = 6")
    try:
        for attempt in (check_schema, bring_up_to_date):
            with pytest.raises(SchemaMissing, match=r"schema 6 of a development version, .*: use a new database$"):
                await attempt(bed.store, bed.url)
    finally:
        await bed.sql(f"update schema_version set version = {versions[0]['version']}")


def test_both_dialects_have_the_same_migrations_tables_and_columns(tmp_path: Path, postgres_url: str) -> None:
    async def columns(store: Store) -> dict[str, set[str]]:
        tables = await execute(
            store, "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
        )
        return {
            row["name"]: {
                c["name"] for c in await execute(store, f"select name from pragma_table_info('{row['name']}')")
            }
            for row in tables
        }

    async def in_sqlite() -> dict[str, set[str]]:
        store = open_store(f"sqlite:///{tmp_path}/a.db", dice=random.Random(1))
        await bring_up_to_date(store, "sqlite:///")
        try:
            return await columns(store)
        finally:
            await store.close()

    with fresh_schema(postgres_url) as url:
        in_postgres: dict[str, set[str]] = {}
        for row in asyncio.run(built(url))[0]:
            in_postgres.setdefault(row["table_name"], set()).add(row["column_name"])

    theirs = asyncio.run(in_sqlite())
    assert list(migrate.migrations("sqlite")) == list(migrate.migrations("postgres"))
    # An event has its number at once in SQLite; in PostgreSQL it is given after commit, so there is a counter, and a
    # place where events wait for it.
    assert in_postgres["event_counter"] - theirs["event_counter"] == {"seq"}
    in_postgres["event_counter"] = theirs["event_counter"]
    assert len(in_postgres.pop("unnumbered")) == 10
    # In PostgreSQL a job that is one plain task has no other row: three names are views that show it as if it had.
    for name in ROWS:
        assert in_postgres.pop(f"{name}_row") == in_postgres[name]
    told = {"flow_id", "owner", "priority", "phase", "spec", "outcome", "done_by", "digest"}
    assert in_postgres["task"] - theirs["task"] == told
    assert in_postgres.pop("job_task") < theirs["task"]
    assert in_postgres.pop("rowless") == {*theirs["job"], "state"}
    in_postgres["task"] = theirs["task"]
    assert in_postgres == theirs


async def test_bringing_up_to_date_twice_changes_nothing(bed: Bed) -> None:
    assert await bring_up_to_date(bed.store, bed.url) == []
    await check_schema(bed.store, bed.url)


async def test_two_who_migrate_at_once_do_it_once(bed: Bed, tmp_path: Path, postgres_url: str) -> None:
    async def both(url: str) -> list[Any]:
        stores = [open_store(url, dice=random.Random(1)) for _ in range(2)]
        try:
            await asyncio.gather(*(bring_up_to_date(store, url) for store in stores))
            return await execute(stores[0], "select version from schema_version")
        finally:
            for store in stores:
                await store.close()

    if not bed.is_postgres:
        assert len(await both(f"sqlite:///{tmp_path}/new.db")) == 1
        return
    await bed.sql("create schema if not exists racing")
    try:
        assert len(await both(f"{postgres_url}&search_path=racing")) == 1
    finally:
        await bed.sql("drop schema racing cascade")


async def test_who_waits_for_another_to_migrate_sees_that_it_is_done(bed: Bed, postgres_url: str) -> None:
    if not bed.is_postgres:
        return  # nobody can look at a file that another one migrates
    await bed.sql("create schema if not exists waiting")
    url = f"{postgres_url}&search_path=waiting"
    store = open_store(url, dice=random.Random(1), size=1)
    other = await asyncpg.connect(url)
    try:
        assert await store.schema_version() is None  # which its connection remembers
        newest = migrate.newest("postgres")
        async with other.transaction():
            await other.execute("select pg_advisory_xact_lock(hashtext('telecine.migrate'))")
            # Only the last of its tables: of many, the server itself would tell us in time.
            await other.execute("create table schema_version (version integer primary key, applied_at bigint)")
            await other.execute("insert into schema_version values ($1, 0)", newest)
            waiting = asyncio.create_task(bring_up_to_date(store, url))
            await asyncio.sleep(0.3)
            assert not waiting.done()

        await waiting
        assert [row["version"] for row in await execute(store, "select version from schema_version")] == [newest]
    finally:
        await other.close()
        await store.close()
        await bed.sql("drop schema waiting cascade")


async def test_a_start_on_a_newer_schema_is_refused(bed: Bed) -> None:
    await bed.sql("insert into schema_version values (9999, 0)")
    try:
        for attempt in (check_schema, bring_up_to_date):
            with pytest.raises(SchemaTooNew, match="the database has schema 9999; this release knows"):
                await attempt(bed.store, bed.url)
    finally:
        await bed.sql("delete from schema_version where version = 9999")


def test_a_start_without_a_schema_is_refused(tmp_path: Path) -> None:
    async def start() -> None:
        url = f"sqlite:///{tmp_path}/empty.db"
        store = open_store(url, dice=random.Random(1))
        try:
            await check_schema(store, url)
        finally:
            await store.close()

    with pytest.raises(SchemaMissing, match="run `telecine migrate`"):
        asyncio.run(start())


@pytest.mark.parametrize("bed", ["sqlite", "postgres alone"], indirect=True)
async def test_what_is_acknowledged_is_on_disk(bed: Bed) -> None:
    if bed.is_postgres:
        [row] = await bed.sql(
            "select current_setting('synchronous_commit') as commit, current_setting('fsync') as fsync,"
            " current_setting('full_page_writes') as pages"
        )
        assert row == {"commit": "on", "fsync": "on", "pages": "on"}
        return
    for connection in (bed.store._driver._connection, bed.store._reader._connection):
        assert connection.execute("pragma synchronous").fetchone()[0] == 2
        assert connection.execute("pragma journal_mode").fetchone()[0] == "wal"


FALSEHOODS = {
    "running without a lease": "update task set state = 'running'",
    "a lease without running": "update task set lease_until = 5",
    "a holder without running": "update task set worker = 5",
    "running without a holder": "update task set state = 'running', lease_until = 5, parked = {false}",
    "running and parked": "update task set state = 'running', lease_until = 5, worker = 5, parked = {true}",
    "ended with a lease": "update task set state = 'done', parked = {false}, lease_until = 5, worker = 5",
    "ready without a time": "update task set state = 'ready', ready_at = null, rank = null",
    "parked but not ready": "update task set state = 'done', parked = {true}",
    "a negative token": "update task set token = -1",
    "negative tries": "update task set tries = -1",
    "a state that does not exist": "update task set state = 'asleep'",
    "a stage in no state": "update {stage} set state = 'running'",
    "more left than there is": "update {stage} set remaining = total + 1",
    "less than nothing left": "update {stage} set remaining = -1",
    "a stage that waits for less than nothing": "update {stage} set waits = -1",
    "a job that waits for less than nothing": "update {job} set waits = -1",
    "an outcome without an end": "update {job} set outcome = 'completed', status = 'completed'",
    "an end without an outcome": "update {job} set ended_at = 5",
    "an outcome that is not the status": "update {job} set outcome = 'failed', status = 'completed', ended_at = 5",
    "a status that does not exist": "update {job} set status = 'asleep'",
    "a priority off the scale": "update {job} set priority = 11",
    "two tasks in one place": """insert into task (id, job_id, stage, position, lane, state, max_attempts)
        select id + 1000000, job_id, stage, position, lane, 'new', 1 from task""",
    "one lease ended twice": """insert into {attempt}
        (task_id, token, job_id, generation, try, outcome, state, ended_at)
        select task_id, token, job_id, generation, try, outcome, state, ended_at from attempt""",
    "an artifact without a hash": """insert into artifact
        (job_id, task_id, token, name, stage, position, stage_version, key, created_at)
        values (1, 1, 1, 'a', 'cut', 0, 1, 'k', 0)""",
    "an artifact of neither a task nor a version": """insert into artifact
        (job_id, token, name, stage, position, stage_version, key, sha256, created_at)
        values (1, 1, 'a', 'cut', 0, 1, 'k', 'ab', 0)""",
    "a worker mode that does not exist": "update worker set mode = 'asleep'",
    "a second pulse": "insert into pulse (only_row, at) values ({false}, 0)",
}


@pytest.mark.parametrize("falsehood", FALSEHOODS.values(), ids=FALSEHOODS)
async def test_the_database_refuses_a_falsehood(bed: Bed, falsehood: str) -> None:
    await bed.enact(a_flow("cut", "join"))
    await bed.submit()
    await bed.fail(await bed.take())
    words = {"true": "true", "false": "false"} if bed.is_postgres else {"true": "1", "false": "0"}
    words |= {name: bed.table(name) for name in ROWS}

    with pytest.raises((StoreError, Exception), match=r"(?i)constraint"):
        await bed.sql(falsehood.format(**words))


async def test_one_dedupe_key_is_held_by_one_unfinished_job(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    for key in ("one", "two"):
        await bed.submit(dedupe_key=key)

    with pytest.raises(Exception, match=r"(?i)unique"):
        await bed.sql(f"update {bed.table('job')} set dedupe_key = 'one'")


async def test_the_clock_is_the_databases_in_milliseconds(bed: Bed) -> None:
    bed.store.now = None
    [row] = await bed.ask("pulse_get")
    [other] = await bed.sql(
        "select (extract(epoch from clock_timestamp()) * 1000)::bigint as now"
        if bed.is_postgres
        else "select cast(strftime('%s', 'now') as integer) * 1000 as now"
    )

    assert abs(row["now"] - other["now"]) < 5_000
