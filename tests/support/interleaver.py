"""Drive two transactions statement by statement on two connections, in every order that the database allows.

On PostgreSQL each side stops before every statement, and the schedule says who goes on. A statement that waits for a
lock of the other side is recognised by asking the server, and only the other side can then move. Schedules are
explored depth first: each run notes where it could have gone otherwise. On SQLite there is one writer, so
the orders are two: one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from telecine.errors import TelecineError
from telecine.store import Reserve, Steps
from telecine.store.connections import SETTINGS
from telecine.store.postgres import Postgres
from telecine.store.postgres_errors import CONTENDED
from tests.support.engine_fixture import Bed

Make = Callable[[], Steps[Any]]
# So short that a deadlock is found at once, so long that a wait for a lock is not mistaken for one.
LOCKS = {"lock_timeout": "10000", "deadlock_timeout": "50", "idle_in_transaction_session_timeout": "0"}
# Statements that commute with whatever the other side does: they add rows that nobody else looks at, read rows that
# never change, or write rows that this side has locked by an earlier statement. No gate stands before them.
INERT = {
    *(
        "event_say",
        "flow_get",
        "job_flow",
        "job_cancel",
        "open_stages",
        "task_add",
        "job_edit",
        "key_get",
        "kept_named",
    ),
    *("task_reopen", "stage_count", "job_reopen", "stage_reset", "losses_forget", "task_renew"),
}


class Deadlock(AssertionError):
    """Two transactions waited for each other: somebody took his locks in the wrong order."""


@dataclass
class Side:
    """One transaction on its own connection. `at_gate` while it waits for permission to send its next statement."""

    name: str
    store: Postgres
    connection: asyncpg.Connection
    pid: int
    result: Any = None
    at_gate: asyncio.Event = field(default_factory=asyncio.Event)
    go: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None
    gated: bool = True
    blocked: bool = False

    def start(self, make: Make) -> None:
        self.task = asyncio.create_task(self._run(make))

    async def _run(self, make: Make) -> None:
        try:
            self.result = await self._once(make())
        except asyncpg.DeadlockDetectedError as error:
            self.result = Deadlock(str(error))
        except asyncpg.UniqueViolationError:
            # Two submits with one key: the production store runs the whole transaction again.
            self.result = await self._again(make)
        except TelecineError as error:
            self.result = error

    async def _again(self, make: Make) -> Any:
        self.gated = False
        try:
            return await self._once(make())
        except TelecineError as error:
            return error

    async def _once(self, steps: Steps[Any]) -> Any:
        step = next(steps)
        while isinstance(step, Reserve):
            step = steps.send(await self.store._do(self.connection, step))
        begun, said = False, set(INERT)
        try:
            while True:
                if not isinstance(step, Reserve):
                    # What was said before is locked by now, so to say it again is inert too.
                    if step.name not in said:
                        await self._gate()
                    said.add(step.name)
                    if not begun and not step.whole:
                        await self.connection.execute("begin")
                        begun = True
                rows = await self.store._do(self.connection, step)
                if not rows and not isinstance(step, Reserve) and step.name == "job_hold":
                    said.discard(step.name)  # it has locked nothing
                step = steps.send(rows)
        except StopIteration as end:
            if begun:
                await self._gate()
                await self.connection.execute("commit")
            return end.value
        except (TelecineError, *CONTENDED):
            if begun:
                await self.connection.execute("rollback")
            raise

    async def _gate(self) -> None:
        if not self.gated:
            return
        self.go.clear()
        self.at_gate.set()
        await self.go.wait()

    @property
    def is_done(self) -> bool:
        return self.task is not None and self.task.done()

    @property
    def can_move(self) -> bool:
        return self.at_gate.is_set() and not self.is_done

    def move(self) -> None:
        self.at_gate.clear()
        self.go.set()

    async def settled(self, watch: asyncpg.Connection, other: int) -> None:
        """Return when the side stands at its gate, is done, or waits for the other: a vacuum in its way soon goes."""
        assert self.task is not None
        while not self.is_done and not self.at_gate.is_set():
            if not self.blocked:
                gate = asyncio.create_task(self.at_gate.wait())
                await asyncio.wait({self.task, gate}, timeout=0.003, return_when=asyncio.FIRST_COMPLETED)
                gate.cancel()
                if self.is_done or self.at_gate.is_set():
                    return
            self.blocked = await watch.fetchval("select $2::integer = any (pg_blocking_pids($1))", self.pid, other)
            if self.blocked:
                return


@dataclass(frozen=True)
class Outcome:
    """How one order went: who moved when, who had ended first, and what each side got."""

    order: str
    ended: str
    first: Any
    second: Any


class Stepper:
    """Runs one order of two transactions on PostgreSQL."""

    def __init__(self, store: Postgres, connections: Sequence[asyncpg.Connection]) -> None:
        self._store = store
        self._first, self._second, self._watch = connections

    async def run(self, first: Make, second: Make, schedule: str) -> tuple[Outcome, list[str]]:
        """Follow `schedule` ("a", "b", …) as far as it goes, then let the first side go on whenever it can.

        Returns also the schedules that would have gone otherwise after the given one.
        """
        sides = {
            "a": Side("a", self._store, self._first, self._first.get_server_pid()),
            "b": Side("b", self._store, self._second, self._second.get_server_pid()),
        }
        for side, make in zip(sides.values(), (first, second), strict=True):
            side.start(make)
        order, ended, others = "", "", []
        while not all(side.is_done for side in sides.values()):
            await sides["a"].settled(self._watch, sides["b"].pid)
            await sides["b"].settled(self._watch, sides["a"].pid)
            # Whoever moved last has ended before the one that waited for it.
            turn = order[-1:] + "".join(name for name in sides if name != order[-1:])
            ended += "".join(name for name in turn if sides[name].is_done and name not in ended)
            able = [name for name, side in sides.items() if side.can_move]
            if not able:
                await asyncio.sleep(0)
                continue
            chosen = schedule[len(order)] if len(order) < len(schedule) else able[0]
            assert chosen in able, f"schedule {schedule} cannot be repeated: {order}, then {able}"
            if len(order) >= len(schedule):
                others += [order + name for name in able if name != chosen]
            order += chosen
            sides[chosen].move()
        for side in sides.values():
            assert side.task is not None
            side.task.result()
            if isinstance(side.result, Deadlock):
                raise Deadlock(f"order {order}: {side.result}")
        turn = order[-1] + "".join(name for name in sides if name != order[-1])
        ended += "".join(name for name in turn if name not in ended)
        return Outcome(order, ended, sides["a"].result, sides["b"].result), others


_idle: dict[str, list[asyncpg.Connection]] = {}


@asynccontextmanager
async def stepper(bed: Bed) -> AsyncIterator[Stepper]:
    """Its connections serve one scene after the other: to open three costs as much as to play in many orders."""
    assert isinstance(bed.store, Postgres)
    settings = {**SETTINGS, **LOCKS}
    connections = _idle.pop(bed.url, None)
    if connections is None:
        connections = [await asyncpg.connect(bed.url, server_settings=settings) for _ in range(3)]
    try:
        yield Stepper(bed.store, connections)
    except BaseException:
        _end(connections)
        raise
    assert not any(connection.is_in_transaction() for connection in connections)
    _idle[bed.url] = connections


def close_steppers() -> None:
    while _idle:
        _end(_idle.popitem()[1])


def _end(connections: Sequence[asyncpg.Connection]) -> None:
    for connection in connections:
        connection.terminate()


async def sequential(bed: Bed, first: Make, second: Make, order: str) -> Outcome:
    """One after the other, as SQLite does."""
    results: dict[str, Any] = {}
    for name in order:
        try:
            results[name] = await bed.store.run(first if name == "a" else second)
        except TelecineError as error:
            results[name] = error
    return Outcome(order, order, results["a"], results["b"])
