"""The grid: GOPs, segments and chunks in whole frames, equal in every rung.

    frames    0 … 47 | 48 … 95 | 96 … 143 | 144 …        GOP: two seconds, closed
    segments  [            0             ] [ 1           six seconds: what is recorded, and what a retry may keep
    chunks    [                0 … 4                ]    what one worker leases

No float and no second is counted here; what lasts 6.006 seconds lasts 144 frames. Only the worth of one order of chunks
against another is a float.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapreplace
from itertools import combinations
from math import comb

from telecine.media.orders import Timing
from telecine.media.source import Samples
from telecine.media.timeline.index import Index

SEGMENT = Fraction(6)
GOP = Fraction(2)
# More segments than this in one task, and a lost lease or a late worker costs too much.
LONGEST_CHUNK = 5
# Two chunks per slot: whoever is done early takes another one.
CHUNKS_PER_SLOT = 2
# So many chunks are looked at to find the best order of longer and shorter ones: all orders of up to twelve chunks.
MAX_TRIED = 12_000
# A last segment of audio that is shorter is joined to the one before it.
SHORTEST_TAIL = Fraction(2, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some segments in a row: the part of the film that one task encodes."""

    first: int
    count: int

    @property
    def segments(self) -> range:
        return range(self.first, self.first + self.count)

    def frames_of(self, timing: Timing) -> range:
        return range(timing.frames_of(self.first).start, timing.frames_of(self.first + self.count - 1).stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The span that every track fills: from `start` on the container's clock, for `length` seconds.

    `borders[k]` is when segment k begins, counted from the start.
    """

    start: Fraction
    length: Fraction
    borders: tuple[Fraction, ...]


def timing_of(rate: Fraction, frames: int, *, segment: Fraction = SEGMENT, gop: Fraction = GOP) -> Timing:
    """The grid for this rate; `segment` and `gop` are wished seconds, rounded to whole frames and whole GOPs."""
    per_gop = max(1, round(gop * rate))
    return Timing(rate=rate, frames=frames, gop=per_gop, per_segment=per_gop * max(1, round(segment / gop)))


def timing_for(index: Index, *, segment: Fraction = SEGMENT, gop: Fraction = GOP) -> Timing:
    """The grid of a whole film."""
    return timing_of(index.shown_rate, index.shown_frames, segment=segment, gop=gop)


def chunks_of(segments: int, slots: int, head_starts: Sequence[float] = ()) -> list[Chunk]:
    """Cut so many segments into chunks for so many slots, as equal as possible.

    Which of them are the longer ones: those with which the film is done first. A chunk that begins with segment k takes
    `head_starts[k]` longer, in segments, since it must decode from a keyframe on. All else being equal, the first.
    """
    longest = min(max(1, -(-segments // (CHUNKS_PER_SLOT * max(1, slots)))), LONGEST_CHUNK)
    parts = -(-segments // longest)
    each, longer = divmod(segments, parts)
    if not head_starts or comb(parts, longer) * parts > MAX_TRIED:
        return _cut(each, parts, range(longer))
    ways = (_cut(each, parts, chosen) for chosen in map(frozenset, combinations(range(parts), longer)))
    return min(ways, key=lambda chunks: _ends(chunks, slots, head_starts))


def _cut(each: int, parts: int, longer: Collection[int]) -> list[Chunk]:
    chunks, first = [], 0
    for k in range(parts):
        chunks.append(Chunk(first=first, count=each + (k in longer)))
        first += chunks[-1].count
    return chunks


def _ends(chunks: list[Chunk], slots: int, head_starts: Sequence[float]) -> tuple[float, float]:
    """When the last chunk is done if each slot takes the next one as soon as it is free; and how much work that is."""
    costs = [chunk.count + head_starts[chunk.first] for chunk in chunks]
    free = [0.0] * max(1, slots)
    for cost in costs:
        heapreplace(free, free[0] + cost)
    return max(free), sum(costs)


def span_of(index: Index, timing: Timing) -> Span:
    """The span of a film with pictures, from the moment when the first one is shown."""
    return Span(
        start=index.start - index.lead / timing.rate,
        length=timing.frames / timing.rate,
        borders=tuple(timing.frames_of(k).start / timing.rate for k in range(timing.segments)),
    )


def span_of_sound(*tracks: Samples, segment: Fraction = SEGMENT) -> Span:
    """The span of a film without pictures: from the first sound of any track to the last."""
    start = min(one.start * one.time_base for one in tracks)
    length = max(one.end * one.time_base for one in tracks) - start
    segments = max(1, int((length + segment - min(SHORTEST_TAIL, segment)) / segment))
    return Span(
        start=start,
        length=length,
        borders=tuple(k * segment for k in range(segments)),
    )
