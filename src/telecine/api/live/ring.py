"""The last events, in memory, without a gap: most readers need no others."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from telecine.api.live.encoders import EventEncoder, spoken
from telecine.api.live.filters import EventFilter, StreamPosition
from telecine.engine.events.event_context import DescribedEvent, EventPage

MAX_EVENTS = 4_000
# What a reader is given in one go; then it is asked whether it can take more.
MAX_BYTES = 32 << 10
# Readers of the same at the same place share what is made for them; so many such groups are remembered.
MAX_GIVEN = 2_000

Given = tuple[tuple[bytes, ...], StreamPosition]


class EventRing:
    """All events with numbers above `since` up to `seq`."""

    def __init__(self, seq: int = 0, most: int = MAX_EVENTS) -> None:
        self._most = most
        self.restart(seq)

    def restart(self, seq: int) -> None:
        self.since = self.seq = seq
        self._told: list[DescribedEvent] = []
        self._seqs: list[int] = []
        self._given: dict[tuple[str, EventFilter, StreamPosition], Given] = {}

    def add(self, page: EventPage) -> None:
        self._told.extend(page.told)
        self._seqs.extend(told.event.seq for told in page.told)
        self.seq = page.seq
        self._given.clear()
        if (over := len(self._told) - self._most) > self._most // 8:
            self.since = self._seqs[over - 1]
            del self._told[:over], self._seqs[:over]

    def holds(self, place: StreamPosition) -> bool:
        return self.since <= place.seq <= self.seq

    def give(self, voice: EventEncoder, wanted: EventFilter, place: StreamPosition) -> Given:
        """What comes after this place for such a reader, up to a bound, and the place then. Made once for all alike."""
        if place.seq == self.seq:
            return (), place
        key = (voice.name, wanted, place)
        given = self._given.get(key)
        if given is None:
            if len(self._given) >= MAX_GIVEN:
                self._given.clear()
            given = self._given[key] = worded(self._after(place), voice, wanted, place, self.seq)
        return given

    def _after(self, place: StreamPosition) -> Iterator[DescribedEvent]:
        first = bisect_right(self._seqs, place.seq)
        return (self._told[n] for n in range(first, len(self._told)))


def worded(
    some: Iterator[DescribedEvent],
    voice: EventEncoder,
    wanted: EventFilter,
    place: StreamPosition,
    upto: int,
    *,
    whole: bool = False,
) -> Given:
    """These events in the reader's words, up to a bound unless the `whole` is asked for.

    `upto` is where the reader is after all of them.
    """
    found: list[bytes] = []
    size = 0
    for told in some:
        skip = place.lines if told.event.seq == place.seq + 1 else 0
        for line in spoken(voice, told, wanted, skip):
            found.append(line)
            size += len(line)
        if size >= MAX_BYTES and not whole:
            return tuple(found), StreamPosition(told.event.seq)
    return tuple(found), StreamPosition(upto)
