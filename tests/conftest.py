"""Fixtures for every kind of test: real databases, none of them mocked."""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests.postgres import fresh_schema, shared_postgres
from tests.redis import shared_redis

# A busy machine is no fault of the code: no test passes or fails by time.
hypothesis.settings.register_profile("telecine", deadline=None)
hypothesis.settings.load_profile("telecine")


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """One PostgreSQL for the whole run, started on first use."""
    given = os.environ.get("TELECINE_TEST_POSTGRES_URL")
    if given:
        yield given
        return
    with shared_postgres() as url:
        yield url


@pytest.fixture(scope="module")
def postgres_schema_url(postgres_url: str) -> Iterator[str]:
    """A fresh schema per test module, as the search path of its URL."""
    with fresh_schema(postgres_url) as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A database file that does not exist yet."""
    return f"sqlite:///{tmp_path}/telecine.db"


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """One Redis for the whole run, started on first use."""
    with shared_redis() as url:
        yield url
