"""A lost header of AAC, worked out from its packets."""

from __future__ import annotations

from fractions import Fraction

import pytest

from telecine.media.child.source.aac_header import core_rate, header_of


def rounded(rate: int, count: int = 100) -> list[Fraction]:
    """When packets begin, on a clock of milliseconds."""
    return [Fraction(1024 * 1000 * n // rate, 1000) for n in range(count)]


@pytest.mark.parametrize("rate", [48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 11_025, 8_000])
def test_the_length_of_packets_tells_the_rate(rate: int) -> None:
    assert core_rate(rounded(rate)) == rate


def test_a_pause_does_not_count() -> None:
    times = rounded(22_050)

    assert core_rate([*times, *(time + 100 for time in times)]) == 22_050


@pytest.mark.parametrize("times", [[], rounded(48_000, 5), [Fraction(0)] * 50, [Fraction(n) for n in range(50)]])
def test_packets_that_do_not_tell(times: list[Fraction]) -> None:
    assert core_rate(times) is None


def test_the_header_names_rate_and_channels() -> None:
    assert header_of(22_050, b"\x00\xd0\x40\x07") == b"\x13\x88"  # a single channel
    assert header_of(44_100, b"\x21\x00") == b"\x12\x10"  # a pair
    assert header_of(44_100, b"\xe0") is None
    assert header_of(44_100, b"") is None
