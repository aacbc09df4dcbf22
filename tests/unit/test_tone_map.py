"""From high dynamic range to standard range: the table that all chunks share."""

from __future__ import annotations

from itertools import pairwise

import pytest

from telecine.media.tone_map import HLG, PQ, SIZE, cube, peak_of, pq_code, pq_light

RAMP = (0.1, 1, 10, 50, 100, 203, 300, 400, 600, 800, 1000)


def entries(text: str) -> list[tuple[float, ...]]:
    head, *lines = text.splitlines()
    assert head == f"LUT_3D_SIZE {SIZE}"
    return [tuple(map(float, line.split())) for line in lines]


def greys(text: str) -> list[tuple[float, ...]]:
    return entries(text)[:: 1 + SIZE + SIZE * SIZE]


@pytest.mark.parametrize(
    ("content", "mastering", "peak"),
    [
        (None, None, 1000),
        (800.0, 4000.0, 800),
        (0.0, 4000.0, 4000),  # "not known"
        (None, 0.005, 1000),  # a phone's mistake
        (50.0, 20_000.0, 1000),
        (10_000.0, None, 10_000),
    ],
)
def test_the_peak_is_what_the_metadata_says_if_it_can_be_true(
    content: float | None, mastering: float | None, peak: int
) -> None:
    assert peak_of(content, mastering) == peak


@pytest.mark.parametrize("light", RAMP)
def test_pq_codes_are_read_and_written_alike(light: float) -> None:
    assert pq_light(pq_code(light)) == pytest.approx(light)


def test_pq_codes_are_those_of_the_standard() -> None:
    assert (round(pq_code(100), 4), round(pq_code(1000), 4)) == (0.5081, 0.7518)


@pytest.mark.parametrize("transfer", [PQ, HLG])
@pytest.mark.parametrize("peak", [100, 203, 600, 1000, 4000, 10_000])
def test_more_light_is_never_shown_darker_and_grey_stays_grey(transfer: int, peak: int) -> None:
    table = greys(cube(transfer=transfer, primaries=9, peak=peak))

    assert len(table) == SIZE
    assert table[0] == (0.0, 0.0, 0.0)
    assert all(max(grey) - min(grey) < 2e-4 for grey in table)
    assert all(after[1] >= before[1] for before, after in pairwise(table))
    assert table[-1][1] == pytest.approx(0xFF00 / 0xFFFF, abs=1e-4)


def test_colours_of_the_same_primaries_keep_their_hue() -> None:
    """Red of BT.709 stays pure red, as bright as it may be."""
    table = entries(cube(transfer=PQ, primaries=1, peak=1000))

    assert table[SIZE - 1] == pytest.approx((0xFF00 / 0xFFFF, 0.0, 0.0), abs=1e-4)
