"""Clock jumps: where the times of a recording leap, all its streams are moved together so that they go on. Pure.

    video  0 1 2 3 | 9000 9001 …          the clock leaps by 9000 between two packets
    sound  0 1 2 3   | 9000 9001 …        and does so in every stream, if not at the same packet
    ───▶   0 1 2 3 4 5 …                  one shift for all: pictures go on, and sound stays beside them

Where one stream only pauses while others go on, nothing has leapt: that gap belongs to the film. Where no other stream
goes on meanwhile, its own clock has leapt, and it alone is moved. A leap that is undone a few packets later is a wrong
time of these, and moves no others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.timing.track_times import ALIKE, FEW, FORWARD, Clock, ClockJump, StreamCut, StreamTimes

NEAR = 16  # jumps of another stream, before and behind, among which the same leap is looked for
MIN_PAUSE = Fraction(1)  # seconds: streams are not interleaved evenly enough to see a shorter one beside another stream
MAX_JUMPS = 20_000  # of all streams together: eight hours of pieces of six seconds, each on a clock of its own


class ClockLeap(NamedTuple):
    """The clock leaps by `delta` seconds where the film is `at` seconds old; `stream`: of this stream alone."""

    at: Fraction
    delta: Fraction
    stream: int | None = None


@dataclass(frozen=True, slots=True)
class Splices:
    """How each stream is cut so that the film goes on; nothing where its clock is steady."""

    cuts: Mapping[int, tuple[StreamCut, ...]] = field(default_factory=dict)
    leaps: tuple[ClockLeap, ...] = ()
    alone: tuple[ClockLeap, ...] = ()  # of single streams beside the one that leads

    @property
    def all_leaps(self) -> list[ClockLeap]:
        return sorted((*self.leaps, *self.alone), key=lambda leap: leap.at)


class _Break(NamedTuple):
    """Where a stream is cut: it is moved by `shift` ticks, or so that it goes on after a `gap`, in ticks, too."""

    shift: int | None = None
    gap: int = 0


class _Event(NamedTuple):
    """A leap of the leading stream."""

    jump: ClockJump
    same: Mapping[int, int]  # the number of the packet from which on another stream has made the same leap
    is_alone: bool  # other streams go on beside it, and none has leapt
    gap: Fraction  # seconds: for so long the others go on meanwhile


def find_splices(tracks: Mapping[int, StreamTimes]) -> Splices:
    """Cuts at jumps, and around packets with a wrong time."""
    slips = {index: track.slips() for index, track in tracks.items()}
    mended = {index: track.mended(slips[index]) for index, track in tracks.items()}
    leading = next((index for index, track in tracks.items() if track.is_picture), next(iter(tracks), None))
    splices = Splices() if leading is None else _Joint(mended, leading).splices()
    cuts = {index: _with_slips(splices.cuts.get(index, ()), slips[index]) for index in tracks}
    return replace(splices, cuts={index: some for index, some in cuts.items() if some})


def _with_slips(cuts: Sequence[StreamCut], slips: Mapping[int, int]) -> tuple[StreamCut, ...]:
    """The same cuts, and those that put wrong times right."""
    found: list[StreamCut] = []
    known = {cut.number: cut for cut in cuts}
    cut, slip = StreamCut(0, 0, 0, drops=False), 0
    for number in sorted({*known, *slips}):
        cut, slip = known.get(number, cut), slips.get(number, slip)
        found.append(StreamCut(number, cut.shift + slip, cut.begin, cut.drops))
    return tuple(found)


class _Joint:
    """The picture leads: it goes on without a gap, and what leaps with it is moved by as much. Without one, sound."""

    def __init__(self, tracks: Mapping[int, StreamTimes], leading: int) -> None:
        self._tracks = tracks
        self._leading = leading
        self._leader = tracks[leading]
        self._jumps = {index: one.jumps(FORWARD if index == leading else ALIKE) for index, one in tracks.items()}
        if (count := sum(map(len, self._jumps.values()))) > MAX_JUMPS:
            message = (
                f"its clocks jump {count} times, and at most {MAX_JUMPS} jumps are joined: give the file new times"
            )
            raise OrderRefused("damaged", message, permanent=True)
        self._clocks = {index: Clock(one, _numbers(self._jumps[index])) for index, one in tracks.items()}
        self._events = list(self._found_events())
        self._clock = Clock(self._leader, _numbers([event.jump for event in self._events]))  # with its pauses
        breaks = {event.jump.number: _Break(gap=self._ticks(event.gap)) for event in self._events}
        self._led = _cut(self._leader, breaks)

    def splices(self) -> Splices:
        cuts, alone = {self._leading: self._led}, list[ClockLeap]()
        for index, track in self._tracks.items():
            if index != self._leading:
                cuts[index] = _cut(track, self._breaks(index, alone))
        return Splices({index: some for index, some in cuts.items() if some}, tuple(self._leaps()), tuple(alone))

    def _leaps(self) -> Iterator[ClockLeap]:
        start = self._leader.first(0, self._led[0].number) if self._led else 0
        for event, cut in zip(self._events, self._led, strict=True):
            at = (cut.begin - start) * self._leader.time_base
            yield ClockLeap(at, event.jump.delta, self._leading if event.is_alone else None)

    def _ticks(self, seconds: Fraction) -> int:
        return round(seconds / self._leader.time_base)

    # --- leaps of the leading stream ---------------------------------------------------------------------------------

    def _found_events(self) -> Iterator[_Event]:
        for jump in self._jumps[self._leading]:
            others = [index for index in self._tracks if index != self._leading and self._goes_on(index, jump.order)]
            same = {index: at for index in others if (at := self._same(index, jump)) is not None}
            if jump.delta < 0 or same or not self._is_pause(jump, others):
                is_alone = bool(others) and not same
                gaps = [_gap(self._leader, jump, self._clocks[index]) for index in others] if is_alone else []
                yield _Event(jump, same, is_alone, max(gaps, default=Fraction(0)))

    def _goes_on(self, index: int, order: int) -> bool:
        return self._tracks[index].goes_on_around(order)

    def _is_pause(self, jump: ClockJump, others: Sequence[int]) -> bool:
        """Does another stream go on for about as long? Without one, a stream that pauses often does so here, too."""
        begin = self._leader.place_before(jump.number)
        timed = [self._clocks[index] for index in others if self._clocks[index].covers(jump.order)]
        if not timed:
            return bool(others) or not self._leader.is_steady()
        return any(2 * clock.passed_at_most(begin, jump.order) >= jump.delta for clock in timed)

    def _same(self, index: int, jump: ClockJump) -> int | None:
        """The packet of another stream from which on it has made the same leap."""
        if (equal := _alike(jump, self._jumps[index])) is not None:
            return equal.number
        near = [other for other in _near(jump, self._jumps[index]) if self._has_paused(index, other, jump)]
        if near:
            return min(near, key=lambda other: abs(other.order - jump.order)).number
        return self._hidden(index, jump)

    def _has_paused(self, index: int, other: ClockJump, jump: ClockJump) -> bool:
        """Is it the same leap, across which the other stream pauses while the leading one goes on?"""
        leader, begin = self._clocks[self._leading], self._tracks[index].place_before(other.number)
        pause = other.delta - jump.delta
        if not 0 <= pause <= leader.passed_at_most(begin, other.order) + ALIKE:
            return False
        return leader.passed(jump.order, begin) <= ALIKE and leader.passed(other.order, jump.order) <= ALIKE

    def _hidden(self, index: int, jump: ClockJump) -> int | None:
        """The packet behind a leap back across which the other stream pauses for as long: its own times go on."""
        track = self._tracks[index]
        first = bisect_right(track.order, jump.order)
        behind = [one for one in range(first, min(first + FEW, len(track.order))) if track.is_timed(one)]
        number = max(behind, key=lambda one: abs(track.leap(one)), default=None)
        if jump.delta > 0 or number is None:
            return None
        pause = self._clocks[self._leading].passed(track.place_before(first), track.order[number])
        step = track.leap(number) * track.time_base
        is_same = pause > MIN_PAUSE and abs(step - pause - jump.delta) < abs(step - pause)
        return number if is_same else None

    # --- leaps of other streams --------------------------------------------------------------------------------------

    def _breaks(self, index: int, told: list[ClockLeap]) -> dict[int, _Break]:
        """Where this stream is cut: where it leaps with the leading one, and where its own clock does."""
        track, found = self._tracks[index], dict[int, _Break]()
        together = self._together(index)
        alone = {jump.number: jump for jump in self._jumps[index] if jump.number not in together}
        base = away = Fraction(0)  # by how many seconds the film is moved, and this stream more than the film
        for number in sorted({*together, *alone}):
            if number in together:
                base = together[number]
                found[number] = _Break(round((base + away) / track.time_base))
            elif (gap := self._lone_gap(index, alone[number])) is not None:
                jump = alone[number]
                told.append(ClockLeap(self._age(jump.order), jump.delta, index))
                is_back = abs(away) > FORWARD and abs(away + gap - jump.delta) <= MIN_PAUSE
                was_off = not away and self._is_off(track, 0, base, FORWARD)
                if was_off and not self._is_off(track, number, base, ALIKE):
                    found[0] = _Break(round((base + jump.delta - gap) / track.time_base))
                    is_back = True
                away = Fraction(0) if is_back else away + gap - jump.delta
                gap_ticks = round(gap / track.time_base)
                found[number] = _Break(round(base / track.time_base)) if is_back else _Break(gap=gap_ticks)
        return found

    def _together(self, index: int) -> dict[int, Fraction]:
        """Packets at which it leaps with the leading stream, and by how many seconds the film is moved from there on.

        A stream that begins later begins on the clock behind the leap.
        """
        found, film, before = dict[int, Fraction](), Fraction(0), 0
        order = self._tracks[index].order
        for event, cut in zip(self._events, self._led, strict=True):
            film += 0 if event.is_alone else (cut.shift - before) * self._leader.time_base
            before = cut.shift
            if index in event.same or (order and event.jump.order < order[0]):
                found[event.same.get(index, 0)] = film
        return found

    def _lone_gap(self, index: int, jump: ClockJump) -> Fraction | None:
        """For how many seconds the film goes on before this packet of a clock that has leapt; None: it is a pause."""
        track = self._tracks[index]
        if self._clock.covers(jump.order):
            passed = self._clock.passed_at_most(track.place_before(jump.number), jump.order)
            return None if 0 < jump.delta <= passed + FORWARD else _gap(track, jump, self._clock)
        others = [one for one in self._tracks if one not in (index, self._leading) and self._goes_on(one, jump.order)]
        has_leapt = any(_alike(jump, self._jumps[one]) for one in others) or (
            not others and jump.delta > FORWARD and track.is_steady()
        )
        return Fraction(0) if jump.delta < 0 or has_leapt else None

    def _is_off(self, track: StreamTimes, number: int, base: Fraction, by: Fraction) -> bool:
        """Is this packet far from the clock of the leading stream?"""
        time = track.dts[number] * track.time_base + base
        return track.is_timed(number) and abs(time - self._clock.at(track.order[number])) > by

    def _age(self, order: int) -> Fraction:
        return max(self._clock.at(order) - self._clock.at(-1), Fraction(0))


def _gap(track: StreamTimes, jump: ClockJump, clock: Clock) -> Fraction:
    """How many seconds of this stream are missing before its leap, by the clock of another one that goes on."""
    before = clock.lead_of(track, range(jump.number - 2 * FEW, jump.number))
    after = clock.lead_of(track, range(jump.number, jump.number + FEW))
    gap = jump.delta - (after - before) if before is not None and after is not None else Fraction(0)
    return gap if gap > MIN_PAUSE else Fraction(0)


def _numbers(jumps: Sequence[ClockJump]) -> frozenset[int]:
    return frozenset(jump.number for jump in jumps)


def _near(jump: ClockJump, others: Sequence[ClockJump]) -> Sequence[ClockJump]:
    at = bisect_left(others, jump.order, key=lambda other: other.order)
    return others[max(at - NEAR, 0) : at + NEAR]


def _alike(jump: ClockJump, others: Sequence[ClockJump]) -> ClockJump | None:
    """The one of these that is the same leap: by as much, and nearest in the file."""
    near = [other for other in _near(jump, others) if abs(other.delta - jump.delta) <= ALIKE]
    return min(near, key=lambda other: abs(other.order - jump.order), default=None)


def _cut(track: StreamTimes, breaks: Mapping[int, _Break]) -> tuple[StreamCut, ...]:
    """Cuts at these packets."""
    found: list[StreamCut] = []
    shift, before = 0, 0
    for number, after in pairwise([*sorted(breaks), len(track.pts)]):
        begin = track.end(before, number) + shift
        given, is_interrupted = breaks[number], track.is_interrupted(number)
        if given.shift is not None:
            shift = given.shift
        elif is_interrupted:
            shift = begin - track.first(number, after) + given.gap
        else:  # frames may be shown across the break: only the order of decoding is sure
            shift += given.gap - track.leap(number)
        found.append(StreamCut(number, shift, begin, is_interrupted or not track.is_picture))
        before = number
    return tuple(found)
