"""Databases that are ready for work."""

import asyncio
from collections.abc import Iterator

import pytest

from telecine.store.open import bring_up_to_date, open_store
from telecine.world import World
from tests.support.postgres import fresh_schema


async def prepare(url: str) -> None:
    store = open_store(url, dice=World().dice)
    await bring_up_to_date(store, url)
    await store.close()


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[str]:
    """The URL of a migrated schema of one's own."""
    with fresh_schema(postgres_url) as schema_url:
        asyncio.run(prepare(schema_url))
        yield schema_url


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shared_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database for all tests of a module, of each kind in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('database')}/telecine.db"
        return
    with fresh_schema(request.getfixturevalue("postgres_url")) as schema_url:
        asyncio.run(prepare(schema_url))
        yield schema_url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """A database of one's own, of each kind in turn."""
    return sqlite_url if request.param == "sqlite" else request.getfixturevalue("postgres")
