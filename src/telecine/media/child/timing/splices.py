"""Clock jumps: where the times of a recording leap, all its streams are moved together so that they go on. Pure.

    video  0 1 2 3 | 9000 9001 …          the clock leaps by 9000 between two packets
    sound  0 1 2 3   | 9000 9001 …        and does so in every stream, if not at the same packet
    ───▶   0 1 2 3 4 5 …                  one shift for all: pictures go on, and sound stays beside them

Where one stream only pauses while others go on, nothing has leapt: that gap belongs to the film. A leap that is undone
a few packets later is a wrong time of these, and moves no others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import NamedTuple

FORWARD = Fraction(10)  # seconds: a shorter gap is one in the film
BACKWARD = Fraction(1, 2)
ALIKE = Fraction(5)  # seconds by which one leap may differ between streams: they are not interleaved evenly
LATE = 3  # packets: the parser knows only later where one ends, so a mark may come with one before it
FEW = 32  # packets: all that come with one wrong time have it
NEAR = 16  # jumps of another stream, before and behind, among which the same leap is looked for
RARE = 50  # one step in so many may be longer in a steady stream
_NONE = -(1 << 63)


class Jump(NamedTuple):
    """Packet `number` of a stream, the `order`th of the file, is `delta` seconds off."""

    number: int
    order: int
    delta: Fraction


class Cut(NamedTuple):
    """From packet `number` on, times are moved by `shift` ticks. The part before lasts until `begin`.

    `drops`: what is then shown before `begin` is left out. It is sound that is there twice, or pictures that refer to
    missing ones.
    """

    number: int
    shift: int
    begin: int
    drops: bool


@dataclass(slots=True)
class Track:
    """The times of one stream as the file has them."""

    time_base: Fraction
    is_picture: bool
    pts: array[int] = field(default_factory=lambda: array("q"))
    dts: array[int] = field(default_factory=lambda: array("q"))
    durations: array[int] = field(default_factory=lambda: array("q"))
    order: array[int] = field(default_factory=lambda: array("q"))
    keys: array[int] = field(default_factory=lambda: array("q"))  # numbers of packets
    corrupt: array[int] = field(default_factory=lambda: array("q"))  # as well: those that the demuxer calls so

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

    def shown(self, cuts: Sequence[Cut]) -> list[int | None]:
        """When each packet is shown once the stream is cut like this."""
        ends = [*(cut.number for cut in cuts), len(self.pts)]
        parts = zip([0, *ends], ends, [0, *(cut.shift for cut in cuts)], strict=False)
        return [None if time == _NONE else time + shift for begin, end, shift in parts for time in self.pts[begin:end]]

    def jumps(self, forward: Fraction) -> list[Jump]:
        """Where the clock goes back, or leaps by more than `forward` seconds."""
        leaps = self._leaps(forward)
        return [Jump(number, self.order[number], ticks * self.time_base) for number, ticks in leaps]

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
        for nth, (number, ticks) in enumerate(leaps[at + 1 : at + 1 + FEW], at + 1):
            total += ticks
            if number - first > FEW:
                return None
            if abs(total) * self.time_base <= BACKWARD and total * 2 >= -sum(self.durations[first:number]):
                return nth
        return None

    def mended(self, slips: Mapping[int, int]) -> Track:
        """The same stream without these wrong times."""
        if not slips:
            return self
        pts, dts = array("q", self.pts), array("q", self.dts)
        for begin, end in pairwise([*slips, len(pts)]):
            for times in (pts, dts) if slips[begin] else ():
                for number in range(begin, end):
                    times[number] += slips[begin] if times[number] != _NONE else 0
        return replace(self, pts=pts, dts=dts)

    def is_steady(self) -> bool:
        """Are its packets evenly spaced? A screen recording's are not: it pauses where nothing moves."""
        known = [time for time in self.dts if time != _NONE]
        steps = sorted(after - before for before, after in pairwise(known))
        return len(steps) > 2 and steps[-1 - max(1, len(steps) // RARE)] <= 2 * steps[len(steps) // 2]

    def goes_on_around(self, order: int) -> bool:
        """Are there packets on both sides of this place in the file?"""
        return bool(self.order) and self.order[0] < order < self.order[-1]

    def is_interrupted(self, number: int) -> bool:
        """Is something missing before this packet? The mark of it may come with an earlier one."""
        return any(number - LATE <= corrupt <= number for corrupt in self.corrupt)

    def leap(self, number: int) -> int:
        """By how many ticks this packet is off."""
        before = next(n for n in range(number - 1, -1, -1) if self.dts[n] != _NONE)
        return self.dts[number] - self.dts[before] - self.durations[before]

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


class Leap(NamedTuple):
    """The clock leaps by `delta` seconds where the film is `at` seconds old."""

    at: Fraction
    delta: Fraction


@dataclass(frozen=True, slots=True)
class Splices:
    """How each stream is cut so that the film goes on; nothing where its clock is steady."""

    cuts: Mapping[int, tuple[Cut, ...]] = field(default_factory=dict)
    leaps: tuple[Leap, ...] = ()


def find_splices(tracks: Mapping[int, Track]) -> Splices:
    """Cuts at jumps, and around packets with a wrong time."""
    slips = {index: track.slips() for index, track in tracks.items()}
    splices = _joined({index: track.mended(slips[index]) for index, track in tracks.items()})
    cuts = {index: _with_slips(splices.cuts.get(index, ()), slips[index]) for index in tracks}
    return replace(splices, cuts={index: some for index, some in cuts.items() if some})


def _with_slips(cuts: Sequence[Cut], slips: Mapping[int, int]) -> tuple[Cut, ...]:
    """The same cuts, and those that put wrong times right."""
    found: list[Cut] = []
    known = {cut.number: cut for cut in cuts}
    cut, slip = Cut(0, 0, 0, drops=False), 0
    for number in sorted({*known, *slips}):
        cut, slip = known.get(number, cut), slips.get(number, slip)
        found.append(Cut(number, cut.shift + slip, cut.begin, cut.drops))
    return tuple(found)


def _joined(tracks: Mapping[int, Track]) -> Splices:
    """The picture leads: it goes on without a gap, and what leaps with it is moved by as much. Without one, sound."""
    leading = next((index for index, track in tracks.items() if track.is_picture), next(iter(tracks), None))
    if leading is None:
        return Splices()
    jumps = {index: track.jumps(FORWARD if index == leading else ALIKE) for index, track in tracks.items()}
    events = list(_events(tracks, jumps, leading))
    leader = tracks[leading]
    led = _cut(leader, {event[leading].number: None for event in events})
    cuts = {leading: led}
    for index, track in tracks.items():
        if index != leading:
            alone: dict[int, int | None] = {jump.number: None for jump in jumps[index] if jump.delta < 0}
            together = {  # a stream that begins later begins on the clock behind the leap
                event[index].number if index in event else 0: round(cut.shift * leader.time_base / track.time_base)
                for event, cut in zip(events, led, strict=True)
                if index in event or (track.order and event[leading].order < track.order[0])
            }
            cuts[index] = _cut(track, alone | together)
    start = leader.first(0, led[0].number) if led else 0
    leaps = (
        Leap((cut.begin - start) * leader.time_base, event[leading].delta)
        for event, cut in zip(events, led, strict=True)
    )
    return Splices({index: some for index, some in cuts.items() if some}, tuple(leaps))


def _events(
    tracks: Mapping[int, Track], jumps: Mapping[int, Sequence[Jump]], leading: int
) -> Iterator[dict[int, Jump]]:
    """Leaps of the whole clock: the leading stream's jump, with those of the other streams that are the same."""
    for jump in jumps[leading]:
        others = [index for index, track in tracks.items() if index != leading and track.goes_on_around(jump.order)]
        same = {index: found for index in others if (found := _alike(jump, jumps[index])) is not None}
        if jump.delta < 0 or same or (not others and tracks[leading].is_steady()):
            yield {leading: jump, **same}


def _alike(jump: Jump, others: Sequence[Jump]) -> Jump | None:
    """The one of these that is the same leap: by as much, and nearest in the file."""
    at = bisect_left(others, jump.order, key=lambda other: other.order)
    near = [other for other in others[max(at - NEAR, 0) : at + NEAR] if abs(other.delta - jump.delta) <= ALIKE]
    return min(near, key=lambda other: abs(other.order - jump.order), default=None)


def _cut(track: Track, breaks: Mapping[int, int | None]) -> tuple[Cut, ...]:
    """Cuts at these packets, moved by as many ticks; None: so that the stream goes on without a gap."""
    found: list[Cut] = []
    shift, before = 0, 0
    for number, after in pairwise([*sorted(breaks), len(track.pts)]):
        begin = track.end(before, number) + shift
        given, is_interrupted = breaks[number], track.is_interrupted(number)
        if given is not None:
            shift = given
        elif is_interrupted:
            shift = begin - track.first(number, after)
        else:  # frames may be shown across the break: only the order of decoding is sure
            shift -= track.leap(number)
        found.append(Cut(number, shift, begin, is_interrupted or not track.is_picture))
        before = number
    return tuple(found)
