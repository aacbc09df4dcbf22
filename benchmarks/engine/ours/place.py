"""A database of ours, opened as a user would, and questions to it from outside."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import asyncpg
import uvloop

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance.audit import Auditor
from telecine.settings import Settings
from telecine.wiring import Parts, migrate_database, open_engine

T = TypeVar("T")

DONE = "select count(*) from job where outcome = 'completed'"
# One attempt, under the first token, with the one outcome: anything else was done twice or not at all.
AMISS = "select count(*) from attempt where token <> 1 or outcome <> 'done'"
ATTEMPTS = "select count(*) from attempt"


def settings_for(url: str, **given: Any) -> Settings:
    folder = Path(tempfile.gettempdir()) / "telecine-bench-scratch"
    return Settings(database_url=url, scratch=folder, artifacts_url=str(folder), **given)


def run(make: Callable[[], Coroutine[Any, Any, T]]) -> T:
    return uvloop.run(make())


@asynccontextmanager
async def opened(url: str, **given: Any) -> AsyncIterator[Parts]:
    settings = settings_for(url, **given)
    await migrate_database(settings)
    async with open_engine(settings) as parts:
        yield parts


async def at_rest(url: str) -> None:
    """Before the clock: what a database that was filled just now would do to itself soon anyway."""
    if url.startswith("postgres"):
        connection = await asyncpg.connect(url)
        await connection.execute("vacuum analyze")
        await connection.close()


class Outsider:
    """Asks for numbers over a connection of its own, which stays open, as the peers' outsiders do."""

    def __init__(self, url: str) -> None:
        self._runner = asyncio.Runner()
        self._postgres: Any = None
        self._sqlite: sqlite3.Connection | None = None
        if url.startswith("postgres"):
            self._postgres = self._runner.run(asyncpg.connect(url))
        else:
            self._sqlite = sqlite3.connect(url.removeprefix("sqlite:///"))

    def ask(self, question: str) -> int:
        if self._sqlite is not None:
            return int(self._sqlite.execute(question).fetchone()[0])
        return int(self._runner.run(self._postgres.fetchval(question)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._sqlite is not None:
            self._sqlite.close()
        else:
            self._runner.run(self._postgres.close())
        self._runner.close()


def is_sound(url: str, jobs: int) -> bool:
    """One attempt and one outcome per job, and every derived column as its rows say."""

    async def look() -> bool:
        async with open_engine(settings_for(url)) as parts:
            return not await Auditor(parts.store, GraphCache()).look_at_everything(batch=5_000)

    with Outsider(url) as outsider:
        once = outsider.ask(ATTEMPTS) == jobs and outsider.ask(AMISS) == 0
    return once and run(look)
