"""Settings -> running parts. The only place that names backends."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from telecine.engine import Engine
from telecine.errors import SchemaMissing, Unreachable
from telecine.facts import SECOND
from telecine.settings import Settings
from telecine.store import Store
from telecine.store.migrate import newest
from telecine.store.open import Migratable, bring_up_to_date, check_schema, dialect_of, open_store
from telecine.world import World


@dataclass(frozen=True, slots=True)
class Parts:
    """What is open: the settings that it was made from, the database, the engine on it."""

    settings: Settings
    store: Store
    engine: Engine
    world: World


@asynccontextmanager
async def open_engine(
    settings: Settings, *, world: World | None = None, create: bool = True, check: bool = True
) -> AsyncIterator[Parts]:
    """Open the database and an engine on it; close both afterwards.

    An embedded SQLite database is migrated on the way, and made if there is none (with `create`); PostgreSQL, which
    others share, is refused while its schema is not the one of this release.
    """
    world = world or World()
    store = _open(settings, world, create)
    try:
        if check:
            await _settle_schema(store, settings.database_url)
        engine = Engine(store, world=world, lease=round(settings.lease_seconds * SECOND))
        yield Parts(settings, store, engine, world)
    finally:
        await store.close()


def _open(settings: Settings, world: World, create: bool) -> Store:
    url = settings.database_url
    if dialect_of(url) == "sqlite" and not create and not sqlite_path(url).exists():
        raise SchemaMissing(f"there is no database at {sqlite_path(url)}: `telecine migrate` makes it")
    try:
        return open_store(url, dice=world.dice, size=settings.pool_size)
    except (OSError, sqlite3.Error) as error:
        raise Unreachable(f"{sqlite_path(url)} cannot be opened: {error}") from error


def sqlite_path(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


async def migrate_database(settings: Settings) -> tuple[int | None, int]:
    """Bring the schema up to date; the version before and after."""
    url = settings.database_url
    store = _open(settings, World(), create=True)
    try:
        assert isinstance(store, Migratable)
        before = await store.schema_version()
        await bring_up_to_date(store, url)
        return before, newest(dialect_of(url))
    finally:
        await store.close()


async def _settle_schema(store: Store, url: str) -> None:
    if dialect_of(url) == "sqlite":
        await bring_up_to_date(store, url)
    else:
        await check_schema(store, url)
