"""What may come in. Each refusal is one sentence that says what to do; to repeat it would change nothing."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from telecine.errors import MediaRefused
from telecine.media.source import Picture, Source
from telecine.media.timeline.index import Index

LONGEST_SIDE = 16_384
FASTEST = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBounds:
    """The most that a source may have; the settings say it."""

    source_bytes: int = 200 << 30
    seconds: float = 12 * 3600.0
    pixels: int = 8192 * 4608  # of one frame
    side: int = LONGEST_SIDE
    rate: int = FASTEST
    streams: int = 64


def check_size(size: int, bounds: SourceBounds) -> None:
    if size > bounds.source_bytes:
        raise MediaRefused(
            f"the source has {_amount(size)}, and at most {_amount(bounds.source_bytes)} are taken; "
            "make it smaller or raise max_source_bytes",
            code="too_large",
        )


def check_source(source: Source, bounds: SourceBounds) -> None:
    """Refuse what its head gives away already; the child itself refuses what is no media, or is encrypted."""
    if source.picture is None and not source.sounds:
        raise MediaRefused("the source has neither video nor audio; give a media file", code="no_media")
    check_size(source.size, bounds)
    if source.streams > bounds.streams:
        raise MediaRefused(
            f"the source has {source.streams} streams, and at most {bounds.streams} are taken; "
            "remove some or raise max_streams",
            code="too_many_streams",
        )
    check_length(source.duration, bounds)
    if source.picture is not None:
        _check_picture(source.picture, bounds)


def check_index(index: Index, bounds: SourceBounds) -> None:
    """Refuse what only shows when all packets are read. It comes before anything that is as long as the film."""
    check_length(index.length, bounds)
    _check_rate(index.rate or index.frames / index.length, bounds)


def check_length(seconds: Fraction | None, bounds: SourceBounds) -> None:
    if seconds is not None and seconds > bounds.seconds:
        raise MediaRefused(
            f"the source lasts {_clock(seconds)}, and at most {_clock(bounds.seconds)} are taken; "
            "cut it or raise max_source_seconds",
            code="too_long",
        )


def _check_picture(picture: Picture, bounds: SourceBounds) -> None:
    # Square pixels can be many more than were coded.
    sizes = (picture.width, picture.height), picture.shown
    wide, high = max(sizes, key=lambda size: size[0] * size[1])
    if min(wide, high) < 1:
        raise MediaRefused("the video has no size; check that the file is whole", code="no_size")
    if max(wide, high) > bounds.side:
        raise MediaRefused(
            f"the video is {wide}×{high}, and no side may be longer than {bounds.side} pixels; make it smaller",
            code="too_many_pixels",
        )
    if wide * high > bounds.pixels:
        raise MediaRefused(
            f"the video is {wide}×{high}, and a frame may have at most {bounds.pixels} pixels; "
            "make it smaller or raise max_pixels",
            code="too_many_pixels",
        )


def _check_rate(rate: Fraction, bounds: SourceBounds) -> None:
    if rate > bounds.rate:
        raise MediaRefused(
            f"the video has {float(rate):g} frames per second, and at most {bounds.rate} are taken; slow it down",
            code="too_fast",
        )


def _amount(size: int) -> str:
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if size >= 10**power:
            return f"{size / 10**power:.1f} {unit}"
    return f"{size} bytes"


def _clock(seconds: Fraction | float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
