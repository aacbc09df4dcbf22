"""Ladders: renditions as data, and one function that chooses those a source can fill.

A step is named by the short side, so that a portrait film gets the same ones. It says bits per second on average;
the peak and the buffer follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from telecine.media.colour import of_renditions
from telecine.media.ladders.h264_levels import BFRAMES, LEVELS, REFS, level_for
from telecine.media.orders import Rung
from telecine.media.source import Picture

WIDE = Fraction(16, 9)
NEAR = Fraction(2, 3)  # of the source: a picture of this size still has all that a smaller one needs
SMALLER = Fraction(99, 100)  # what no decoder takes is made smaller, step by step
# Apple, HLS authoring 1.30: the peak stays within twice the average.
PEAK = Fraction(3, 2)
BUFFER = 2
SHARP_FROM = 720
PRESET = "veryfast"


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStep:
    """A rendition as a ladder names it. Without `height` it is as large as the source; without `kbps` as usual."""

    name: str = ""
    height: int | None = None  # of the short side
    kbps: int | None = None
    required: bool = True
    crf: int | None = None
    preset: str = PRESET
    lossless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedStep:
    """A step that this source does not get, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRungs:
    """What a source gets of a ladder, the smallest rung first."""

    rungs: tuple[Rung, ...]
    skipped: tuple[SkippedStep, ...] = ()


Ladder = tuple[LadderStep, ...]


def _table(*rows: tuple[str, int, int]) -> Ladder:
    return tuple(LadderStep(name=name, height=height, kbps=kbps) for name, height, kbps in rows)


COMPACT = _table(("360p", 360, 800), ("540p", 540, 2000), ("720p", 720, 3000), ("1080p", 1080, 6000))
MORE = _table(("480p", 480, 1400), ("1440p", 1440, 10_000), ("2160p", 2160, 20_000))
WEB = tuple(sorted(COMPACT + MORE, key=lambda step: step.height or 0))
# Apple's figures for H.264 in 16:9 (HLS authoring specification); two rungs where it asks for two.
APPLE = _table(
    ("234p", 234, 145),
    ("360p", 360, 365),
    ("432p", 432, 730),
    ("432p-high", 432, 1100),
    ("540p", 540, 2000),
    ("720p", 720, 3000),
    ("720p-high", 720, 4500),
    ("1080p", 1080, 6000),
    ("1080p-high", 1080, 7800),
)
LADDERS: dict[str, Ladder] = {"web-compact": COMPACT, "web": WEB, "apple": APPLE, "single": (LadderStep(),)}


def climb(ladder: Ladder, picture: Picture, rate: Fraction) -> ChosenRungs:
    """The rungs that this picture can fill, never above it and never none."""
    wide, high = picture.shown
    short = min(wide, high)
    kept = [step for step in ladder if _fills(step, wide, high)]
    skipped = tuple(
        SkippedStep(name=step.name, reason=f"the source is {wide}×{high}, and enlarging it would add nothing")
        for step in ladder
        if step not in kept
    )
    # Smaller than the lowest step: as it is, with that step's bits.
    kept = kept or [replace(min(ladder, key=_rise), name="", height=None, required=True)]
    if not any(step.required for step in kept):
        kept[0] = replace(kept[0], required=True)
    names = {step.name for step in ladder}
    colour = of_renditions(picture)
    rungs = [
        replace(_rung(_named(step, short, names), _size(step, wide, high, rate), rate), colour=colour) for step in kept
    ]
    rungs.sort(key=lambda rung: (rung.width * rung.height, rung.maxrate))
    return ChosenRungs(rungs=shared(rungs, picture), skipped=skipped)


def shared(rungs: Sequence[Rung], picture: Picture) -> tuple[Rung, ...]:
    """The rungs, smallest first as they came, each with the picture that it is scaled from.

    One that goes a whole number of times into another's is scaled from that: a third of the work for a few hundredths
    of a decibel in film (decision 0013 has the figures). Only from one that was scaled from the source itself (from one
    of its size it would be the same), and by little: others cost several times as much. Never one that shall lose
    nothing. It stands in the plan, so that each chunk and each retry does the same.
    """
    source = picture.shown
    straight: list[tuple[int, int]] = []  # the largest first
    found = []
    for rung in reversed(rungs):
        size = (rung.width, rung.height)
        fitting = (one for one in reversed(straight) if _is_multiple(one, size))
        larger = None if rung.lossless else next(fitting, None)
        if larger is None and size != source and NEAR * source[0] <= size[0]:
            straight.append(size)
        found.append(replace(rung, scaled_from=larger, tone_mapped_at=_tone_mapped_at(rungs, picture)))
    return tuple(reversed(found))


def _tone_mapped_at(rungs: Sequence[Rung], picture: Picture) -> tuple[int, int] | None:
    """Tone mapping costs as much as encoding: it is not done at the size of a source that no rung has."""
    if not picture.is_hdr or any(rung.lossless for rung in rungs):
        return None
    wide, high = max(((rung.width, rung.height) for rung in rungs), key=lambda size: size[0] * size[1])
    return (wide, high) if wide * high < picture.shown[0] * picture.shown[1] else None


def _is_multiple(large: tuple[int, int], small: tuple[int, int]) -> bool:
    times = large[0] // small[0]
    return times > 1 and large == (times * small[0], times * small[1])


def _rise(step: LadderStep) -> tuple[int, int]:
    return step.height or 1 << 30, step.kbps or 0


def _fills(step: LadderStep, wide: int, high: int) -> bool:
    if step.height is None or step.height <= min(wide, high):
        return True
    # A film of 1920 × 804 is what people call 1080p: it fills the width.
    return step.height * WIDE <= max(wide, high)


def _named(step: LadderStep, short: int, taken: set[str]) -> LadderStep:
    """A step of the source's size is called by it, and gets the bits of the usual step that is as large."""
    kbps = step.kbps or next((one.kbps for one in WEB if (one.height or 0) >= short), WEB[-1].kbps)
    own = f"{max(2, _even(short))}p"
    return replace(step, name=step.name or (f"{own}-source" if own in taken else own), kbps=kbps)


def _size(step: LadderStep, wide: int, high: int, rate: Fraction) -> tuple[int, int]:
    """Even, the aspect ratio kept to the nearest even pixel; never larger than the source or the highest level."""
    short = min(wide, high)
    scale = min(Fraction(1), Fraction(step.height or short, short))
    while True:
        width, height = (max(2, min(2 * round(side * scale / 2), _even(side))) for side in (wide, high))
        if LEVELS[-1].takes(width, height, rate) or max(width, height) == 2:
            return width, height
        scale *= SMALLER


def _even(side: int) -> int:
    return side - side % 2


def _rung(step: LadderStep, size: tuple[int, int], rate: Fraction) -> Rung:
    width, height = size
    target = (step.kbps or 0) * 1000
    maxrate, bufsize = int(target * PEAK), target * BUFFER
    crf = step.crf if step.crf is not None else 21 if (step.height or min(size)) >= SHARP_FROM else 23
    return Rung(
        name=step.name,
        width=width,
        height=height,
        crf=0 if step.lossless else crf,
        maxrate=maxrate,
        bufsize=bufsize,
        level=level_for(width, height, rate, maxrate=maxrate, bufsize=bufsize),
        # Only this profile of H.264 knows how to lose nothing.
        profile="high444" if step.lossless else "high",
        preset=step.preset,
        refs=REFS,
        bframes=BFRAMES,
        required=step.required,
        lossless=step.lossless,
    )
