"""Which leaps of clocks are jumps, and by how much each stream is moved."""

from __future__ import annotations

from fractions import Fraction
from time import process_time

import pytest

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.timing import track_times
from telecine.media.child.timing.splices import MAX_JUMPS, Splices, find_splices
from telecine.media.child.timing.track_times import StreamCut, StreamTimes


def test_sound_that_goes_back_alone_is_put_behind_itself() -> None:
    picture, sound = StreamTimes(Fraction(1, 25), is_picture=True), StreamTimes(Fraction(1, 50), is_picture=False)
    for n in range(50):
        picture.add(n, n, 1, 3 * n, is_key=n % 25 == 0)
        for half in range(2):
            at = 2 * n + half - (60 if n >= 40 else 0)
            sound.add(at, at, 1, 3 * n + 1 + half, is_key=True)

    splices = find_splices({0: picture, 1: sound})

    assert splices.leaps == ()
    assert splices.cuts == {1: (StreamCut(number=80, shift=60, begin=80, drops=True),)}
    assert sound.shown(splices.cuts[1]) == list(range(100))


def test_pictures_that_are_decoded_in_another_order_are_no_jump() -> None:
    """ASF says only when a frame is shown: at one frame a second, B-frames go back by seconds."""
    picture = StreamTimes(Fraction(1), is_picture=True)
    for order, pts in enumerate(time + 3 * mini for mini in range(20) for time in (3, 1, 2)):
        picture.add(pts, None, 1, order)

    assert find_splices({0: picture}) == Splices()


HOUR = 3600 * 90_000


def recorded(
    *, wrong: tuple[int, ...] = (), silent: tuple[int, ...] = (), by: int = HOUR
) -> tuple[StreamTimes, StreamTimes]:
    """Eight seconds of pictures and sound on one clock, but for these packets."""
    picture, sound = (
        StreamTimes(Fraction(1, 90_000), is_picture=True),
        StreamTimes(Fraction(1, 90_000), is_picture=False),
    )
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
    picture, sound = (
        StreamTimes(Fraction(1, 90_000), is_picture=True),
        StreamTimes(Fraction(1, 90_000), is_picture=False),
    )
    for n in range(200):
        time = 2 * HOUR + n * 3600 + (by if n >= 100 else 0)
        picture.add(time, time, 3600, 2 * n, is_key=n % 25 == 0)
        if n >= 120:
            sound.add(time, time, 3600, 2 * n + 1, is_key=True)

    splices = find_splices({0: picture, 1: sound})

    assert picture.shown(splices.cuts[0]) == [2 * HOUR + 3600 * n for n in range(200)]
    assert sound.shown(splices.cuts[1]) == [2 * HOUR + 3600 * n for n in range(120, 200)]


# --- one stream alone, or with a pause ---------------------------------------------------------------------------


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_sound_that_leaps_alone_is_moved_alone_and_told(by: int) -> None:
    picture, sound = recorded(silent=tuple(range(200, 400)), by=by)

    splices = find_splices({0: picture, 1: sound})

    assert 0 not in splices.cuts
    assert sound.shown(splices.cuts[1]) == [1800 * n for n in range(400)]
    assert splices.leaps == ()
    assert [(round(leap.at, 1), leap.delta, leap.stream) for leap in splices.alone] == [(4, by // 90_000, 1)]


@pytest.mark.parametrize("by", [HOUR, -HOUR])
def test_pictures_that_leap_alone_do_not_take_the_sound_along(by: int) -> None:
    picture, sound = recorded(wrong=tuple(range(100, 200)), by=by)

    splices = find_splices({0: picture, 1: sound})

    assert picture.shown(splices.cuts[0]) == [3600 * n for n in range(200)]
    assert 1 not in splices.cuts
    assert [(leap.delta, leap.stream) for leap in splices.leaps] == [(by // 90_000, 0)]


@pytest.mark.parametrize("by", [HOUR, -HOUR, -20 * 90_000])
def test_a_leap_is_the_same_for_sound_that_pauses_across_it(by: int) -> None:
    picture, sound = (
        StreamTimes(Fraction(1, 90_000), is_picture=True),
        StreamTimes(Fraction(1, 90_000), is_picture=False),
    )
    wanted = [n for n in range(1000) if not 300 <= n < 700]  # sixteen seconds of silence
    for n in range(1000):
        time = 2 * HOUR + n * 3600 + (by if n >= 500 else 0)
        picture.add(time, time, 3600, 2 * n, is_key=n % 25 == 0)
        if n in wanted:
            sound.add(time, time, 3600, 2 * n + 1, is_key=True)

    splices = find_splices({0: picture, 1: sound})

    assert picture.shown(splices.cuts[0]) == [2 * HOUR + 3600 * n for n in range(1000)]
    assert sound.shown(splices.cuts[1]) == [2 * HOUR + 3600 * n for n in wanted]
    assert [leap.stream for leap in splices.leaps] == [None]
    assert splices.alone == ()


def test_sound_that_pauses_while_pictures_go_on_is_left_alone() -> None:
    picture, sound = StreamTimes(Fraction(1, 25), is_picture=True), StreamTimes(Fraction(1, 25), is_picture=False)
    for n in range(1000):
        picture.add(n, n, 1, 2 * n, is_key=n % 25 == 0)
        if not 200 <= n < 800:
            sound.add(n, n, 1, 2 * n + 1, is_key=True)

    assert find_splices({0: picture, 1: sound}) == Splices()


# --- very many ---------------------------------------------------------------------------------------------------


def leaping(jumps: int, per_part: int) -> dict[int, StreamTimes]:
    """Pictures and sound on a clock that leaps by 100 s after each part."""
    picture, sound = StreamTimes(Fraction(1, 25), is_picture=True), StreamTimes(Fraction(1, 25), is_picture=False)
    for n in range((jumps + 1) * per_part):
        at = n + n // per_part * 2500
        picture.add(at, at, 1, 2 * n, is_key=n % per_part == 0, is_corrupt=n % per_part == 0)
        sound.add(at, at, 1, 2 * n + 1, is_key=True)
    return {0: picture, 1: sound}


def test_thousands_of_jumps_take_time_in_proportion() -> None:
    """Each jump may not look at all packets again: that took minutes."""
    tracks = leaping(2_000, 40)
    begin = process_time()

    splices = find_splices(tracks)

    assert process_time() - begin < 20
    assert len(splices.leaps) == 2_000
    assert tracks[0].shown(splices.cuts[0]) == list(range(2_001 * 40))


def test_pictures_without_sound_are_asked_once_whether_they_are_steady(monkeypatch: pytest.MonkeyPatch) -> None:
    sorts = list[int]()
    monkeypatch.setattr(track_times, "sorted", lambda steps: sorts.append(1) or sorted(steps), raising=False)

    splices = find_splices({0: leaping(100, 80)[0]})

    assert len(splices.leaps) == 100
    assert len(sorts) == 1


def test_more_jumps_than_are_joined_are_refused_with_a_sentence() -> None:
    with pytest.raises(OrderRefused) as refused:
        find_splices(leaping(MAX_JUMPS // 2 + 1, 4))

    assert refused.value.permanent
    assert refused.value.message == (
        f"its clocks jump {MAX_JUMPS + 2} times, and at most {MAX_JUMPS} jumps are joined: give the file new times"
    )
