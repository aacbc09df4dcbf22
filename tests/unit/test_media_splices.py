"""Which leaps of clocks are jumps, and by how much each stream is moved."""

from __future__ import annotations

from fractions import Fraction

import pytest

from telecine.media.child.timing.splices import Cut, Splices, Track, find_splices


def test_sound_that_goes_back_alone_is_put_behind_itself() -> None:
    picture, sound = Track(Fraction(1, 25), is_picture=True), Track(Fraction(1, 50), is_picture=False)
    for n in range(50):
        picture.add(n, n, 1, 3 * n, is_key=n % 25 == 0)
        for half in range(2):
            at = 2 * n + half - (60 if n >= 40 else 0)
            sound.add(at, at, 1, 3 * n + 1 + half, is_key=True)

    splices = find_splices({0: picture, 1: sound})

    assert splices.leaps == ()
    assert splices.cuts == {1: (Cut(number=80, shift=60, begin=80, drops=True),)}
    assert sound.shown(splices.cuts[1]) == list(range(100))


def test_pictures_that_are_decoded_in_another_order_are_no_jump() -> None:
    """ASF says only when a frame is shown: at one frame a second, B-frames go back by seconds."""
    picture = Track(Fraction(1), is_picture=True)
    for order, pts in enumerate(time + 3 * mini for mini in range(20) for time in (3, 1, 2)):
        picture.add(pts, None, 1, order)

    assert find_splices({0: picture}) == Splices()


HOUR = 3600 * 90_000


def recorded(*, wrong: tuple[int, ...] = (), silent: tuple[int, ...] = (), by: int = HOUR) -> tuple[Track, Track]:
    """Eight seconds of pictures and sound on one clock, but for these packets."""
    picture, sound = Track(Fraction(1, 90_000), is_picture=True), Track(Fraction(1, 90_000), is_picture=False)
    for n in range(200):
        time = n * 3600 + (by if n in wrong else 0)
        picture.add(time, time, 3600, 3 * n, is_key=n % 25 == 0)
        for half in range(2):
            time = n * 3600 + half * 1800 + (by if 2 * n + half in silent else 0)
            sound.add(time, time, 1800, 3 * n + 1 + half, is_key=True)
    return picture, sound


@pytest.mark.parametrize("by", [HOUR, -HOUR, 3 * 90_000, -3 * 90_000])
@pytest.mark.parametrize("wrong", [(100,), (100, 101, 102), (100, 104)])
def test_a_wrong_time_moves_no_other_packet(wrong: tuple[int, ...], by: int) -> None:
    picture, sound = recorded(wrong=wrong, silent=wrong, by=by)

    splices = find_splices({0: picture, 1: sound})

    assert splices.leaps == ()
    assert picture.shown(splices.cuts[0]) == [3600 * n for n in range(200)]
    assert sound.shown(splices.cuts[1]) == [1800 * n for n in range(400)]


def test_a_wrong_time_behind_a_jump_is_put_right_as_well() -> None:
    picture, sound = recorded(wrong=(*range(100, 120), *range(121, 200)), silent=tuple(range(200, 400)))

    splices = find_splices({0: picture, 1: sound})

    assert [leap.delta for leap in splices.leaps] == [3600]
    assert picture.shown(splices.cuts[0]) == [3600 * n for n in range(200)]
    assert sound.shown(splices.cuts[1]) == [1800 * n for n in range(400)]


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_sound_that_begins_behind_a_jump_is_moved_with_the_pictures(by: int) -> None:
    picture, sound = Track(Fraction(1, 90_000), is_picture=True), Track(Fraction(1, 90_000), is_picture=False)
    for n in range(200):
        time = 2 * HOUR + n * 3600 + (by if n >= 100 else 0)
        picture.add(time, time, 3600, 2 * n, is_key=n % 25 == 0)
        if n >= 120:
            sound.add(time, time, 3600, 2 * n + 1, is_key=True)

    splices = find_splices({0: picture, 1: sound})

    assert picture.shown(splices.cuts[0]) == [2 * HOUR + 3600 * n for n in range(200)]
    assert sound.shown(splices.cuts[1]) == [2 * HOUR + 3600 * n for n in range(120, 200)]
