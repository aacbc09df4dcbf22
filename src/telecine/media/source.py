"""What a probe finds in a file. Times are integers in a stream's time base, or fractions of a second; never floats."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

MIN_GAP_SECONDS = 600  # a shorter silence is one of the film


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A video stream. `width` and `height` are as coded: before rotation and before square pixels."""

    stream: int
    codec: str
    width: int
    height: int
    time_base: Fraction
    sar: Fraction = Fraction(1)
    rotation: int = 0  # degrees clockwise that show it upright: 0, 90, 180, 270
    mirrored: bool = False  # swap left and right first, then turn
    pixels: str = "yuv420p"
    depth: int = 8
    rate: Fraction | None = None  # as the container says it; the index knows better
    primaries: int = 2  # ISO/IEC 23091-2 code points; 2: unspecified
    transfer: int = 2
    matrix: int = 2
    full_range: bool = False
    interlaced: bool = False
    peak: int = 0  # cd/m², the brightest light of HDR; 0: not HDR, or not known

    @property
    def shown(self) -> tuple[int, int]:
        """Width and height as a person sees it: upright, with square pixels."""
        wide, high = Fraction(self.width) * self.sar, Fraction(self.height)
        if self.sar < 1:  # stretch, never shrink
            wide, high = Fraction(self.width), Fraction(self.height) / self.sar
        size = (round(wide), round(high))
        return size if self.rotation in (0, 180) else (size[1], size[0])

    @property
    def is_hdr(self) -> bool:
        return self.transfer in (16, 18)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """An audio stream."""

    stream: int
    codec: str
    rate: int
    channels: int
    time_base: Fraction
    layout: str = ""
    language: str | None = None
    title: str | None = None
    default: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file as it is, from its head. `duration` is what it claims: the index counts."""

    format: str
    size: int
    duration: Fraction | None
    picture: Picture | None
    sounds: tuple[Sound, ...] = ()
    streams: int = 0
    unclear: bool = False  # a track is announced, and nothing of it is in the head
    thorough: bool = False  # all of the file was read to find its tracks
    seekable: bool = True  # False: TS, AVI and the like are remuxed once before they are indexed
    warnings: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()  # what the container promises and does not have


@dataclass(frozen=True, slots=True, kw_only=True)
class Packets:
    """What a demuxer saw of one video stream, without decoding: the raw material of the index.

    `pts` are those of frames that will be shown, in the order of the file; `keys` are the keyframes that one may seek
    to, those of discarded packets too. A packet without a time is counted in `untimed`.
    """

    time_base: Fraction
    pts: tuple[int, ...]
    keys: tuple[int, ...]
    untimed: int = 0
    discarded: int = 0
    damaged: int = 0  # packets that the demuxer itself calls corrupt
    last_duration: int = 0
    second_fields: int = 0  # packets that only complete the frame of the packet before (H.264 coded by fields)
    unordered: bool = False  # B-frames whose times are in the order of decoding


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What a demuxer saw of one audio stream: from when to when it sounds, in its time base.

    `gaps`: where it falls silent for longer than `MIN_GAP_SECONDS`, and where it goes on.
    """

    stream: int
    time_base: Fraction
    start: int
    end: int
    gaps: tuple[tuple[int, int], ...] = ()


def retold(original: Source, copied: Source) -> Source:
    """A copy may have lost how the picture is turned and which track is the default: the original knows."""
    picture = copied.picture
    if picture is not None and original.picture is not None:
        told = original.picture
        picture = replace(
            picture, rotation=told.rotation, mirrored=told.mirrored, sar=told.sar, rate=told.rate, peak=told.peak
        )
    sounds = copied.sounds
    if len(sounds) == len(original.sounds):  # else a track is missing, and its order does not say which
        sounds = tuple(
            replace(now, language=was.language, title=was.title, default=was.default)
            for was, now in zip(original.sounds, sounds, strict=True)
        )
    warnings = tuple(dict.fromkeys((*original.warnings, *copied.warnings)))
    return replace(copied, picture=picture, sounds=sounds, warnings=warnings, damage=original.damage)
