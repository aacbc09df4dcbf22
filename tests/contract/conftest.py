"""The engine on each database: every test that takes `bed` runs twice, each time on empty tables.

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
from tests.bed import Bed


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
    store = runner.run(opened(postgres_schema_url))
    yield store
    runner.run(store.close())


@pytest.fixture(scope="session")
def sqlite_template(runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "telecine.db"
    runner.run(runner.run(opened(f"sqlite:///{path}")).close())
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def bed(request: pytest.FixtureRequest, runner: asyncio.Runner, sqlite_url: str) -> Iterator[Bed]:
    if request.param == "postgres":
        bed = Bed(request.getfixturevalue("postgres_schema_url"), request.getfixturevalue("postgres_store"))
    else:
        shutil.copy(request.getfixturevalue("sqlite_template"), sqlite_url.removeprefix("sqlite:///"))
        bed = Bed(sqlite_url, runner.run(opened(sqlite_url)))
    runner.run(bed.clean())
    yield bed
    runner.run(bed.close_guests())
    if request.param == "sqlite":
        runner.run(bed.store.close())
