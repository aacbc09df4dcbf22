"""Open a database by its address, and bring its schema up to date."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from telecine.errors import BadSpec
from telecine.private_files import make_private_file, make_private_folder
from telecine.retry import Dice
from telecine.store import Store, migrate
from telecine.store.postgres import Postgres
from telecine.store.sqlite import Sqlite
from telecine.store.statements import Dialect


@runtime_checkable
class Migratable(Protocol):
    async def schema_version(self) -> int | None: ...

    async def apply(self, version: int, sql: str) -> None: ...


def dialect_of(url: str) -> Dialect:
    if url.startswith("sqlite:///"):
        return "sqlite"
    if url.startswith(("postgresql://", "postgres://")):
        return "postgres"
    scheme = url.partition(":")[0]  # not the whole address: it may hold a password
    raise BadSpec(
        f"database address starting with {scheme!r} is not understood; use sqlite:///path or postgresql://host/name"
    )


def open_store(url: str, *, dice: Dice, size: int = 4) -> Sqlite | Postgres:
    if dialect_of(url) == "postgres":
        return Postgres(url, dice=dice, size=size)
    path = Path(url.removeprefix("sqlite:///"))
    make_private_folder(path.parent)
    if path.name != ":memory:":
        make_private_file(path)
    return Sqlite(path)


async def bring_up_to_date(store: Store, url: str) -> list[int]:
    """Apply what is missing; the numbers that were applied."""
    assert isinstance(store, Migratable)
    dialect = dialect_of(url)
    current = await store.schema_version()
    applied = []
    for number, sql in migrate.pending(dialect, current).items():
        await store.apply(number, sql)
        applied.append(number)
    return applied


async def check_schema(store: Store, url: str) -> None:
    assert isinstance(store, Migratable)
    migrate.check(dialect_of(url), await store.schema_version())
