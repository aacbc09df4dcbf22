"""The header of AAC that its container has lost (FLV with an empty one), worked out from its packets. Pure.

Without it a decoder takes FLV's word for the sampling rate, which is 44,100 Hz for all AAC, and loses every packet that
is not silent. Each packet holds 1024 samples, so its length tells the rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

MIN_PACKETS = 8
MAX_PACKETS = 500  # enough for a clock of milliseconds
_SAMPLES = 1024  # of a packet, at the rate of its core coder
_LOW_COMPLEXITY = 2
_RATES = (96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350)
_MAX_OFF = 0.02  # share by which packets may be off the rate
_CHANNELS = {0: 1, 1: 2}  # by the kind of the first element: a single channel, or a pair


def core_rate(times: Sequence[Fraction]) -> int | None:
    """The rate of AAC whose packets begin at these seconds; None: they do not tell."""
    steps = sorted(after - before for before, after in pairwise(times))
    if len(steps) < MIN_PACKETS:
        return None
    usual = steps[len(steps) // 2]
    even = [step for step in steps if abs(step - usual) * 2 < usual]  # without pauses
    length = sum(even, Fraction(0)) / len(even) if even else Fraction(0)
    if length <= 0:
        return None
    rate = _SAMPLES / length
    nearest = min(_RATES, key=lambda one: abs(one - rate))
    return nearest if abs(nearest - rate) <= _MAX_OFF * nearest else None


def header_of(rate: int, packet: bytes) -> bytes | None:
    """An AudioSpecificConfig for this rate and the channels that the packet begins with; None: other than usual."""
    channels = _CHANNELS.get(packet[0] >> 5) if packet else None
    if channels is None or rate not in _RATES:
        return None
    return (_LOW_COMPLEXITY << 11 | _RATES.index(rate) << 7 | channels << 3).to_bytes(2, "big")
