"""PostgreSQL: READ COMMITTED, short transactions, row locks in a fixed order.

Deadlocks (40P01), serialisation failures (40001), lock time-outs (55P03) and unique violations (23505) run the
whole transaction again, at most five times, jittered. A broken connection is `Unreachable`: the caller does not know
whether its transaction was committed, and may repeat it, since every word is repeatable. Which error is what stands
in `telecine.triage`; `store/connections.py` and `store/postgres_errors.py` apply it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import asyncpg

from telecine.errors import StoreBroken, StoreError
from telecine.retry import Dice
from telecine.store import Ask, Columns, Doorbell, Reserve, Rows, Step, Steps, T, Write
from telecine.store.claim_cursor import ClaimCursor
from telecine.store.connections import SETTINGS, WRITING, Connections, PooledConnection, end_now
from telecine.store.postgres_errors import Contended, StatementNotSent
from telecine.store.statements import NOW, Statement, load

TURNS = 5
# What keeps a commit from notifying, and nothing else: somebody has not read for so long that there is no room for more
# news, or holds up all who have some. Nothing was committed.
MUTED = (asyncpg.ProgramLimitExceededError, asyncpg.LockNotAvailableError)
OLDEST_RELEASE = 15
MIGRATION_SECONDS = 86_400.0
MAX_AHEAD = 256
# Ids are the order in which lists show jobs, so nobody sits on a stock of them for longer than this.
STALE_SECONDS = 1.0


class Postgres:
    """A `Store` on a PostgreSQL server."""

    def __init__(self, url: str, *, dice: Dice, size: int = 4) -> None:
        self.now: int | None = None
        self.url = url
        self.doorbell: Doorbell | None = None
        self.connections = Connections(url, size, WRITING)
        self._readers = Connections(url, max(1, size // 2))
        self._dice = dice
        self._statements = load("postgres")
        self._claim_cursor = ClaimCursor(lambda: asyncio.get_running_loop().time())
        self._ids: dict[str, list[int]] = {"job": []}
        self._ahead = {"job": 1}
        self._fetched = {"job": 0.0}

    async def run(self, make: Callable[[], Steps[T]]) -> T:
        for turn in range(TURNS):
            try:
                return await self._sent(lambda: self._once(make()))
            except Contended as error:
                if turn == TURNS - 1:
                    raise _given_up(error) from error.__cause__
            await asyncio.sleep(0.005 * 2**turn * (0.5 + self._dice.random()))
        raise AssertionError("unreachable: the last turn returns or raises")

    async def read(self, make: Callable[[], Steps[T]]) -> T:
        return await self._sent(lambda: self._read(make()))

    async def _read(self, steps: Steps[T]) -> T:
        async with self._readers.borrow() as connection:
            if not self._readers.pooled:
                return await self.drive(connection, steps)
            return await self._within(connection, steps, SETTINGS)

    async def _sent(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask on another connection if one had ended unnoticed; each may have, and the last one is fresh."""
        for _ in range(self.connections.size):
            try:
                return await ask()
            except StatementNotSent:
                continue
        return await ask()

    async def _once(self, steps: Steps[T]) -> T:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        async with self.connections.borrow(step.table if isinstance(step, Reserve) else step.name) as connection:
            try:
                # Sequences are outside of transactions, so ids are fetched before one begins.
                while isinstance(step, Reserve):
                    step = steps.send(await self._reserve(connection, step))
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if step.whole and not self.connections.pooled:
                return _ending(steps, await self._do_all(connection, step))
            return await self._within(connection, steps, WRITING, first=step)

    async def _do_all(self, connection: PooledConnection, step: Ask | Write) -> Any:
        """A step that is a whole transaction. If it gives somebody work, the bell rings with its commit, if it can."""
        word = self.doorbell.word() if isinstance(step, Ask) and step.rings and self.doorbell is not None else None
        if word is None:
            return await self._do(connection, step)
        assert isinstance(step, Ask)
        assert self.doorbell is not None
        channel, payload = word
        ringing = Ask(f"{step.name}_ring", {**step.params, "channel": channel, "payload": payload})
        try:
            rows = await self._do(connection, ringing)
        except MUTED:
            return await self._do(connection, step)
        self.doorbell.said()
        return rows

    async def _within(
        self, connection: PooledConnection, steps: Steps[T], settings: Mapping[str, str], first: Step | None = None
    ) -> T:
        """A transaction. Behind a pooler the session is not ours, so it takes the settings along."""
        pooled = self.connections.pooled or self._readers.pooled
        await connection.execute(f"begin; {_locals(settings)}" if pooled else "begin")
        try:
            result = await self.drive(connection, steps, first=first)
        except Exception:
            await _roll_back(connection)
            raise
        await connection.execute("commit")
        return result

    async def drive(self, connection: asyncpg.Connection, steps: Steps[T], first: Step | None = None) -> T:
        """Run `steps` on a connection whose transaction is the caller's business."""
        try:
            step = next(steps) if first is None else first
            while True:
                step = steps.send(await self._do(connection, step))
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    async def _do(self, connection: asyncpg.Connection, step: Step) -> Any:
        match step:
            case Reserve():
                return await self._reserve(connection, step)
            case Ask(name="claim"):
                return await self._claim(connection, step)
            case Ask():
                return await self._ask(connection, step)
            case Write():
                statement = self._statements[step.name]
                return await connection.fetch(statement.text, *self._values(statement, columns(step)))

    async def _ask(self, connection: asyncpg.Connection, step: Ask) -> Any:
        statement = self._statements[step.name]
        return await connection.fetch(statement.text, *self._values(statement, step.params))

    async def _claim(self, connection: asyncpg.Connection, step: Ask) -> Any:
        sent = self._claim_cursor.apply(step)
        rows = await self._ask(connection, sent)
        self._claim_cursor.advance(sent, rows)
        return rows

    def _values(self, statement: Statement, params: Any) -> list[Any]:
        """A list that is missing is null, which `unnest` takes for an empty one."""
        given = {**params, "now": self.now}
        for name, comma in statement.lists.items():
            if name in given:
                given[name] = as_text(given[name], comma)
        return [given.get(name) for name in statement.params]

    async def _reserve(self, connection: asyncpg.Connection, step: Reserve) -> list[int]:
        """Ids from the sequence; who asks often gets some in advance, who asks once gets no gap."""
        clock = asyncio.get_running_loop().time
        if clock() - self._fetched[step.table] > STALE_SECONDS:
            self._ids[step.table], self._ahead[step.table] = [], 1
        # Others may take from the same stock, or add to it, while we wait: look again after every wait.
        while len(self._ids[step.table]) < step.count:
            ahead = self._ahead[step.table]
            self._ahead[step.table] = min(MAX_AHEAD, ahead * 2)
            fresh = f"select string_agg(nextval('{step.table}_id')::text, ' ') from generate_series(1, $1)"
            missing = max(step.count - len(self._ids[step.table]), ahead)
            self._fetched[step.table] = clock()
            self._ids[step.table].extend(map(int, (await connection.fetchval(fresh, missing)).split()))
        ids = self._ids[step.table]
        taken, self._ids[step.table] = ids[: step.count], ids[step.count :]
        return taken

    async def close(self) -> None:
        await self.connections.close()
        await self._readers.close()

    async def schema_version(self) -> int | None:
        async with self.connections.borrow() as connection:
            release = connection.get_server_version().major
            if release < OLDEST_RELEASE:
                raise StoreError(f"PostgreSQL {release} is too old: Telecine needs {OLDEST_RELEASE} or newer")
            if await connection.fetchval("select to_regclass('schema_version')") is None:
                return None
            return await connection.fetchval("select max(version) from schema_version")  # type: ignore[no-any-return]

    async def apply(self, version: int, sql: str) -> None:
        """One migration and its version row in one transaction; of two at once the second finds it done."""
        async with self.connections.borrow() as connection, connection.transaction():
            await connection.execute("set local lock_timeout = 0")
            await connection.execute("select pg_advisory_xact_lock(hashtext('telecine.migrate'))")
            known = await connection.fetchval(_IS_THERE)
            if known and await connection.fetchval("select 1 from schema_version where version >= $1", version):
                return
            await connection.execute(sql, timeout=MIGRATION_SECONDS)
            mark = f"insert into schema_version select $1, {NOW['postgres'].replace(':now', 'null')}"
            await connection.execute(mark, version)


# A scan, and not `to_regclass`: that remembers that there was none, also while we waited for who made it.
_IS_THERE = """
select exists (select from pg_catalog.pg_class where relname = 'schema_version' and pg_catalog.pg_table_is_visible(oid))
"""


def _locals(settings: Mapping[str, str]) -> str:
    return "; ".join(f"set local {name} = {value}" for name, value in settings.items() if name != "application_name")


async def _roll_back(connection: PooledConnection) -> None:
    """If that is not possible the connection is not used again, which is as good: what went wrong before is told."""
    if connection.is_closed():
        return
    try:
        await connection.execute("rollback")
    except Exception:
        end_now(connection)


def _given_up(error: Contended) -> StoreError:
    # A key that stays taken is no race any more, and hardly ever the value's fault: the statements are wrong.
    is_bug = isinstance(error.__cause__, asyncpg.UniqueViolationError)
    return (StoreBroken if is_bug else StoreError)(f"{error}, {TURNS} times in a row")


def columns(step: Write) -> dict[str, Any]:
    """Rows by group -> one array per column, named `group_column`; `unnest` fills a missing one with nulls."""
    found: dict[str, Any] = dict(step.common)
    for group, rows in step.groups.items():
        for column, values in by_column(rows).items():
            if values.count(None) < len(values):
                found[f"{group}_{column}"] = values
    return found


def by_column(rows: Sequence[Mapping[str, Any]] | Columns) -> Mapping[str, Sequence[Any]]:
    if isinstance(rows, Columns):
        return rows.lists
    return {column: [row[column] for row in rows] for column in rows[0]} if rows else {}


def as_text(items: Sequence[int | str | None], comma: str) -> str:
    text = comma.join(["" if item is None else str(item) for item in items])
    # An item that were taken for two would shift all that follow.
    assert text.count(comma) == max(0, len(items) - 1), f"an item holds {comma!r}"
    return text


def _ending(steps: Steps[T], rows: Rows) -> T:
    try:
        steps.send(rows)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("a whole statement must be the last step of its transaction")
