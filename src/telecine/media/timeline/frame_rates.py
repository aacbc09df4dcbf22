"""Frame rates: which one the times of a source show, and which one its streams get.

    times ──fit──▶ constant rate ──output_rate──▶ the same; halved above 60, doubled below 5
          └──fit_with_gaps──▶ constant but for lost frames and jitter ──output_rate──▶ as above
          └──────▶ none: variable ──snap────────▶ the nearest standard rate

Clocks are coarse: Matroska counts milliseconds, so 23.976 fps shows steps of 41 and 42. A rate fits when no frame
is further from `first + k / rate` than one tick of the coarsest clock that the times allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from math import gcd
from statistics import median_low

NTSC = Fraction(1000, 1001)
STANDARD = (24 * NTSC, Fraction(24), Fraction(25), 30 * NTSC, Fraction(30), Fraction(50), 60 * NTSC, Fraction(60))
USUAL = (*STANDARD, *map(Fraction, (48, 15, 12, 10)), 120 * NTSC, Fraction(100), Fraction(120))
FASTEST = 60
# Below it a GOP of two seconds is a handful of frames, and rounding bends segments beyond what players allow.
SLOWEST = 5
# QuickTime's and Matroska's clocks. A file copied into a container with a finer clock still ticks as before.
COARSE = (Fraction(1, 600), Fraction(1, 1000))
# Where a step is so many times longer than usual a frame is missing: it says nothing about the rate. Between 3/2, the
# longer step of film on a 60 Hz clock, and 2.
PAUSE = Fraction(7, 4)
# A rate that is further than this from the typical one need not be tried.
NEAR = Fraction(1, 10)


def fit(pts: Sequence[int], time_base: Fraction, declared: Fraction | None = None) -> Fraction | None:
    """The constant rate of these ascending times; None when they have none. `declared` settles what both fit."""
    if len(pts) < 2:
        return None
    clock = _clock(pts, time_base)
    fitting = {rate: error for rate in USUAL if (error := _error(pts, time_base, rate, clock)) is not None}
    if declared in fitting:
        return declared
    if fitting:
        return min(fitting, key=lambda rate: (fitting[rate], USUAL.index(rate)))
    unusual = (rate for rate in _unusual(pts, time_base) if _error(pts, time_base, rate, clock) is not None)
    return next(unusual, None) or _exact(pts, time_base)


def fit_with_gaps(pts: Sequence[int], time_base: Fraction, declared: Fraction | None = None) -> Fraction | None:
    """The rate of a film that lost frames or whose clock jitters; None if it has none.

    Each frame must be within a quarter of a frame of a place of its own on the rate's grid, most of them on the place
    after that of the frame before.
    """
    if len(pts) < 3:
        return None
    mean = typical(pts, time_base)
    clock = _clock(pts, time_base)
    known = (*USUAL, *([declared] if declared else []), *_round_rates(mean))
    found: dict[Fraction, Fraction] = {}
    for rate in dict.fromkeys(known):
        if abs(rate - mean) <= NEAR * mean and (error := _error_with_gaps(pts, time_base, rate)) is not None:
            found[rate] = error
    # What the clock allows comes first, and of that what the container declares.
    return min(found, key=lambda rate: (found[rate] > clock, rate != declared, found[rate]), default=None)


def typical(pts: Sequence[int], time_base: Fraction) -> Fraction:
    """Frames per second of ascending times, pauses left out."""
    steps = [after - before for before, after in pairwise(pts)]
    longest = PAUSE * median_low(steps)
    counted = [step for step in steps if step <= longest]
    return Fraction(len(counted), sum(counted)) / time_base


def snap(rate: Fraction) -> Fraction:
    """The standard rate that is nearest: at most 60."""
    return min(STANDARD, key=lambda standard: abs(standard - rate))


def output_rate(rate: Fraction) -> Fraction:
    """The rate that a constant rate is shown at: every frame, every second one, or each several times."""
    while rate > FASTEST:
        rate /= 2
    while rate < SLOWEST:
        rate *= 2
    return rate


def _clock(pts: Sequence[int], time_base: Fraction) -> Fraction:
    """The coarsest clock seen: a well-known one that all steps are multiples of, else the time base itself."""
    common = gcd(*(time - pts[0] for time in pts)) * time_base
    return next((clock for clock in COARSE if clock > time_base and (common / clock).denominator == 1), time_base)


def _unusual(pts: Sequence[int], time_base: Fraction) -> Iterable[Fraction]:
    """Round rates near the mean."""
    return _round_rates((len(pts) - 1) / ((pts[-1] - pts[0]) * time_base))


def _round_rates(mean: Fraction) -> Iterable[Fraction]:
    near = (Fraction(round(mean)), Fraction(round(mean * 2), 2), round(mean / NTSC) * NTSC)
    return (rate for rate in near if rate > 0)


def _exact(pts: Sequence[int], time_base: Fraction) -> Fraction | None:
    """Whatever rate equal steps make."""
    steps = {after - before for before, after in pairwise(pts)}
    return 1 / (steps.pop() * time_base) if len(steps) == 1 else None


def _error(pts: Sequence[int], time_base: Fraction, rate: Fraction, clock: Fraction) -> Fraction | None:
    """How far the worst frame is from its place, in seconds; None when that is more than a tick allows."""
    # A clock of about one tick per frame (AVI) must not hide a lost frame: never more than a quarter of a frame.
    allowed = min(clock, 1 / (4 * rate))
    # Everything in whole units, for speed: time t is `t * per_tick`, frame k stands at `k * per_frame`.
    unit = Fraction(1, time_base.denominator * rate.numerator)
    per_tick, per_frame = int(time_base / unit), int(1 / rate / unit)
    most = int(allowed / unit)
    first, last = pts[0], len(pts) - 1
    if abs((pts[last] - first) * per_tick - last * per_frame) > most:
        return None
    worst = max(abs((time - first) * per_tick - k * per_frame) for k, time in enumerate(pts))
    return worst * unit if worst <= most else None


def _error_with_gaps(pts: Sequence[int], time_base: Fraction, rate: Fraction) -> Fraction | None:
    """How far the worst frame is from its place on the grid, in seconds; None where the grid does not fit."""
    unit = Fraction(1, time_base.denominator * rate.numerator)
    per_tick, per_frame = int(time_base / unit), int(1 / rate / unit)
    first, most = pts[0], per_frame // 4
    before, worst, following = -1, 0, 0
    for time in pts:
        at = (time - first) * per_tick
        place = (2 * at + per_frame) // (2 * per_frame)
        error = abs(at - place * per_frame)
        if place <= before or error > most:
            return None
        following += place == before + 1
        before, worst = place, max(worst, error)
    return worst * unit if 2 * following > len(pts) else None
