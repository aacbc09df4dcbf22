"""Colour: what a source leaves open is guessed, what browsers know is kept, the rest is converted."""

from __future__ import annotations

from fractions import Fraction

import pytest

from telecine.media.colour import BT601, BT709, Colour, of_renditions, of_source
from telecine.media.source import Picture


def a_picture(colour: Colour = (2, 2, 2), height: int = 1080) -> Picture:
    primaries, transfer, matrix = colour
    return Picture(
        stream=0, codec="h264", width=height * 16 // 9, height=height, time_base=Fraction(1, 1000),
        primaries=primaries, transfer=transfer, matrix=matrix,
    )  # fmt: skip


def test_what_is_left_open_is_guessed_from_the_size() -> None:
    assert of_source(a_picture()) == BT709
    assert of_source(a_picture(height=480)) == BT601
    assert of_source(a_picture((6, 2, 2))) == (6, 1, 1)
    assert of_source(a_picture((3, 0, 0))) == BT709


@pytest.mark.parametrize("colour", [BT709, BT601, (5, 6, 5), (1, 13, 1), (1, 15, 1)])
def test_what_browsers_show_is_kept(colour: Colour) -> None:
    assert of_renditions(a_picture(colour)) == colour


@pytest.mark.parametrize("colour", [(9, 16, 9), (9, 18, 9), (9, 14, 9), (12, 1, 1)])
def test_high_dynamic_range_and_wide_gamut_become_bt709(colour: Colour) -> None:
    assert of_renditions(a_picture(colour)) == BT709
