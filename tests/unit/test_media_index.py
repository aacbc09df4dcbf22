"""From packets to the source time of every output frame."""

import json
import random
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.errors import MediaRefused
from telecine.media.plain_json import from_plain, to_plain
from telecine.media.source import Packets
from telecine.media.timeline.grid import timing_for
from telecine.media.timeline.index import Index, build_index

MS = Fraction(1, 1000)
STEPS = st.lists(st.integers(1, 250), min_size=1, max_size=120)


def some_packets(
    pts: list[int], *, keys: list[int] | None = None, time_base: Fraction = MS, untimed: int = 0, last_duration: int = 0
) -> Packets:
    return Packets(
        time_base=time_base,
        pts=tuple(pts),
        keys=tuple(pts[:1] if keys is None else keys),
        untimed=untimed,
        last_duration=last_duration,
    )


def a_variable_index(steps: list[int], start: int = 0) -> Index:
    pts = [start]
    for step in steps:
        pts.append(pts[-1] + step)
    return build_index(some_packets(pts, last_duration=40))


def test_a_constant_rate_shows_every_frame_once_in_order_of_time() -> None:
    as_stored = [80, 200, 120, 160, 360, 240, 280, 320]  # B frames

    index = build_index(some_packets(as_stored))

    assert index.rate == index.shown_rate == 25
    assert index.times_of(timing_for(index)) == tuple(sorted(as_stored))
    assert index.start == Fraction(80, 1000)


def test_above_sixty_every_second_frame_is_shown() -> None:
    index = build_index(some_packets([k * 10 for k in range(101)]))
    timing = timing_for(index)

    times = index.times_of(timing)

    assert timing.rate == 50
    assert times == tuple(range(0, 1001, 20))
    assert index.drops(times)


def test_a_slide_show_repeats_its_pictures() -> None:
    index = build_index(some_packets([0, 1000, 2000]))
    timing = timing_for(index)

    times = index.times_of(timing)

    assert (timing.rate, len(times)) == (8, 24)
    assert times == (0,) * 8 + (1000,) * 8 + (2000,) * 8
    assert not index.drops(times)


@given(steps=STEPS, start=st.integers(-5_000, 5_000))
def test_a_variable_rate_loses_and_repeats_only_what_it_must(steps: list[int], start: int) -> None:
    index = a_variable_index(steps, start)
    timing = timing_for(index)

    times = index.times_of(timing)

    assert list(times) == sorted(times)
    if index.rate is None:
        ticks = [(time - index.pts[0]) * MS * timing.rate for time in index.pts]
        shown = [times.index(time) if time in times else None for time in index.pts]
        assert all(tick is None or abs(tick - at) <= Fraction(3, 4) for tick, at in zip(shown, ticks, strict=True))
        for (time, at), after in zip(zip(index.pts, ticks, strict=True), [*ticks[1:], None], strict=True):
            if after is not None:
                assert times.count(time) >= 1 or after - at < 1
                assert times.count(time) <= 1 or after - at > 1


@given(steps=STEPS)
def test_the_output_lasts_as_long_as_the_source_to_one_tick(steps: list[int]) -> None:
    index = a_variable_index(steps)
    timing = timing_for(index)

    length = timing.frames / timing.rate

    # The last one is shown at all, however short it says it is.
    last_shown = (index.pts[-1] - index.pts[0]) * MS + 1 / timing.rate
    assert abs(length - max(index.length, last_shown)) < 1 / timing.rate


RATES = [*(Fraction(rate) for rate in (24, 25, 30, 60)), Fraction(24_000, 1001), Fraction(30_000, 1001), Fraction(15)]
CLOCKS = [MS, Fraction(1, 600), Fraction(1, 90_000), Fraction(1, 12_800)]


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("rate", RATES)
def test_one_lost_frame_is_one_repeated_picture(rate: Fraction, clock: Fraction) -> None:
    pts = [round(k / rate / clock) for k in range(200) if k != 77]

    index = build_index(some_packets(pts, time_base=clock))

    times = index.times_of(timing_for(index))
    assert index.shown_rate == rate
    assert times == (*pts[:77], pts[76], *pts[77:])


def test_a_clock_that_jitters_loses_no_picture() -> None:
    pts = [k * 3003 + k % 2 for k in range(60) if k != 31]

    index = build_index(some_packets(pts, time_base=Fraction(1, 90_000)))

    times = index.times_of(timing_for(index))
    assert index.shown_rate == Fraction(30_000, 1001)
    assert times == (*pts[:31], pts[30], *pts[31:])


@pytest.mark.parametrize("start", [0, 7, 16])
def test_a_camera_that_is_slower_than_its_rate_repeats_one_picture_in_a_while(start: int) -> None:
    """29.9 frames per second with 2 ms of jitter: about one repeat in 14 s, also where times lie between two ticks."""
    dice = random.Random(start)
    pts = [0] + [round(k / 0.0299 + start) + dice.randint(-2, 2) for k in range(1, 900)]

    index = build_index(some_packets(pts))

    times = index.times_of(timing_for(index))
    assert set(times) == set(pts)
    assert len(times) - len(pts) <= 5


@given(steps=STEPS, cuts=st.lists(st.integers(0, 2_000), max_size=5))
def test_however_it_is_cut_the_map_is_the_same(steps: list[int], cuts: list[int]) -> None:
    index = a_variable_index(steps)
    timing = timing_for(index)

    borders = sorted({0, timing.frames, *(cut % timing.frames for cut in cuts)})
    parts = [index.times_of(timing, range(first, stop)) for first, stop in pairwise(borders)]

    assert sum(parts, ()) == index.times_of(timing)


@given(steps=STEPS, first=st.integers(0, 1_000), count=st.integers(1, 100))
def test_drops_are_frames_between_that_nobody_shows(steps: list[int], first: int, count: int) -> None:
    index = a_variable_index(steps)
    timing = timing_for(index)
    first %= timing.frames

    times = index.times_of(timing, range(first, min(first + count, timing.frames)))

    between = [time for time in index.pts if times[0] <= time <= times[-1]]
    assert index.drops(times) == (set(between) != set(times))


@given(steps=STEPS, first=st.integers(0, 400), count=st.integers(1, 100))
def test_neighbours_are_the_next_other_frames_that_are_shown(steps: list[int], first: int, count: int) -> None:
    index = a_variable_index(steps)
    timing = timing_for(index)
    ticks = range(min(first, timing.frames - 1), min(first + count, timing.frames))
    times = index.times_of(timing)

    around = index.with_neighbours(timing, ticks)

    shown = sorted(set(times))
    inner, outer = {times[k] for k in ticks}, {times[k] for k in around}
    places = [shown.index(one) for one in inner]
    assert outer == set(shown[max(0, min(places) - 1) : max(places) + 2])
    assert set(ticks) <= set(around) <= set(range(timing.frames))


def test_seek_points_are_the_last_before_two_more_and_those_inside() -> None:
    pts = [k * 40 for k in range(500)]
    index = build_index(some_packets(pts, keys=pts[::50]))

    assert index.keys_for(pts[220:310]) == (4_000, 6_000, 8_000, 10_000, 12_000)
    assert index.keys_for(pts[200:201]) == (4_000, 6_000, 8_000)
    assert index.keys_for(pts[:10]) == (0,)


def test_keyframes_of_discarded_packets_are_seek_points() -> None:
    index = build_index(some_packets([0, 40, 80, 120], keys=[-1_000, 80]))

    assert index.keys_for([0, 40]) == (-1_000,)


@pytest.mark.parametrize(("pts", "untimed"), [([0, 40, 40, 80], 0), ([0, 40, 120], 1)])
def test_wrong_times_ask_for_a_copy_and_then_for_one_reader(pts: list[int], untimed: int) -> None:
    first = build_index(some_packets(pts, untimed=untimed))
    again = build_index(some_packets(pts, untimed=untimed), remuxed=True)

    assert (first.needs_remux, first.sequential) == (True, False)
    assert (again.needs_remux, again.sequential) == (False, True)
    assert again.drops(again.pts)
    assert again.keys_for(again.pts[-1:]) == (0,)


def test_a_cured_copy_is_like_any_other() -> None:
    index = build_index(some_packets([0, 40, 80]), remuxed=True)

    assert (index.needs_remux, index.sequential) == (False, False)


def test_one_picture_lasts_as_long_as_it_says() -> None:
    index = build_index(some_packets([7], last_duration=10_000))

    assert index.length == 10
    assert set(index.times_of(timing_for(index))) == {7}


def test_one_picture_that_says_nothing_is_one_frame() -> None:
    index = build_index(some_packets([7]), declared=Fraction(30))

    assert (index.shown_rate, index.shown_frames) == (30, 1)


@pytest.mark.parametrize("declared", [None, Fraction(1000), Fraction(30)])
def test_one_picture_that_lasts_a_tick_has_a_usual_rate(declared: Fraction | None) -> None:
    index = build_index(some_packets([7], last_duration=1), declared=declared)

    assert (index.shown_rate, index.shown_frames) == (30 if declared == 30 else 25, 1)


def test_a_stream_without_times_is_refused() -> None:
    with pytest.raises(MediaRefused, match="no frame with a time") as refused:
        build_index(some_packets([], untimed=99))

    assert refused.value.code == "no_frames"


@given(steps=STEPS, start=st.integers(-(10**12), 10**12))
def test_an_index_comes_back_from_json(steps: list[int], start: int) -> None:
    index = a_variable_index(steps, start)

    back = from_plain(Index, json.loads(json.dumps(to_plain(index))))

    assert back == index
    assert back.pts == index.pts


def test_two_hours_of_the_worst_film_fit_in_a_fraction_of_a_megabyte() -> None:
    dice = random.Random(1)
    pts = [round(k * 41.7083) + dice.randint(-15, 15) for k in range(172_800)]

    index = build_index(some_packets(pts, keys=pts))

    assert len(json.dumps(to_plain(index))) < 500_000
