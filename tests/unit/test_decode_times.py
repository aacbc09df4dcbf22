"""Decode times: rising, never after showing, a constant lead, and nothing beyond the end of the group."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.media.mp4.decode_times import decode_times

STEP = 1000


def test_frames_in_order_are_decoded_when_they_are_shown() -> None:
    assert decode_times([7 * STEP + n * STEP for n in range(5)], STEP) == [n * STEP for n in range(7, 12)]


def test_with_b_frames_the_first_few_are_squeezed_and_the_rest_run_ahead() -> None:
    shown = [n * STEP for n in (0, 4, 2, 1, 3, 8, 6, 5, 7)]

    times = decode_times(shown, STEP)

    assert times == [0, 1, 2, 1000, 2000, 3000, 4000, 5000, 7000]


def test_one_frame_alone_is_decoded_at_its_time() -> None:
    assert decode_times([3 * STEP], STEP) == [3 * STEP]


@pytest.mark.parametrize(("shown", "step"), [([2000, 1000, 3000], STEP), ([0, 8, 4, 2, 6], 2)])
def test_what_cannot_be_decoded_in_time_is_refused(shown: list[int], step: int) -> None:
    with pytest.raises(ValueError, match="cannot be decoded in time"):
        decode_times(shown, step)


@st.composite
def groups(draw: st.DrawFn) -> list[int]:
    """Closed groups in decode order: a keyframe, then mini groups that end with a P frame, decoded first."""
    order = [0]
    for between in draw(st.lists(st.integers(0, 3), max_size=20)):
        inside = list(range(max(order) + 1, max(order) + 1 + between))
        half = (between - 1) // 2
        middle = inside[half : half + 1] if between > 1 and draw(st.booleans()) else []
        order += [max(order) + 1 + between, *middle, *(n for n in inside if n not in middle)]
    return order


@given(groups(), st.integers(10, 5000), st.integers(0, 10**9))
def test_every_group_that_x264_makes_has_times(order: list[int], step: int, first: int) -> None:
    shown = [(first + number) * step for number in order]

    times = decode_times(shown, step)

    end = (first + len(order)) * step
    lengths = [after - before for before, after in pairwise([*times, end])]
    assert times[0] == shown[0]
    assert min(lengths) >= 1
    assert max(lengths) <= 2 * step
    assert all(time <= at for time, at in zip(times, shown, strict=True))
    assert max(at + length for at, length in zip(shown, lengths, strict=True)) == end
