"""The engine on each database: every test that takes `bed` runs twice, each time on empty tables.

On PostgreSQL they share the tables of the run, and no commit waits for the disk; what a commit promises is proven by
tests of their own (`test_schema`, `test_postgres_fixture`, and those that kill servers).
Async tests run on one loop for the whole session, so that a module can keep its connections.
"""

import asyncio
import inspect
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.store import Store
from telecine.store.open import bring_up_to_date, open_store
from tests.support.builders import NOW
from tests.support.engine_fixture import Bed
from tests.support.interleaver import close_steppers
from tests.support.postgres import fresh_schema
from tests.support.scene import Scene, execute

DATABASES = {
    "sqlite": "sqlite_database",
    "postgres": "postgres_database",
    "postgres alone": "postgres_database_of_its_own",  # for tests that change the tables or fill them to the brim
}


@pytest.fixture(scope="session")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    runner: asyncio.Runner = pyfuncitem._request.getfixturevalue("runner")
    runner.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


async def opened(url: str) -> Store:
    store = open_store(url, dice=random.Random(1))
    await bring_up_to_date(store, url)
    return store


@pytest.fixture(scope="module")
def postgres_store(runner: asyncio.Runner, postgres_schema_url: str) -> Iterator[Store]:
    """Tables for one module. To make and to drop them costs as much as many tests: most share those of the run."""
    store = runner.run(opened(postgres_schema_url))
    yield store
    runner.run(store.close())


@pytest.fixture(scope="session")
def tables_of_the_run(runner: asyncio.Runner, postgres_url: str) -> Iterator[tuple[str, Store]]:
    """Tables on PostgreSQL that tests share, one after the other. Nothing of theirs must outlive a power cut."""
    with fresh_schema(postgres_url) as schema:
        url = f"{schema}&synchronous_commit=off"
        store = runner.run(opened(url))
        yield url, store
        close_steppers()
        runner.run(store.close())


@pytest.fixture(scope="session")
def sqlite_template(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "telecine.db"
    runner.run(runner.run(opened(f"sqlite:///{path}")).close())
    return path


@pytest.fixture
def sqlite_database(runner: asyncio.Runner, sqlite_template: Path, sqlite_url: str) -> Iterator[tuple[str, Store]]:
    shutil.copy(sqlite_template, sqlite_url.removeprefix("sqlite:///"))
    store = runner.run(opened(sqlite_url))
    runner.run(execute(store, f"update pulse set at = {NOW}"))
    yield sqlite_url, store
    runner.run(store.close())


@pytest.fixture
def postgres_database(runner: asyncio.Runner, tables_of_the_run: tuple[str, Store]) -> tuple[str, Store]:
    runner.run(Scene(*tables_of_the_run).clean())
    return tables_of_the_run


@pytest.fixture
def postgres_database_of_its_own(runner: asyncio.Runner, postgres_url: str) -> Iterator[tuple[str, Store]]:
    with fresh_schema(postgres_url) as url:
        store = runner.run(opened(url))
        runner.run(Scene(url, store).clean())
        yield url, store
        runner.run(store.close())


@pytest.fixture(params=["sqlite", "postgres"])
def bed(request: pytest.FixtureRequest, runner: asyncio.Runner) -> Iterator[Bed]:
    bed = Bed(*request.getfixturevalue(DATABASES[request.param]))
    yield bed
    runner.run(bed.close_guests())
