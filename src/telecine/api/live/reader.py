"""One connection: what it wants, how far it is, and what waits for it. Never more than a few lines wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from telecine.api.live.encoders import EventEncoder
from telecine.api.live.filters import EventFilter, StreamPosition
from telecine.api.live.ring import Given
from telecine.engine.accounts.keys import Caller
from telecine.engine.events.stream import Reset

if TYPE_CHECKING:
    from telecine.api.live.hub import Hub

Snapshot = Callable[[EventFilter, StreamPosition], Awaitable[bytes]]


@dataclass(frozen=True, slots=True)
class StreamStart:
    """What a reader begins with. `after` None: from now on."""

    after: StreamPosition | None = None
    snapshot: bool = False
    follow: bool = True


class StreamReader:
    """`extras` holds what is no event (progress, states of workers), the newest of each: a slow reader gets fewer."""

    def __init__(self, caller: Caller, voice: EventEncoder, wanted: EventFilter) -> None:
        self.caller = caller
        self.voice = voice
        self.wanted = wanted
        self.place = StreamPosition(0)
        self.extras: dict[object, tuple[bytes, ...]] = {}
        self.waits = False
        self.is_due = False  # for a sign of life
        self.said_at = 0.0
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._news = asyncio.Event()
        self._again: StreamStart | None = None

    def wake(self) -> None:
        self._news.set()

    def end(self, reason: str) -> None:
        if not self.ended.done():
            self.ended.set_result(reason)

    def turn(self, wanted: EventFilter | None, hello: StreamStart) -> None:
        """From now on something else, or from somewhere else."""
        self.wanted = wanted or self.wanted
        self.extras.clear()
        self._again = hello
        self.wake()

    async def read(self, hub: Hub, hello: StreamStart, snapshot: Snapshot) -> AsyncIterator[tuple[bytes, ...]]:
        """What to send, piece by piece. Whoever takes a piece late finds more in the next one, not more pieces."""
        self._again = hello
        last = await hub.newest() if not hello.follow else None
        while True:
            if self._again is not None:
                hello, self._again = self._again, None
                yield await self._begin(hub, hello, snapshot)
            found = await hub.given(self)
            if isinstance(found, Reset):
                yield await self._reset(found, snapshot)
                continue
            if piece := self._piece(found):
                yield piece
            if last is not None and self.place.seq >= last:
                return
            if not self._has_more(hub):
                await self._wait()

    def _has_more(self, hub: Hub) -> bool:
        return self.place.seq < hub.ring.seq or self._again is not None or bool(self.extras) or self.is_due

    def _piece(self, found: Given) -> tuple[bytes, ...]:
        lines, self.place = found
        if self.extras:
            lines = (*lines, *(line for some in self.extras.values() for line in some))
            self.extras.clear()
        if self.is_due and not lines:
            lines = (self.voice.alive(self.place),)
        self.is_due = False
        return lines

    async def _wait(self) -> None:
        self.waits = True
        try:
            await self._news.wait()
        finally:
            self.waits = False
            self._news.clear()

    async def _begin(self, hub: Hub, hello: StreamStart, snapshot: Snapshot) -> tuple[bytes, ...]:
        self.place = StreamPosition(hub.ring.seq) if hello.after is None else hello.after
        if not hello.snapshot:
            return (self.voice.alive(self.place),)
        # Events after this place may be in the snapshot already; none can be missing.
        return (self.voice.alive(self.place), await snapshot(self.wanted, self.place))

    async def _reset(self, reset: Reset, snapshot: Snapshot) -> tuple[bytes, ...]:
        self.place = StreamPosition(reset.seq)
        why = "what comes after the event that you named is no longer known: take the snapshot, go on from there"
        line = self.voice.about("reset", {"seq": reset.seq, "detail": why})
        return (self.voice.wire(line, self.place), await snapshot(self.wanted, self.place))
