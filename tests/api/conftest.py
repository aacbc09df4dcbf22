"""The API on each database: `front` is the application in this process, `tests.api.server` one of its own."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.settings import Settings
from tests.api.in_process_server import Front
from tests.contract.conftest import postgres_store, pytest_pyfunc_call, runner, sqlite_template, tables_of_the_run

__all__ = ["postgres_store", "pytest_pyfunc_call", "runner", "sqlite_template", "tables_of_the_run"]


@pytest.fixture(params=["sqlite", "postgres"])
def front(request: pytest.FixtureRequest, runner: asyncio.Runner, sqlite_url: str, tmp_path: Path) -> Iterator[Front]:
    """A server without a socket, on empty tables."""
    if request.param == "postgres":
        url, _ = request.getfixturevalue("tables_of_the_run")  # `Front` empties them
    else:
        shutil.copy(request.getfixturevalue("sqlite_template"), sqlite_url.removeprefix("sqlite:///"))
        url = sqlite_url
    settings = Settings(
        database_url=url,
        artifacts_url=str(tmp_path / "artifacts"),
        scratch=tmp_path / "scratch",
        uploads=tmp_path / "uploads",
        slots=1,
        upload_reserve_bytes=0,
        **getattr(request, "param_settings", {}),
    )
    front = Front(settings)
    runner.run(front.open(is_empty=request.param == "sqlite"))
    yield front
    runner.run(front.close())
