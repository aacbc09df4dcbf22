"""What goes out to Redis, gathered and sent in the background: one pipeline at a time.

The first goes at once; then lanes ring at most every 10 ms, and what is less urgent (news of events, hints to take
back) goes with them, or every 50 ms. Nobody who rings waits for anything. What cannot be sent rings on the
database's bell instead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from redis.asyncio import Redis
from redis.exceptions import ReadOnlyError

from telecine.dispatch import Bell
from telecine.dispatch.hints import OFFERED, Hints, LaneHead
from telecine.dispatch.redis_pool import RedisPool, RedisUnavailable
from telecine.dispatch.task_end import end

SPACING = 0.010
UNHURRIED = 0.040
GOODBYE_SECONDS = 1.0
# A lane with a backlog has hints enough for a while: its head is read no more often than this.
BACKLOG_SECONDS = 0.1
MAX_GONE = 1_000
# What was offered lately is not offered again: it may have been taken, and would only lead astray.
MAX_KNOWN = 8_192

# Reads the heads of lanes, so many of each, in the order in which they would be claimed.
Look = Callable[[Sequence[str], int], Awaitable[Sequence[LaneHead]]]


@dataclass(slots=True)
class SendBatch:
    """What is to be sent next."""

    lanes: set[str] = field(default_factory=set)
    gone: dict[str, list[int]] = field(default_factory=dict)
    news: bool = False

    def __bool__(self) -> bool:
        return bool(self.lanes or self.gone or self.news)


@dataclass(frozen=True, slots=True)
class Channels:
    """Where rings are heard: one channel for lanes, one for events."""

    lanes: str
    events: str

    @classmethod
    def of(cls, namespace: str) -> Channels:
        return cls(f"telecine:{namespace}:lanes", f"telecine:{namespace}:events")


class RedisSender:
    """`me` is what a process calls itself, so that it does not listen to its own words."""

    def __init__(
        self, line: RedisPool, hints: Hints, look: Look, instead: Bell, *, me: str, channels: Channels
    ) -> None:
        self.sent = 0
        self._line, self._hints, self._look, self._instead = line, hints, look, instead
        self._me, self._channels = me, channels
        self._bag = SendBatch()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._talk: asyncio.Task[None] | None = None
        self._backlog: dict[str, float] = {}
        self._known: dict[int, None] = {}
        self._closed = False
        self._rung = asyncio.Event()
        hints.spent = self.withdraw

    # -- from any thread -----------------------------------------------------------------------------

    def ring(self, lanes: Iterable[str]) -> None:
        self._later(lambda: self._note_lanes(lanes))

    def tell(self) -> None:
        """Events were written."""
        self._later(self._note_news)

    def withdraw(self, gone: Mapping[str, Sequence[int]]) -> None:
        self._later(lambda: self._note_gone(gone))

    def _note_lanes(self, lanes: Iterable[str]) -> None:
        self._bag.lanes.update(lanes)
        self._rung.set()

    def _note_news(self) -> None:
        self._bag.news = True

    def _note_gone(self, gone: Mapping[str, Sequence[int]]) -> None:
        for lane, ids in gone.items():
            known = self._bag.gone.setdefault(lane, [])
            if len(known) < MAX_GONE:  # the rest is stale, which costs no more than a look
                known.extend(ids)

    def _later(self, note: Callable[[], None]) -> None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        self._loop = self._loop or running
        if self._closed or self._loop is None or self._loop.is_closed():
            return
        if running is self._loop:
            self._start(note)
            return
        with suppress(RuntimeError):  # closed in between: nobody is there any more
            self._loop.call_soon_threadsafe(self._start, note)

    # -- in the loop -----------------------------------------------------------------------------------

    def _start(self, note: Callable[[], None]) -> None:
        note()
        if self._talk is None or self._talk.done():
            self._talk = asyncio.get_running_loop().create_task(self._talk_on(), name="redis sender")

    async def _talk_on(self) -> None:
        while self._bag:
            bag, self._bag = self._bag, SendBatch()
            self._rung.clear()
            await self._send(bag)
            await asyncio.sleep(SPACING)
            if not self._closed:
                with suppress(TimeoutError):
                    async with asyncio.timeout(UNHURRIED):
                        await self._rung.wait()

    async def _send(self, bag: SendBatch) -> None:
        if self._line.is_open:
            heads = await self._heads(bag)
            try:
                await self._line.do(lambda redis: self._pipelined(redis, bag, heads))
            except RedisUnavailable:
                pass
            else:
                self.sent += bool(bag.lanes) + bag.news
                return
        self._instead.ring(bag.lanes)

    async def _pipelined(self, redis: Redis, bag: SendBatch, heads: Sequence[LaneHead]) -> None:
        """First the hints, then the rings: whoever wakes finds them. A refused hint does not silence the ring."""
        async with redis.pipeline(transaction=False) as pipeline:
            self._hints.withdraw(pipeline, bag.gone)
            self._hints.offer(pipeline, heads)
            if bag.lanes:
                pipeline.publish(self._channels.lanes, self._me)
            if bag.news:
                pipeline.publish(self._channels.events, self._me)
            answers = await pipeline.execute(raise_on_error=False)
        for error in answers:
            if isinstance(error, ReadOnlyError):
                raise error  # a copy that takes no writes, whose listeners are not ours: as good as none
            if isinstance(error, Exception):
                self._line.note(error)

    async def _heads(self, bag: SendBatch) -> Sequence[LaneHead]:
        """What is new near the heads of the lanes that rang."""
        now = asyncio.get_running_loop().time()
        lanes = {lane for lane in bag.lanes if self._backlog.get(lane, 0.0) <= now}
        if not lanes:
            return []
        try:
            async with asyncio.timeout(self._line.timeout):
                heads = await self._look(sorted(lanes), OFFERED)
        except Exception:
            # Without hints a ring is still a ring; a database that is away is told of by whoever needs it.
            return []
        for lane in lanes:
            full = sum(head.lane == lane for head in heads) >= OFFERED
            self._backlog[lane] = now + BACKLOG_SECONDS if full else 0.0
        fresh = [head for head in heads if head.id not in self._known]
        self._remember(fresh)
        return fresh

    def _remember(self, heads: Sequence[LaneHead]) -> None:
        for head in heads:
            self._known[head.id] = None
        for id_ in list(self._known)[: max(0, len(self._known) - MAX_KNOWN)]:
            del self._known[id_]

    async def close(self) -> None:
        """The last ring still goes out, if that takes no time."""
        self._closed = True
        self._rung.set()
        if self._talk is not None and not self._talk.done():
            done, _ = await asyncio.wait([self._talk], timeout=GOODBYE_SECONDS)
            if not done:
                await end(self._talk)
