"""From index, grid and ladder to the orders that children carry out. Pure: the same facts give the same orders."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from telecine.media.orders import ChildLimits, EncodeVideo, MissingSegments, Rung, Timing
from telecine.media.source import Picture
from telecine.media.timeline.grid import Chunk, chunks_of
from telecine.media.timeline.index import Index

POSTER_WIDTH = 1280
POSTER_AT = (Fraction(1, 10), Fraction(1, 4), Fraction(1, 2), Fraction(3, 4))
SPRITE_WIDTH = 160
# Up to so many seconds of film, one sprite every so many seconds.
SPRITE_EVERY = ((600, 2), (3600, 5))
SPRITE_AT_LAST = 10
# What it takes to decode a frame, of what it takes to encode one in all its rungs. Only chunks of equal length are
# weighed by it, so it need not be exact.
DECODING = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyframePick:
    """A recorded keyframe to make a picture of: the first frame of a segment's fragment, shown at `at` seconds."""

    rung: str
    segment: int
    fragment: int
    at: Fraction


def plan_chunks(index: Index, timing: Timing, slots: int) -> list[Chunk]:
    """The tasks that encode the film, for so many live slots; one alone when nobody can seek in the source."""
    if index.sequential:
        return [Chunk(first=0, count=timing.segments)]
    firsts = (timing.frames_of(k).start for k in range(timing.segments))
    head_starts = [DECODING * index.head_start(timing, first) / timing.per_segment for first in firsts]
    return chunks_of(timing.segments, slots, head_starts)


def missing(
    chunk: Chunk,
    rungs: Sequence[Rung],
    recorded: Collection[tuple[str, int]],
    inits: Mapping[str, str] | None = None,
) -> tuple[MissingSegments, ...]:
    """What the chunk still lacks; `inits` are the hashes of the rungs' init segments. Whole rungs are left out."""
    lacking = ((rung, tuple(k for k in chunk.segments if (rung.name, k) not in recorded)) for rung in rungs)
    return tuple(
        MissingSegments(rung=rung, segments=segments, init=(inits or {}).get(rung.name))
        for rung, segments in lacking
        if segments
    )


def video_order(
    index: Index,
    timing: Timing,
    picture: Picture,
    wanted: tuple[MissingSegments, ...],
    *,
    format: str,
    limits: ChildLimits | None = None,
    mend: bool = False,
) -> EncodeVideo:
    """Encode what is wanted, from the first missing frame of any rung to the last.

    A deinterlacer looks at the frame before and the frame after each: interlaced film is decoded so much further.
    """
    numbers = [number for one in wanted for number in one.segments]
    frames = Chunk(first=min(numbers), count=max(numbers) - min(numbers) + 1).frames_of(timing)
    if picture.interlaced:
        frames = index.with_neighbours(timing, frames)
    times = index.times_of(timing, frames)
    return EncodeVideo(
        picture=picture,
        format=format,
        timing=timing,
        first=frames.start,
        times=times,
        keys=index.keys_for(times),
        drops=index.drops(times),
        wanted=wanted,
        limits=limits or ChildLimits(),
        mend=mend,
    )


def sprite_interval(length: Fraction) -> int:
    """Seconds from one sprite to the next."""
    return next((every for up_to, every in SPRITE_EVERY if length <= up_to), SPRITE_AT_LAST)


def sprite_picks(timing: Timing, rungs: Sequence[Rung]) -> tuple[KeyframePick, ...]:
    """A keyframe near every interval, of the smallest rung that is large enough; sprite k stands for k × interval."""
    length = timing.frames / timing.rate
    every = sprite_interval(length)
    rung = _for_pictures(rungs, SPRITE_WIDTH)
    return tuple(_pick(timing, rung, Fraction(k * every)) for k in range(-(-length // every)))


def poster_picks(timing: Timing, rungs: Sequence[Rung]) -> tuple[KeyframePick, ...]:
    """Candidates spread over the film, each once, of the smallest rung that is large enough."""
    rung = _for_pictures(rungs, POSTER_WIDTH)
    length = timing.frames / timing.rate
    return tuple(dict.fromkeys(_pick(timing, rung, length * part) for part in POSTER_AT))


def _for_pictures(rungs: Sequence[Rung], width: int) -> str:
    """The smallest rung that is so wide, or the largest; one that cannot be dropped, if there is any."""
    sure = [rung for rung in rungs if rung.required] or rungs
    by_width = sorted(sure, key=lambda rung: rung.width)
    return next((rung for rung in by_width if rung.width >= width), by_width[-1]).name


def _pick(timing: Timing, rung: str, at: Fraction) -> KeyframePick:
    """The keyframe nearest to this moment."""
    frame = timing.gop * min(round(at * timing.rate / timing.gop), (timing.frames - 1) // timing.gop)
    segment, within = divmod(frame, timing.per_segment)
    return KeyframePick(rung=rung, segment=segment, fragment=within // timing.gop, at=frame / timing.rate)
