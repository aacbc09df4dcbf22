"""Events, in the order in which they became true, from any number on.

PostgreSQL gives ids before transactions commit, so a reader who remembers the highest id would miss whoever commits
late. The public number `seq` is therefore given after the commit, by whichever reader comes first:

    reader   look ── nothing without a number? ──────────────────────────────────────────▶ read on
               └──── some ──▶ lock, number what is committed, commit ──▶ look again ─────▶ read on

Two readers take turns by a lock that lasts for one transaction, so numbers become visible in their order and
without gaps. An open transaction delays its own events and nobody else's. In SQLite one writes at a time,
so the id of an event is its number and there is nothing to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass

from telecine.engine.queries.job_view import loads
from telecine.facts import Instant, Json
from telecine.store import Ask, Row, Rows, Steps, Store
from telecine.world import World

AT_ONCE = 500
NUMBERED_AT_ONCE = 5_000
POLL = 1.0
HEARTBEAT = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that became true. `stage` is a name; it and the task's `position` are gone once the job is archived."""

    seq: int
    at: Instant
    kind: str
    job_id: int | None
    task_id: int | None
    stage: str | None
    token: int | None
    worker: int | None
    data: Json
    position: int | None = None


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events, and the number after which to ask next."""

    events: tuple[Event, ...]
    seq: int


@dataclass(frozen=True, slots=True)
class Reset:
    """What was asked for is no longer there (pruned, or a backup was restored): take a snapshot, go on after `seq`."""

    seq: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Nothing happened, and the line is alive. Everything up to `seq` was given."""

    seq: int


Wait = Callable[[float], Awaitable[object]]


class Stream:
    """The events of one database."""

    def __init__(self, store: Store, *, world: World | None = None) -> None:
        self._store = store
        self._mono = (world or World()).mono

    async def after(self, seq: int, *, job_id: int | None = None, limit: int = AT_ONCE) -> EventBatch | Reset:
        """Up to `limit` events with higher numbers, of all jobs or of one."""
        rows = await self._store.read(lambda: _look(seq, job_id, limit))
        while rows[0]["unnumbered"] and len(_events(rows)) < limit:
            more = await self.number()
            rows = await self._store.read(lambda: _look(seq, job_id, limit))
            if more < NUMBERED_AT_ONCE:
                break
        return _answer(rows, seq, limit)

    async def number(self, wanted: int = NUMBERED_AT_ONCE) -> int:
        """Give numbers to events that have none; how many got one."""
        return await self._store.run(lambda: numbering(wanted))

    async def newest(self) -> int:
        """The number after which everything is still to come."""
        while await self.number() >= NUMBERED_AT_ONCE:
            pass
        rows = await self._store.read(lambda: _look(0, None, 0))
        return int(rows[0]["newest"])

    async def oldest(self) -> int:
        """The number after which everything is still there."""
        rows = await self._store.read(lambda: _look(0, None, 0))
        return int(rows[0]["pruned"])

    async def follow(
        self,
        after: int | None = None,
        *,
        job_id: int | None = None,
        wait: Wait = asyncio.sleep,
        poll: float = POLL,
        heartbeat: float = HEARTBEAT,
    ) -> AsyncGenerator[Event | Heartbeat | Reset, None]:
        """All events after a number (None: from now on), as they come, for ever.

        `wait` returns after a time or earlier, when somebody rang; whatever it does, we look every `poll` seconds.
        """
        seq = await self.newest() if after is None else after
        said = self._mono()
        while True:
            batch = await self.after(seq, job_id=job_id)
            seq = batch.seq
            if isinstance(batch, Reset):
                yield batch
                said = self._mono()
                continue
            for event in batch.events:
                yield event
                said = self._mono()
            if len(batch.events) == AT_ONCE:
                continue
            if self._mono() - said >= heartbeat:
                yield Heartbeat(seq)
                said = self._mono()
            await wait(min(poll, max(0.0, said + heartbeat - self._mono())))


def numbering(wanted: int) -> Steps[int]:
    """The lock comes in a statement of its own: the next one must see what the reader before us has numbered."""
    yield Ask("event_lock", {})
    rows = yield Ask("event_number", {"wanted": wanted})
    return int(rows[0]["numbered"])


def _look(seq: int, job_id: int | None, wanted: int) -> Steps[Rows]:
    place = {"seq": seq, "wanted": wanted}
    rows: Rows
    if job_id is None:
        rows = yield Ask("event_after", place)
    else:
        rows = yield Ask("event_after_of_job", {**place, "job_id": job_id})
    return rows


def _events(rows: Rows) -> Rows:
    return [row for row in rows if row["seq"] is not None]


def _answer(rows: Rows, asked: int, limit: int) -> EventBatch | Reset:
    newest, pruned = rows[0]["newest"], rows[0]["pruned"]
    if not pruned <= asked <= newest:
        return Reset(newest)
    events = tuple(_event(row) for row in _events(rows))
    # A page that is not full holds all that there is, so the next question need not begin before the newest.
    return EventBatch(events, events[-1].seq if len(events) == limit and events else newest)


def _event(row: Row) -> Event:
    same = ("seq", "at", "kind", "job_id", "task_id", "stage", "token", "worker", "position")
    return Event(**{name: row[name] for name in same}, data=loads(row["data"]))
