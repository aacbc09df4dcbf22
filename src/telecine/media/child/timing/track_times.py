"""The times of one stream as its file has them, and where they leap. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

FORWARD = Fraction(10)  # seconds: a shorter gap is one in the film
BACKWARD = Fraction(1, 2)
ALIKE = Fraction(5)  # seconds by which one leap may differ between streams: they are not interleaved evenly
LATE = 3  # packets: the parser knows only later where one ends, so a mark may come with one before it
FEW = 32  # packets: all that come with one wrong time have it
RARE = 50  # one step in so many may be longer in a steady stream
_NONE = -(1 << 63)


class ClockJump(NamedTuple):
    """Packet `number` of a stream, the `order`th of the file, is `delta` seconds off."""

    number: int
    order: int
    delta: Fraction


class StreamCut(NamedTuple):
    """From packet `number` on, times are moved by `shift` ticks. The part before lasts until `begin`.

    `drops`: what is then shown before `begin` is left out. It is sound that is there twice, or pictures that refer to
    missing ones.
    """

    number: int
    shift: int
    begin: int
    drops: bool


@dataclass(slots=True)
class StreamTimes:
    """The times of one stream as the file has them."""

    time_base: Fraction
    is_picture: bool
    pts: array[int] = field(default_factory=lambda: array("q"))
    dts: array[int] = field(default_factory=lambda: array("q"))
    durations: array[int] = field(default_factory=lambda: array("q"))
    order: array[int] = field(default_factory=lambda: array("q"))
    keys: array[int] = field(default_factory=lambda: array("q"))  # numbers of packets
    corrupt: array[int] = field(default_factory=lambda: array("q"))  # as well: those that the demuxer calls so
    _steady: bool | None = None

    def add(
        self,
        pts: int | None,
        dts: int | None,
        duration: int,
        order: int,
        *,
        is_key: bool = False,
        is_corrupt: bool = False,
    ) -> None:
        decoded = dts if dts is not None or self.is_picture else pts  # pictures are not decoded as they are shown
        if pts is not None and decoded is not None and abs(pts - decoded) * self.time_base > ALIKE:
            pts = None  # guessed by the demuxer, from a packet behind the leap
        self.pts.append(_NONE if pts is None else pts)
        self.dts.append(_NONE if decoded is None else decoded)
        self.durations.append(duration)
        self.order.append(order)
        if is_key and self.is_picture:
            self.keys.append(len(self.order) - 1)
        if is_corrupt:
            self.corrupt.append(len(self.order) - 1)

    def shown(self, cuts: Sequence[StreamCut]) -> list[int | None]:
        """When each packet is shown once the stream is cut like this."""
        ends = [*(cut.number for cut in cuts), len(self.pts)]
        parts = zip([0, *ends], ends, [0, *(cut.shift for cut in cuts)], strict=False)
        return [None if time == _NONE else time + shift for begin, end, shift in parts for time in self.pts[begin:end]]

    def jumps(self, forward: Fraction) -> list[ClockJump]:
        """Where the clock goes back, or leaps by more than `forward` seconds."""
        leaps = self._leaps(forward)
        return [ClockJump(number, self.order[number], ticks * self.time_base) for number, ticks in leaps]

    def _leaps(self, forward: Fraction) -> Iterator[tuple[int, int]]:
        """The numbers of packets that are off, and by how many ticks."""
        most, least = int(forward / self.time_base), -int(BACKWARD / self.time_base)
        due: int | None = None
        for number, dts in enumerate(self.dts):
            if dts == _NONE:
                continue
            if due is not None and not least <= dts - due <= most:
                yield number, dts - due
            due = dts + self.durations[number]

    def slips(self) -> dict[int, int]:
        """Wrong times of a few packets: from each of these numbers on, by how many ticks they have to be moved."""
        leaps = list(self._leaps(BACKWARD))
        found: dict[int, int] = {}
        at = 0
        while at < len(leaps):
            end = self._undone(leaps, at)
            if end is None:
                at += 1
                continue
            numbers, ticks = zip(*leaps[at : end + 1], strict=True)
            found |= zip(numbers, (-moved for moved in accumulate(ticks)), strict=True)
            found[numbers[-1]] = 0
            at = end + 1
        return found

    def _undone(self, leaps: Sequence[tuple[int, int]], at: int) -> int | None:
        """Which of the next leaps takes this one back, so that the clock goes on as if nothing had been.

        If it goes on where it was before, a part has been put in between, whose times are right.
        """
        first, total = leaps[at]
        lasted, until = 0, first
        for nth, (number, ticks) in enumerate(leaps[at + 1 : at + 1 + FEW], at + 1):
            total += ticks
            if number - first > FEW:
                return None
            lasted, until = lasted + sum(self.durations[until:number]), number
            if abs(total) * self.time_base <= BACKWARD and total * 2 >= -lasted:
                return nth
        return None

    def mended(self, slips: Mapping[int, int]) -> StreamTimes:
        """The same stream without these wrong times."""
        if not slips:
            return self
        pts, dts = array("q", self.pts), array("q", self.dts)
        for begin, end in pairwise([*slips, len(pts)]):
            for times in (pts, dts) if slips[begin] else ():
                for number in range(begin, end):
                    times[number] += slips[begin] if times[number] != _NONE else 0
        return replace(self, pts=pts, dts=dts, _steady=None)

    def is_steady(self) -> bool:
        """Are its packets evenly spaced? A screen recording's are not: it pauses where nothing moves.

        To be asked when all packets are known: the answer is worked out once.
        """
        if self._steady is None:
            known = [time for time in self.dts if time != _NONE]
            steps = sorted(after - before for before, after in pairwise(known))
            long = len(steps) // RARE
            self._steady = len(steps) > 2 and steps[-1 - max(1, long)] <= 2 * steps[len(steps) // 2]
        return self._steady

    def goes_on_around(self, order: int) -> bool:
        """Are there packets on both sides of this place in the file?"""
        return bool(self.order) and self.order[0] < order < self.order[-1]

    def is_interrupted(self, number: int) -> bool:
        """Is something missing before this packet? The mark of it may come with an earlier one."""
        at = bisect_left(self.corrupt, number - LATE)
        return at < len(self.corrupt) and self.corrupt[at] <= number

    def place_before(self, number: int) -> int:
        """A place in the file before this packet. Muxers and parsers hold back the last ones before a pause."""
        return self.order[max(number - 1 - (LATE if self.is_picture else FEW), 0)]

    def is_timed(self, number: int) -> bool:
        return self.dts[number] != _NONE

    def leap(self, number: int) -> int:
        """By how many ticks this packet is off."""
        before = next((n for n in range(number - 1, -1, -1) if self.dts[n] != _NONE), None)
        return 0 if before is None else self.dts[number] - self.dts[before] - self.durations[before]

    def first(self, begin: int, end: int) -> int:
        """When the first of these packets is shown; of pictures, the first that needs no other."""
        at = bisect_left(self.keys, begin)
        if at < len(self.keys) and self.keys[at] < end and self.pts[self.keys[at]] != _NONE:
            return self.pts[self.keys[at]]
        return min((time for time in self.pts[begin:end] if time != _NONE), default=0)

    def end(self, begin: int, end: int) -> int:
        """When the last of these packets ends."""
        timed = zip(self.pts[begin:end], self.durations[begin:end], strict=True)
        return max((time + duration for time, duration in timed if time != _NONE), default=0)


class Clock:
    """How far a stream is at each place of the file, in seconds, without its leaps."""

    def __init__(self, track: StreamTimes, leaps: Collection[int]) -> None:
        """`leaps`: the numbers of packets whose step does not count."""
        self._base = track.time_base
        self._order = array("q")
        self._times = array("q")
        now = last = due = None
        for number, dts in enumerate(track.dts):
            time = dts if dts != _NONE else track.pts[number]
            if time == _NONE:
                continue
            if now is None or last is None or due is None:
                now = time
            else:
                now += due - last if number in leaps else time - last
            last, due = time, time + track.durations[number]
            self._order.append(track.order[number])
            self._times.append(now)

    def covers(self, order: int) -> bool:
        """Are there packets on both sides of this place in the file?"""
        return bool(self._order) and self._order[0] < order < self._order[-1]

    def at(self, order: int) -> Fraction:
        """The time of the last packet before this place, or of the first one of all."""
        return self._times[max(bisect_right(self._order, order) - 1, 0)] * self._base

    def lead_of(self, track: StreamTimes, numbers: range) -> Fraction | None:
        """By how many seconds these packets of another stream are ahead; the middle one of all such numbers counts."""
        timed = [number for number in numbers if 0 <= number < len(track.dts) and track.is_timed(number)]
        leads = sorted(track.dts[number] * track.time_base - self.at(track.order[number]) for number in timed)
        return leads[len(leads) // 2] if leads else None

    def passed(self, begin: int, end: int) -> Fraction:
        """How long it goes on between these places."""
        return self.at(end) - self.at(begin)

    def passed_at_most(self, begin: int, end: int) -> Fraction:
        """The same for a stream with few packets: up to the next one."""
        after = min(bisect_left(self._order, end), len(self._order) - 1)
        return self._times[after] * self._base - self.at(begin)
