"""A database of ours, opened as a user would, and questions to it from outside."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import uvloop

from telecine.engine.audit import Auditor
from telecine.engine.shelf import Shelf
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


def asked(url: str, question: str) -> int:
    """One number, over a connection of its own."""
    if not url.startswith("postgres"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        try:
            return int(connection.execute(question).fetchone()[0])
        finally:
            connection.close()

    async def ask() -> int:
        connection = await asyncpg.connect(url)
        try:
            return int(await connection.fetchval(question))
        finally:
            await connection.close()

    return asyncio.run(ask())


def is_sound(url: str, jobs: int) -> bool:
    """One attempt and one outcome per job, and every derived column as its rows say."""

    async def look() -> bool:
        async with open_engine(settings_for(url)) as parts:
            return not await Auditor(parts.store, Shelf()).look_at_everything(batch=5_000)

    return asked(url, ATTEMPTS) == jobs and asked(url, AMISS) == 0 and run(look)
