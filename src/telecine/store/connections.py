"""A few PostgreSQL connections, kept open and replaced when they break.

asyncpg's own pool resets a connection at every release, a round trip that we do not need: nothing of
ours leaves session state behind, so a transaction pooler between us and the server is fine too.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import asyncpg

from telecine.errors import StoreError, Unreachable
from telecine.store.postgres_errors import StatementNotSent, is_fatal, translated

SETTINGS = {
    "application_name": "telecine",
    "lock_timeout": "2000",
    "idle_in_transaction_session_timeout": "5000",
    # Every statement of ours is an index walk; a table that was never analysed must not tempt the planner.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "jit": "off",
}
# What writes is planned once: with the arrays in sight the planner would do it anew at every call, for milliseconds.
# And it follows the order of the index, in which rows are locked: a bitmap would take them as they lie.
WRITING = {**SETTINGS, "plan_cache_mode": "force_generic_plan", "enable_bitmapscan": "off"}
CONNECT_SECONDS = 10.0
COMMAND_SECONDS = 60.0


class PooledConnection(asyncpg.Connection):
    """A connection that ends when asyncpg itself fails on it: in which state it is then, nobody knows.

    PostgreSQL may end a session while it is idle. If its last words come before the end of the stream, the connection
    looks open, and asyncpg fails at the next statement with an error of its own, or with one of the transport. What
    PostgreSQL answers to a statement stays as it is; `Loan` translates it.
    """

    __slots__ = ()

    async def execute(self, *args: Any, **more: Any) -> str:
        try:
            return await super().execute(*args, **more)
        except asyncpg.PostgresError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    async def fetch(self, *args: Any, **more: Any) -> list[Any]:
        try:
            return await super().fetch(*args, **more)  # type: ignore[no-any-return]
        except asyncpg.PostgresError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    async def fetchval(self, *args: Any, **more: Any) -> Any:
        try:
            return await super().fetchval(*args, **more)
        except asyncpg.PostgresError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    async def fetchrow(self, *args: Any, **more: Any) -> Any:
        try:
            return await super().fetchrow(*args, **more)
        except asyncpg.PostgresError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> StoreError:
        found = translated(error)
        if isinstance(found, Unreachable):
            end_now(self)
        return found


class Connections:
    """At most `size` connections; a borrower who finds none waits."""

    def __init__(self, url: str, size: int, settings: Mapping[str, str] = SETTINGS) -> None:
        self.size = size
        self._url = url
        self._settings = dict(settings)
        self._idle: list[tuple[str, PooledConnection]] = []  # with what each was used for last
        self._free = asyncio.Semaphore(size)
        self._pooled: bool | None = None  # None: nobody has connected yet

    @property
    def pooled(self) -> bool:
        """True behind a transaction pooler, which refuses or ignores session settings and named statements."""
        return bool(self._pooled)

    async def connect(self) -> PooledConnection:
        session = not self._pooled
        try:
            connection = await self._open(session=session)
            if self._pooled is None:
                self._pooled = not await self._has_settings(connection)
            if self._pooled is not session:
                return connection
            connection.terminate()
        except asyncpg.PostgresError as error:
            if not session or "startup parameter" not in str(error):
                raise Unreachable(f"PostgreSQL refused the connection: {error}") from error
            self._pooled = True
        except StoreError:
            raise
        except Exception as error:  # of the system, the network, the address, the driver
            raise Unreachable(f"PostgreSQL cannot be reached: {_why(error)}") from error
        return await self.connect()

    async def _has_settings(self, connection: PooledConnection) -> bool:
        """A pooler may take them and forget them. Asked without a statement that it would have to remember,
        so without an answer: what was forgotten makes it fail."""
        kept = f"current_setting('lock_timeout')::interval = '{self._settings['lock_timeout']} ms'"
        try:
            await connection.execute(f"select 1 / ({kept})::integer")
        except asyncpg.DivisionByZeroError:
            return False
        return True

    async def _open(self, *, session: bool) -> PooledConnection:
        return await asyncpg.connect(
            self._url,
            timeout=CONNECT_SECONDS,
            command_timeout=COMMAND_SECONDS,
            server_settings=self._settings if session else None,
            statement_cache_size=256 if session else 0,
            connection_class=PooledConnection,
        )

    def borrow(self, use: str = "") -> Loan:
        """For the same `use` the same connection, if it is free: it has the statement's plan already."""
        return Loan(self, use)

    async def take(self, use: str) -> PooledConnection:
        """Wait until there is one; whoever takes one gives it back."""
        await self._free.acquire()
        try:
            while self._idle:
                same = [place for place, (last, _) in enumerate(self._idle) if last == use]
                _, connection = self._idle.pop(same[-1] if same else -1)
                if not connection.is_closed():
                    return connection
            return await self.connect()
        except BaseException:
            self._free.release()
            raise

    def give_back(self, connection: PooledConnection, use: str, error: BaseException | None) -> None:
        try:
            if _is_sound(connection, error):
                self._idle.append((use, connection))
            else:
                # What it was doing is unknown: a closed connection can leave nothing half open.
                end_now(connection)
        finally:
            self._free.release()

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, connection in idle:
            try:
                await connection.close(timeout=2)
            except Exception:  # a connection that is broken already has nothing to say goodbye to
                end_now(connection)


class Loan:
    """A borrowed connection. A class, since every word is said over one: a generator takes three times as long."""

    __slots__ = ("_connection", "_owner", "_use")

    def __init__(self, owner: Connections, use: str) -> None:
        self._owner = owner
        self._use = use

    async def __aenter__(self) -> PooledConnection:
        self._connection = await self._owner.take(self._use)
        return self._connection

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._owner.give_back(self._connection, self._use, error)
        if isinstance(error, asyncpg.PostgresError):
            raise translated(error) from error


def end_now(connection: asyncpg.Connection) -> None:
    """Abort it; a transport that is gone already may complain."""
    with suppress(Exception):
        connection.terminate()


def _is_sound(connection: PooledConnection, error: BaseException | None) -> bool:
    """Whether the next borrower may have it: idle, outside of a transaction, and its session goes on."""
    if error is None:
        return True
    if not isinstance(error, Exception) or isinstance(error, StatementNotSent) or is_fatal(error):
        return False
    return not connection.is_closed() and not connection.is_in_transaction()


def _why(error: Exception) -> str:
    """The system's own words, and where it was asked; asyncio tells that as a tuple."""
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {CONNECT_SECONDS:g} s"
    failed = re.findall(r"\[Errno (\d+)\] Connect call failed \('([^']+)', (\d+)", str(error))
    if failed:  # of a host with several addresses, all are told
        return ", ".join(f"{os.strerror(int(number))} ({host}, port {port})" for number, host, port in failed)
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
