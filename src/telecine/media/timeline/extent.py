"""From when to when a film lasts: as long as its pictures, or longer where its sound reaches beyond them.

    sound      [──────────────────────]
    pictures         [1][2][3][4]
    film       [1][1][1][2][3][4][4][4]      the first picture is shown early, the last one stays

Coders start early and fill up their last frame, which is no reason to add pictures: a tenth of a second before the
first one is cut, and after the last one the sound alone goes on for up to a frame. Players and checkers want lists of
equal length, so it does not go on for longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from telecine.media.hls.recorded_film import WOBBLE
from telecine.media.orders import Timing
from telecine.media.source import MIN_GAP_SECONDS, Samples
from telecine.media.timeline.grid import Span, span_of
from telecine.media.timeline.index import Index

MAX_EARLY = Fraction(1, 10)  # seconds of sound before the first picture for which that one does not wait
MAX_PADDING = Fraction(2048, 44_100)  # seconds after the last picture for which that one does not stay
MAX_LEAD_SECONDS = 600  # a sound that starts earlier than this has another clock than the pictures
MAX_LAG_SECONDS = MIN_GAP_SECONDS  # as well one that starts, or goes on after a gap, so long after the last picture


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """A film with all its sound: `index` knows how long the first picture waits, `warnings` what is left out."""

    index: Index
    timing: Timing
    span: Span
    warnings: tuple[str, ...] = ()


def extent_of(index: Index, timing: Timing, heard: Sequence[Samples], max_seconds: Fraction) -> Extent:
    """The film of these pictures and tracks; `timing` is that of the pictures alone."""
    rate = timing.rate
    near = [start_of(one) for one in heard if index.start - start_of(one) <= MAX_LEAD_SECONDS]
    before = max((index.start - start for start in near), default=Fraction(0))
    lead = ceil(before * rate) if before > MAX_EARLY else 0
    start = index.start - lead / rate
    frames = timing.frames + lead
    longest = max(max_seconds, frames / rate)  # whether pictures alone are too long is decided elsewhere
    pictures_end = start + frames / rate
    ends = [end for one in heard if (end := _heard_until(one, pictures_end)) is not None]
    end = min(max(ends, default=start) - start, longest)
    over = end - frames / rate
    if over > MAX_PADDING or (over > 0 and not _has_room(over, frames, timing)):
        frames = ceil(end * rate)
    timing = replace(timing, frames=frames)
    index = replace(index, lead=lead)
    span = span_of(index, timing)
    span = replace(span, length=max(span.length, min(end, span.length + 1 / rate)))
    return Extent(index=index, timing=timing, span=span, warnings=tuple(_left_out(heard, span, pictures_end)))


def start_of(one: Samples) -> Fraction:
    return one.start * one.time_base


def end_of(one: Samples) -> Fraction:
    return one.end * one.time_base


def _heard_until(one: Samples, pictures_end: Fraction) -> Fraction | None:
    """When this track ends, but for what comes so late that it has another clock; None: all of it does."""
    parts = zip((one.start, *(begin for _, begin in one.gaps)), (*(end for end, _ in one.gaps), one.end), strict=True)
    near = [end for begin, end in parts if begin * one.time_base - pictures_end <= MAX_LAG_SECONDS]
    return near[-1] * one.time_base if near else None


def _has_room(over: Fraction, frames: int, timing: Timing) -> bool:
    """Whether the last segment stays as short as the others, but for a frame of sound, if so much goes on alone."""
    last = (frames - 1) % timing.per_segment + 1
    return last / timing.rate + over <= timing.per_segment / timing.rate + WOBBLE


def _left_out(heard: Sequence[Samples], span: Span, pictures_end: Fraction) -> Iterator[str]:
    """What of each track is not heard, a sentence each."""
    for one in heard:
        early = min(span.start, end_of(one)) - start_of(one)
        until = _heard_until(one, pictures_end)
        late = end_of(one) - max(span.start + span.length, start_of(one))
        if early > MAX_EARLY:
            why = f"they are more than {MAX_LEAD_SECONDS // 60} minutes before the first picture"
            yield f"audio stream {one.stream}: its first {float(early):.1f} s are left out, because {why}"
        if until != end_of(one):
            begin = next((begin for end, begin in one.gaps if end * one.time_base == until), one.start)
            why = f"they are more than {MAX_LAG_SECONDS // 60} minutes after the last picture"
            last = end_of(one) - begin * one.time_base
            yield f"audio stream {one.stream}: its last {float(last):.1f} s are left out, because {why}"
        elif late > MAX_PADDING:
            why = "the film would be longer than max_source_seconds allows"
            yield f"audio stream {one.stream}: its last {float(late):.1f} s are left out, because {why}"
