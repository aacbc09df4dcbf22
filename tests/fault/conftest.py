"""Every fault is tried on both databases."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.crew import Crew, crew
from tests.postgres import fresh_schema


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A fresh database for one test."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    with fresh_schema(request.getfixturevalue("postgres_url")) as url:
        yield url


@pytest.fixture
def workers(url: str, tmp_path: Path) -> Iterator[Crew]:
    with crew(url, tmp_path) as own:
        yield own
        own.end()


@pytest.fixture
def workers_on_sqlite(sqlite_url: str, tmp_path: Path) -> Iterator[Crew]:
    with crew(sqlite_url, tmp_path) as own:
        yield own
