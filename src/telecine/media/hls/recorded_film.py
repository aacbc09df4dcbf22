"""What was recorded of a film: renditions and their pieces, and the figures that playlists say about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import count, takewhile
from math import ceil, floor
from typing import TypeVar

from telecine.media.orders import AudioTrackOrder, Init, Rung, Segment, Timing

# Audio is cut at whole AAC frames, so a piece may be this much longer than the grid says.
WOBBLE = Fraction(1024, 44_100)
DEFAULT_HEIGHT = 540  # Apple 1.32: the variant that a player starts with


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSegment:
    """A recorded segment. `duration` is in ticks of its track; `fragments` as in `orders.Segment`."""

    number: int
    size: int
    duration: int
    sha256: str = ""
    fragments: tuple[tuple[int, int, int, int], ...] = ()

    @classmethod
    def of(cls, segment: Segment) -> RecordedSegment:
        return cls(**{name: getattr(segment, name) for name in ("number", "size", "duration", "sha256", "fragments")})


@dataclass(frozen=True, slots=True, kw_only=True)
class VideoRendition:
    """A rung and what there is of it, in any order and with gaps while it is encoded."""

    rung: Rung
    init: Init
    pieces: tuple[RecordedSegment, ...] = ()
    range: str = "SDR"  # SDR, PQ or HLG

    @property
    def name(self) -> str:
        return self.rung.name


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioRendition:
    """An audio track and what there is of it."""

    track: AudioTrackOrder
    init: Init
    pieces: tuple[RecordedSegment, ...] = ()
    language: str | None = None
    title: str | None = None
    default: bool = False

    @property
    def name(self) -> str:
        return self.track.name


Rendition = VideoRendition | AudioRendition
R = TypeVar("R", VideoRendition, AudioRendition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """All renditions of one version. A film without pictures has a grid too: its audio is cut on it.

    `growing`: it is watched while it is encoded; more pieces come, and nothing that was measured is final.
    """

    timing: Timing
    videos: tuple[VideoRendition, ...] = ()
    audios: tuple[AudioRendition, ...] = ()
    growing: bool = False

    @property
    def renditions(self) -> tuple[Rendition, ...]:
        return (*self.videos, *self.audios)

    @property
    def default_audio(self) -> AudioRendition | None:
        """The one marked as default, else the first."""
        return next((audio for audio in self.audios if audio.default), self.audios[0] if self.audios else None)

    @property
    def variants(self) -> tuple[VideoRendition, ...]:
        """The rung to start with, then the others from small to large."""
        rising = sorted(self.videos, key=lambda video: (video.rung.width * video.rung.height, video.rung.maxrate))
        if not rising:
            return ()
        first = min(rising, key=lambda video: abs(min(video.rung.width, video.rung.height) - DEFAULT_HEIGHT))
        return (first, *(video for video in rising if video is not first))

    @property
    def target(self) -> int:
        """TARGETDURATION of every list but those of I-frames; the same while it grows and when it is whole.

        A piece may be at most half a second longer, so the nearest whole second is right (6.006 s: 6).
        """
        planned = Fraction(self.timing.per_segment) / self.timing.rate
        if self.audios:
            planned += WOBBLE
        return nearest([planned, *(longest(one) for one in self.renditions)])

    @property
    def shortest_counted(self) -> Fraction:
        """The shortest segment whose own rate counts as a peak (RFC 8216: half a target duration), in seconds."""
        whole = Fraction(self.timing.per_segment) / self.timing.rate
        last = len(self.timing.frames_of(self.timing.segments - 1)) / self.timing.rate
        return last if 2 * last >= self.target or self.timing.segments == 1 else whole

    @property
    def prefix(self) -> int:
        """How many pieces, from the first on without a gap, all required rungs and the default audio have."""
        needed: list[Rendition] = [*self._required()]
        if self.default_audio:
            needed.append(self.default_audio)
        return min((unbroken(one.pieces) for one in needed), default=0)

    def preview(self) -> Film:
        """What may be watched now. Without optional rungs: should one be dropped, its viewers would wait forever."""
        most = self.prefix
        return replace(
            self,
            growing=True,
            videos=tuple(_upto(most, video) for video in self._required()),
            audios=tuple(_upto(most, audio) for audio in self.audios),
        )

    def named(self, name: str) -> Rendition:
        return next(one for one in self.renditions if one.name == name)

    def _required(self) -> tuple[VideoRendition, ...]:
        return tuple(video for video in self.videos if video.rung.required) or self.videos


def unbroken(pieces: Iterable[RecordedSegment]) -> int:
    """How many pieces there are from number 0 on before the first gap."""
    have = {piece.number for piece in pieces}
    return sum(1 for _ in takewhile(have.__contains__, count()))


def seconds(ticks: int, one: Rendition) -> Fraction:
    return Fraction(ticks, one.init.timescale)


def longest(one: Rendition) -> Fraction:
    return seconds(max((piece.duration for piece in one.pieces), default=0), one)


def nearest(durations: Iterable[Fraction]) -> int:
    """The target duration for these: the longest, rounded to the nearest second, and at least one."""
    return max(1, floor(max(durations, default=Fraction(1)) + Fraction(1, 2)))


def peak(parts: Sequence[tuple[int, Fraction]], target: int) -> int:
    """Bits per second of the worst run of parts (bytes, seconds) that lasts 0.5 to 1.5 target durations (RFC 8216)."""
    rates = [Fraction(8 * size) / length for size, length in _runs(parts, target)]
    return ceil(max(rates)) if rates else average(parts)


def average(parts: Sequence[tuple[int, Fraction]]) -> int:
    length = sum((part[1] for part in parts), Fraction(0))
    return ceil(Fraction(8 * sum(part[0] for part in parts)) / length) if length else 0


def parts_of(one: Rendition) -> list[tuple[int, Fraction]]:
    return [(piece.size, seconds(piece.duration, one)) for piece in one.pieces]


def _runs(parts: Sequence[tuple[int, Fraction]], target: int) -> Iterator[tuple[int, Fraction]]:
    for first in range(len(parts)):
        size, length = 0, Fraction(0)
        for last in range(first, len(parts)):
            size, length = size + parts[last][0], length + parts[last][1]
            if 2 * length > 3 * target:
                break
            if 2 * length >= target:
                yield size, length


def _upto(most: int, one: R) -> R:
    have = sorted(one.pieces, key=lambda piece: piece.number)
    return replace(one, pieces=tuple(have[: min(most, unbroken(have))]))
