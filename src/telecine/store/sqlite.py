"""SQLite: one file, one writer thread, group commit.

All transactions go to one thread, which takes whatever is waiting, runs each in a savepoint of one
immediate transaction, and answers after the commit, so many small requests share one fsync and
`synchronous=FULL` stays affordable. Other processes on the same machine may do the same: they take
turns by SQLite's own lock. Readers have a connection of their own.
"""

from __future__ import annotations

import asyncio
import json
import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from telecine.errors import StoreError
from telecine.store import Ask, Columns, Reserve, Step, Steps, T, Write
from telecine.store.sqlite_errors import DRIVER, telling, translated
from telecine.store.statements import NOW, load

BUSY_SECONDS = 10.0
GROUP = 64
_CLOCK = "select " + NOW["sqlite"].replace(":now", "null")

Request = tuple[Callable[[], Steps[Any]], "Future[Any]"]


def connect(path: str | Path, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection with our durability: a power cut takes nothing that was acknowledged."""
    connection = sqlite3.connect(
        f"file:{path}?mode=ro" if readonly else f"file:{path}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.row_factory = sqlite3.Row
    if not readonly:
        connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("pragma temp_store = memory")
    return connection


class Driver:
    """Runs steps on a sqlite3 connection, in one go; the transaction is the caller's business."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.now: int | None = None
        self._connection = connection
        self._statements = load("sqlite")

    def drive(self, steps: Steps[T]) -> T:
        now = self.now if self.now is not None else self._connection.execute(_CLOCK).fetchone()[0]
        try:
            step = next(steps)
            while True:
                step = steps.send(self._do(step, now))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _do(self, step: Step, now: int) -> Any:
        match step:
            case Ask():
                params = plain(step.params, now)
                found: list[sqlite3.Row] = []
                for part in self._statements[step.name].parts:
                    found = self._connection.execute(part, params).fetchall()
                return found
            case Write():
                common = plain(step.common, now)
                for group, many in step.groups.items():
                    if rows := [{**row, **common} for row in rows_of(many)]:
                        for part in self._statements[f"{step.name}_{group}"].parts:
                            self._connection.executemany(part, rows)
                return []
            case Reserve():
                # Safe: we are the only writer until this transaction ends.
                sequence = "select coalesce(max(seq), 0) from sqlite_sequence where name = ?"
                first = 1 + self._connection.execute(sequence, (step.table,)).fetchone()[0]
                return list(range(first, first + step.count))


def plain(params: Mapping[str, Any], now: int) -> dict[str, Any]:
    """Lists travel as JSON."""
    return {"now": now, **{k: json.dumps(v) if isinstance(v, (list, tuple)) else v for k, v in params.items()}}


def rows_of(group: Sequence[Mapping[str, Any]] | Columns) -> Sequence[Mapping[str, Any]]:
    if not isinstance(group, Columns):
        return group
    return [dict(zip(group.lists, row, strict=True)) for row in zip(*group.lists.values(), strict=True)]


def statements_in(script: str) -> list[str]:
    """Split a script; `executescript` would commit behind our back."""
    found: list[str] = []
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if sqlite3.complete_statement(text):
            found.append(text)
            text = ""
    return found


class Sqlite:
    """A `Store` in one file."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._driver = Driver(connect(path))
        self._reader = Driver(connect(path))
        self._reading = threading.Lock()
        self._mailbox: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._write_on, name="telecine-sqlite", daemon=True)
        self._thread.start()

    @property
    def now(self) -> int | None:
        return self._driver.now

    @now.setter
    def now(self, value: int | None) -> None:
        self._driver.now = self._reader.now = value

    async def run(self, make: Callable[[], Steps[T]]) -> T:
        if self._closed:
            raise StoreError(f"{self.path} is closed")
        future: Future[T] = Future()
        self._mailbox.put((make, future))
        return await asyncio.wrap_future(future)

    async def read(self, make: Callable[[], Steps[T]]) -> T:
        return await asyncio.to_thread(self._read, make)

    def _read(self, make: Callable[[], Steps[T]]) -> T:
        with self._reading:
            try:
                return self._reader.drive(make())
            except Exception as error:
                if isinstance(error, DRIVER):
                    raise translated(error, self.path) from error
                raise

    async def close(self) -> None:
        self._closed = True
        self._mailbox.put(None)
        await asyncio.to_thread(self._thread.join)
        with self._reading:
            self._reader._connection.close()

    async def schema_version(self) -> int | None:
        with self._reading, telling(self.path):
            connection = self._reader._connection
            if not connection.execute("select 1 from sqlite_master where name = 'schema_version'").fetchone():
                return None
            return connection.execute("select max(version) from schema_version").fetchone()[0]  # type: ignore[no-any-return]

    async def apply(self, version: int, sql: str) -> None:
        """One migration and its version row in one transaction; of two at once the second finds it done."""
        mark = f"insert into schema_version values ({version}, ({_CLOCK}));"
        with self._reading, telling(self.path):
            connection = self._reader._connection
            connection.execute("begin immediate")
            try:
                if connection.execute("select 1 from sqlite_master where name = 'schema_version'").fetchone() and (
                    connection.execute("select 1 from schema_version where version >= ?", (version,)).fetchone()
                ):
                    return
                for statement in statements_in(sql + mark):
                    connection.execute(statement)
                connection.execute("commit")
            finally:
                if connection.in_transaction:
                    connection.execute("rollback")

    # -- the writer thread ---------------------------------------------------------------------

    def _write_on(self) -> None:
        closing = False
        while not closing:
            batch = [self._mailbox.get()]
            while len(batch) < GROUP and not self._mailbox.empty():
                batch.append(self._mailbox.get())
            closing = None in batch
            self._commit_together([request for request in batch if request is not None])
        self._driver._connection.close()
        while not self._mailbox.empty():  # whoever came at the same moment shall not wait for ever
            if (late := self._mailbox.get()) is not None:
                late[1].set_exception(StoreError(f"{self.path} is closed"))

    def _commit_together(self, batch: list[Request]) -> None:
        if not batch:
            return
        connection = self._driver._connection
        answers: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            connection.execute("begin immediate")
            for make, future in batch:
                answers.append((future, *self._in_savepoint(make)))
            connection.execute("commit")
        except Exception as error:
            with suppress(sqlite3.Error):  # a disk that fails may fail here, too; the next transaction begins anew
                if connection.in_transaction:
                    connection.execute("rollback")
            broken = translated(error, self.path)
            broken.__cause__ = error
            answers = [(future, None, broken) for _, future in batch]
        for future, value, failure in answers:
            # A caller that gave up has cancelled its future: its transaction stands all the same.
            if future.set_running_or_notify_cancel():
                future.set_exception(failure) if failure is not None else future.set_result(value)

    def _in_savepoint(self, make: Callable[[], Steps[Any]]) -> tuple[Any, BaseException | None]:
        connection = self._driver._connection
        connection.execute("savepoint request")
        try:
            value = self._driver.drive(make())
        except Exception as error:
            if not connection.in_transaction:
                raise  # SQLite gave up the whole transaction (disk full, I/O error): the neighbours are gone, too
            connection.execute("rollback to request")
            connection.execute("release request")
            return None, self._told(error)
        connection.execute("release request")
        return value, None

    def _told(self, error: Exception) -> Exception:
        """What the driver raised as an error of ours; what the steps raised stays as it is."""
        if not isinstance(error, DRIVER):
            return error
        told = translated(error, self.path)
        told.__cause__ = error
        return told
