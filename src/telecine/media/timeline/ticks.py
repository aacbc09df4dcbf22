"""Which source frame each output frame shows when the source has no constant rate.

    source    0      1.1    1.9    3.2           6.0       in output frames since the first
    tick      0      1      2      3      (3)    (3)  6    each frame at the nearest tick; a gap repeats the last one

Real clocks are rough: Matroska rounds to milliseconds and cameras drift. Where the nearest tick is not the next one,
the next one is still used while it is at most three quarters of a frame away. Without that margin a film whose times
lie half-way between two ticks would lose and repeat frames all the time.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from fractions import Fraction


def assign_ticks(pts: Sequence[int], per_tick: Fraction) -> Sequence[int]:
    """The output tick of each of these ascending times; `per_tick` is how much source time one tick takes.

    Ticks never fall. Where two frames have the same one the later frame is shown.
    """
    # Everything in whole units, for speed: time t is `(t - first) * unit`, tick k stands at `k * width`.
    width, unit = per_tick.numerator, per_tick.denominator
    first, last = pts[0], -1
    ticks = array("q")
    for time in pts:
        at = (time - first) * unit
        tick = (2 * at + width) // (2 * width)
        if tick != last + 1 and 4 * abs(at - (last + 1) * width) <= 3 * width:
            tick = last + 1
        last = max(last, tick)
        ticks.append(last)
    return ticks
