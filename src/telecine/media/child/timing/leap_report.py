"""What is said of a clock that jumps. Pure."""

from __future__ import annotations

from fractions import Fraction

from telecine.media.child.timing.splices import ClockLeap

MAX_TOLD = 5  # jumps with a sentence of their own
_WRAP = Fraction(1 << 33, 90_000)  # seconds until the clock of MPEG systems begins again


def describe_leap(leap: ClockLeap, format: str) -> str:
    """One sentence, without a full stop."""
    delta = leap.delta
    if format in ("mpegts", "mpeg") and delta > _WRAP / 2:
        delta -= _WRAP  # FFmpeg takes a clock that goes back for one that has begun again
    way = "forward" if delta > 0 else "back"
    whose = "the clock" if leap.stream is None else f"the clock of stream {leap.stream} alone"
    return f"{whose} jumps {way} by {float(abs(delta)):.1f} s where the film is {float(leap.at):.1f} s old"
