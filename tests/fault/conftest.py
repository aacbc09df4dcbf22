"""Every fault is tried on both databases, and on children of both kinds."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.worker.media.fork_server import ForkServer
from tests.fault.child_fixture import DOUBLE, Stage
from tests.fault.worker_processes import Crew, crew
from tests.support.postgres import fresh_schema


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


@pytest.fixture(params=["started", "forked"])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Media children are started like any program, or forked by a fork server: nobody shall see a difference."""
    if request.param == "started":
        yield Stage(tmp_path)
        return
    nursery = ForkServer(DOUBLE)
    yield Stage(tmp_path, nursery)
    asyncio.run(nursery.close())
