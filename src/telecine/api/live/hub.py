"""All live connections of one server, fed by one reader of the event table.

    event table ──▶ one reader ──▶ ring of the last events ──▶ every connection, from its own place
         ▲           bell, poll                                     │
         └──────────── whoever is further back than the ring ◀──────┘

A connection is a place in the order of events, not a queue: who reads slowly is asked less often and costs no memory,
who comes back with the id of its last event goes on exactly there. The reader begins with the first connection, and
ends with the last.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, OrderedDict

from telecine.api.http.context import ServerContext
from telecine.api.live.encoders import EventLine, passing
from telecine.api.live.filters import EventFilter, StreamPosition
from telecine.api.live.fleet import FleetWatch
from telecine.api.live.periodic import ALIVE, KEYS, PeriodicUpdates
from telecine.api.live.reader import StreamReader
from telecine.api.live.ring import EventRing, Given, worded
from telecine.api.live.sse_events import ENDS
from telecine.engine.events.event_context import DescribedEvent, EventPage
from telecine.engine.events.stream import Reset
from telecine.engine.queries.view_models import Subject
from telecine.errors import StoreError, TooMany

log = logging.getLogger(__name__)

# How far back the ring reaches at the start: after a restart all readers come back at once.
HEADSTART = 2_000
AT_ONCE = 500
# Pauses between two looks at the table, in seconds: while events come, and when none have come for a while.
BUSY_LOOK, IDLE_LOOK = 0.03, 0.25
READING = "reading of events"
BUSY_FOR = 5.0
# So many may read the table by themselves at once, and so many events each in one go.
TABLE_READS, FROM_TABLE = 4, 100
MAX_ENDED = 5_000


class Hub:
    def __init__(self, house: ServerContext) -> None:
        engine = house.engine
        self.house = house
        self.announcer = engine.announcer()
        self.ring = EventRing()
        self.fleet = FleetWatch()
        self.readers: set[StreamReader] = set()
        # In seconds: after how long a quiet stream shows life, and how often keys are looked at again.
        self.alive_after, self.key_check = ALIVE, KEYS
        self._by_key: Counter[str] = Counter()
        self._table = asyncio.Semaphore(TABLE_READS)
        self._ended: OrderedDict[int, None] = OrderedDict()
        self._ready = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    # -- connections -----------------------------------------------------------------------------

    async def join(self, reader: StreamReader) -> None:
        """One more; `TooMany` if its key has too many already."""
        key_id, most = reader.caller.key_id, self.house.settings.max_streams_per_key
        if self._by_key[key_id] >= most:
            raise TooMany(f"this key has {most} event streams open, which is the limit: close one first", 5.0)
        self._by_key[key_id] += 1
        self.readers.add(reader)
        reader.said_at = self.house.world.mono()
        if self.house.closing.is_set():
            reader.end("closing")
            return
        if self._running is None or self._running.done():
            self._ready = asyncio.Event()
            self._running = asyncio.create_task(self._run(self._ready), name="live events")
        try:
            await self._ready.wait()
        except asyncio.CancelledError:
            self.leave(reader)
            raise

    def leave(self, reader: StreamReader) -> None:
        if reader in self.readers:
            self.readers.discard(reader)
            self._by_key -= Counter([reader.caller.key_id])
        if not self.readers and self._running is not None:
            self._running.cancel()
            self._running = None

    async def given(self, reader: StreamReader) -> Given | Reset:
        """What comes next for this reader; from the table if it is further back than the ring, or further on."""
        if self.ring.holds(reader.place):
            return self.ring.give(reader.voice, reader.wanted, reader.place)
        async with self._table:
            wanted, place = reader.wanted, reader.place
            found = await self.announcer.after(place.seq, job_id=wanted.job, limit=FROM_TABLE)
        if isinstance(found, Reset):
            return found
        return worded(iter(found.told), reader.voice, wanted, place, found.seq, whole=True)

    async def newest(self) -> int:
        return await self.house.engine.events.newest()

    # -- the one reader --------------------------------------------------------------------------

    async def _run(self, ready: asyncio.Event) -> None:
        closing = asyncio.create_task(self.house.closing.wait())
        duties = [asyncio.create_task(self._read_on(ready)), asyncio.create_task(PeriodicUpdates(self).run(ready))]
        try:
            await asyncio.wait([closing, *duties], return_when=asyncio.FIRST_COMPLETED)
            for duty in duties:
                if duty.done() and (error := duty.exception()) is not None:
                    log.error("live events have stopped: %s", error, exc_info=error)
            for reader in self.readers:
                reader.end("closing")
        finally:
            ready.set()
            for task in (closing, *duties):
                task.cancel()

    async def _read_on(self, ready: asyncio.Event) -> None:
        while not await self._begin():
            pass
        ready.set()
        news_at = self.house.world.mono()
        while True:
            count = await self._look()
            now = self.house.world.mono()
            news_at = now if count else news_at
            if count == AT_ONCE:
                await asyncio.sleep(0)
                continue
            # With many readers each batch costs more to pass on: then there are fewer, larger ones.
            pace = min(0.2, 0.01 + len(self.readers) / 5_000)
            await asyncio.sleep(pace)
            look = BUSY_LOOK if now - news_at < BUSY_FOR else IDLE_LOOK
            await (self.house.news or self.house.bell).wait(max(0.001, look - pace))

    async def _begin(self) -> bool:
        """Catch up with the table, or begin anew if it is far ahead."""
        try:
            newest = await self.newest()
            if self.ring.seq == 0 or not newest - HEADSTART <= self.ring.seq <= newest:
                self.ring.restart(max(0, newest - HEADSTART))
            while await self._look(quiet=True) == AT_ONCE:
                pass
            self.fleet.begin(await self.house.engine.queries.workers())
        except StoreError as error:
            await self._stumble(error)
            return False
        return True

    async def _look(self, *, quiet: bool = False) -> int:
        """Take what is new; how much that was."""
        try:
            found = await self.announcer.after(self.ring.seq, limit=AT_ONCE, in_order=True)
        except StoreError as error:
            await self._stumble(error)
            return 0
        self.house.engine.outages.found(READING)
        if isinstance(found, Reset):
            # Pruned under our feet, or an older backup was restored: each reader learns from the table where it stands.
            self.ring.restart(found.seq)
            self._wake_all()
            return 0
        if found.told or found.seq != self.ring.seq:
            self._take(found, quiet)
        return len(found.told)

    async def _stumble(self, error: StoreError) -> None:
        """Readers stay: they hear what they missed when the database is back."""
        self.house.engine.outages.lost(READING, error)
        await asyncio.sleep(1.0)

    def _take(self, page: EventPage, quiet: bool) -> None:
        before = self.ring.seq
        self.ring.add(page)
        if quiet:
            return
        for told in page.told:
            self._note(told)
        for reader in self.readers:
            if not reader.waits:
                continue
            if reader.place == StreamPosition(before) and not reader.extras:
                lines, place = self.ring.give(reader.voice, reader.wanted, reader.place)
                if not lines:  # nothing for it: it need not be woken to learn that
                    reader.place = place
                    continue
            reader.wake()

    def _note(self, told: DescribedEvent) -> None:
        """What follows from an event for lines that are none."""
        event = told.event
        for change in self.fleet.hear(told):
            self.tell_worker(change.state, change.worker, change.name)
        if event.job_id is None:
            return
        if event.kind in ENDS:
            self._ended[event.job_id] = None
            for reader in self.readers:
                reader.extras.pop(("job", event.job_id), None)
            while len(self._ended) > MAX_ENDED:
                self._ended.popitem(last=False)
        elif event.kind == "job.retried":
            self._ended.pop(event.job_id, None)

    def has_ended(self, job_id: int) -> bool:
        """Whether its end was told: progress that was seen before is old news then."""
        return job_id in self._ended

    def _wake_all(self) -> None:
        for reader in self.readers:
            reader.wake()

    # -- lines that are no events ----------------------------------------------------------------

    def tell_worker(self, state: str, worker: int, name: str | None) -> None:
        # Whether it is there and whether it works are two facts: one does not replace the other.
        fact = "liveness" if state in ("online", "offline") else "activity"
        for reader in self.readers:
            if reader.wanted.admits(None, None, None, worker):
                line = reader.voice.worker(state, worker, name)
                self._extra(reader, (fact, worker), passing((line,), reader.wanted))

    def tell_job(
        self, job_id: int, owner: str, subject: Subject | None, lines: dict[str, tuple[EventLine, ...]]
    ) -> None:
        """Lines by the name of the voice that says them."""
        made: dict[tuple[str, EventFilter], list[EventLine]] = {}
        for reader in self.readers:
            voice, wanted = reader.voice, reader.wanted
            if not wanted.admits(owner, job_id, subject, None):
                continue
            key = (voice.name, wanted)
            if key not in made:
                made[key] = passing(lines[voice.name], wanted)
            self._extra(reader, ("job", job_id), made[key])

    def tell(self, reader: StreamReader, key: str, line: EventLine) -> None:
        self._extra(reader, key, passing((line,), reader.wanted))

    def tell_back(self, reader: StreamReader, line: EventLine) -> None:
        """An answer to the reader itself, whatever it wants to hear."""
        self._extra(reader, "answer", [line])

    def _extra(self, reader: StreamReader, key: object, lines: list[EventLine]) -> None:
        if lines:
            reader.extras[key] = tuple(reader.voice.wire(line, None) for line in lines)
            reader.wake()


def hub_of(house: ServerContext) -> Hub:
    """The one of this server."""
    if "live" not in house.rooms:
        house.rooms["live"] = Hub(house)
    hub: Hub = house.rooms["live"]
    return hub
