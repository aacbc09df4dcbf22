"""Run steps inside a transaction that belongs to the caller: his rows and ours commit together, or not at all.

The caller hands in an asyncpg connection or a sqlite3 connection to the same database, in a transaction. Our
steps run in a savepoint of it, so that a refused submit leaves nothing behind even if the caller goes on and
commits. Nobody is woken: what was committed is found by the next look.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from telecine.errors import BadSpec, StoreError
from telecine.store import Steps, Store, T
from telecine.store.postgres import TURNS, Postgres
from telecine.store.sqlite import Driver, Sqlite

# Which tables does this connection see? The same name in another schema has another oid.
_PLACE = "select current_database() as name, to_regclass('job_after')::oid::bigint as table_id"
_LEGACY = -1  # sqlite3.LEGACY_TRANSACTION_CONTROL, which Python 3.11 does not name

AsyncpgConnection = asyncpg.Connection | PoolConnectionProxy
Transaction = AsyncpgConnection | sqlite3.Connection


async def run_within(store: Store, transaction: Transaction, make: Callable[[], Steps[T]]) -> T:
    """Run the steps on the caller's connection; he commits or rolls back."""
    match store, transaction:
        case Sqlite(), sqlite3.Connection():
            return _on_sqlite(store, transaction, make)
        case Postgres(), asyncpg.Connection() | PoolConnectionProxy():
            return await _on_postgres(store, transaction, make)
    kind = f"{type(transaction).__module__}.{type(transaction).__qualname__}"
    wanted = "a sqlite3 connection" if isinstance(store, Sqlite) else "an asyncpg connection"
    raise BadSpec(f"a submit inside your own transaction needs {wanted} to the same database, not {kind}")


async def _on_postgres(store: Postgres, connection: AsyncpgConnection, make: Callable[[], Steps[T]]) -> T:
    if not connection.is_in_transaction():
        raise BadSpec("this connection is in no transaction: put `async with connection.transaction():` around it")
    await _check_place(store, connection)
    for turn in range(TURNS):
        try:
            async with connection.transaction():
                # A connection of a pool is a connection in all but its type.
                return await store.drive(cast(asyncpg.Connection, connection), make())
        except asyncpg.UniqueViolationError as error:
            # Somebody else committed the same dedupe key in between: the next look finds his job.
            if turn == TURNS - 1:
                raise StoreError(f"the database refused {TURNS} times in a row: {error}") from error
    raise AssertionError("unreachable: the last turn returns or raises")


async def _check_place(store: Postgres, connection: AsyncpgConnection) -> None:
    theirs = await connection.fetchrow(_PLACE)
    async with store.connections.borrow() as own:
        ours = await own.fetchrow(_PLACE)
    if theirs is None or ours is None or tuple(theirs) != tuple(ours):
        raise BadSpec(
            "this connection does not see Telecine's tables: it must go to the same database, with the same search_path"
        )


def _on_sqlite(store: Sqlite, connection: sqlite3.Connection, make: Callable[[], Steps[T]]) -> T:
    _check_file(store, connection)
    try:
        _take_write_lock(connection)
        connection.execute("savepoint telecine")
        try:
            value = _drive(store, connection, make)
        except BaseException:
            connection.execute("rollback to telecine")
            connection.execute("release telecine")
            raise
        connection.execute("release telecine")
        return value
    except sqlite3.OperationalError as error:
        raise StoreError(f"{store.path}: {error}; roll back and begin again with BEGIN IMMEDIATE") from error


def _drive(store: Sqlite, connection: sqlite3.Connection, make: Callable[[], Steps[T]]) -> T:
    """Our steps read columns by name; the caller's own idea of a row comes back afterwards."""
    before: Any = connection.row_factory
    connection.row_factory = sqlite3.Row
    try:
        driver = Driver(connection)
        driver.now = store.now
        return driver.drive(make())
    finally:
        connection.row_factory = before


def _take_write_lock(connection: sqlite3.Connection) -> None:
    """Ids are only safe to give while nobody else can write."""
    if connection.in_transaction:
        connection.execute("update pulse set at = at where false")
        return
    legacy = getattr(connection, "autocommit", _LEGACY) == _LEGACY
    if not legacy or connection.isolation_level is None:
        raise BadSpec("this connection is in no transaction: execute `BEGIN IMMEDIATE` first")
    # sqlite3 itself would open the transaction before the first insert; only earlier, and for writing.
    connection.execute("begin immediate")


def _check_file(store: Sqlite, connection: sqlite3.Connection) -> None:
    with closing(connection.cursor()) as cursor:
        cursor.row_factory = None
        files = {name: file for _, name, file in cursor.execute("pragma database_list")}
    main = files.get("main") or ""
    if not main or Path(main).resolve() != store.path.resolve():
        raise BadSpec(f"this connection is to {main or 'memory'}, not to {store.path}: it must be the same database")
