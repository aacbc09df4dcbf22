"""Orders from facts: what is missing is encoded, whole, once, and nothing else."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.media.ladders.ladder import LADDERS, climb
from telecine.media.orders import AudioTrackOrder, EncodeAudio, EncodeVideo, Rung, Timing
from telecine.media.plain_json import from_plain, to_plain
from telecine.media.planner import (
    missing,
    plan_chunks,
    poster_picks,
    sprite_interval,
    sprite_picks,
    video_order,
)
from telecine.media.source import Packets, Picture, Sound
from telecine.media.timeline.grid import Chunk, span_of, timing_for
from telecine.media.timeline.index import Index, build_index

PICTURE = Picture(stream=0, codec="h264", width=1920, height=1080, time_base=Fraction(1, 1000))
RUNGS = climb(LADDERS["web-compact"], PICTURE, Fraction(25)).rungs
SECOND = Fraction(1)


def a_film(frames: int, *, start: int = 0, step: int = 40, gop: int = 60) -> Index:
    pts = tuple(start + k * step for k in range(frames))
    return build_index(Packets(time_base=Fraction(1, 1000), pts=pts, keys=pts[::gop]))


def in_seconds(index: Index) -> Timing:
    return timing_for(index, segment=SECOND, gop=SECOND)


def order_for(chunk: Chunk, recorded: set[tuple[str, int]], index: Index) -> EncodeVideo:
    return video_order(index, in_seconds(index), PICTURE, missing(chunk, RUNGS, recorded), format="matroska")


@given(frames=st.integers(1, 2_000), slots=st.integers(1, 8))
def test_the_orders_of_all_chunks_show_every_frame_once(frames: int, slots: int) -> None:
    index = a_film(frames)

    orders = [order_for(chunk, set(), index) for chunk in plan_chunks(index, in_seconds(index), slots)]

    assert sum((order.times for order in orders), ()) == index.pts
    assert [order.first for order in orders] == [index.pts.index(order.times[0]) for order in orders]
    assert all(order.keys[0] <= order.times[0] for order in orders)


@given(
    recorded=st.sets(st.tuples(st.sampled_from([rung.name for rung in RUNGS]), st.integers(0, 9))),
    first=st.integers(0, 5),
    count=st.integers(1, 5),
)
def test_exactly_what_is_missing_is_wanted(recorded: set[tuple[str, int]], first: int, count: int) -> None:
    chunk = Chunk(first=first, count=count)

    wanted = missing(chunk, RUNGS, recorded, {"360p": "abc"})

    pairs = {(one.rung.name, k) for one in wanted for k in one.segments}
    assert pairs == {(rung.name, k) for rung in RUNGS for k in range(first, first + count)} - recorded
    assert all(one.segments == tuple(sorted(one.segments)) for one in wanted)
    assert {one.rung.name: one.init for one in wanted} == {
        one.rung.name: "abc" if one.rung.name == "360p" else None for one in wanted
    }


def test_nothing_is_missing_when_all_is_recorded() -> None:
    chunk = Chunk(first=2, count=2)

    assert missing(chunk, RUNGS, {(rung.name, k) for rung in RUNGS for k in (2, 3)}) == ()


def test_a_retry_decodes_from_the_first_missing_segment_to_the_last() -> None:
    index = a_film(250)
    recorded = {(rung.name, k) for rung in RUNGS for k in range(5)} - {("360p", 2), ("1080p", 3)}

    order = order_for(Chunk(first=0, count=5), recorded, index)

    assert (order.first, len(order.times)) == (50, 50)
    assert [(one.rung.name, one.segments) for one in order.wanted] == [("360p", (2,)), ("1080p", (3,))]
    assert order.keys == (0, 2_400)


def test_a_source_that_nobody_can_seek_in_is_one_chunk() -> None:
    flawed = replace(a_film(1_000), repeated=3, remuxed=True)

    assert plan_chunks(flawed, in_seconds(flawed), 8) == [Chunk(first=0, count=40)]


def test_a_chunk_begins_where_its_keyframe_is_near() -> None:
    film = a_film(275, gop=75)  # of eleven segments the fourth, the seventh and the tenth begin with a keyframe

    assert [film.head_start(in_seconds(film), 25 * k) for k in range(11)] == [0, 25, 50, 0, 25, 50, 0, 25, 50, 0, 25]
    assert [chunk.count for chunk in plan_chunks(film, in_seconds(film), 1)] == [3, 4, 4]


def test_chunks_are_small_json() -> None:
    assert to_plain(plan_chunks(a_film(250), in_seconds(a_film(250)), 1)) == [
        {"first": 0, "count": 5},
        {"first": 5, "count": 5},
    ]


def test_an_audio_order_comes_back_from_json() -> None:
    sound = Sound(stream=1, codec="aac", rate=44_100, channels=2, time_base=Fraction(1, 44_100))
    track, borders = AudioTrackOrder(name="audio-und"), span_of(a_film(100), in_seconds(a_film(100))).borders
    order = EncodeAudio(
        sound=sound, format="mov", track=track, start=88_200, length=Fraction(4), borders=borders, have=(1, 3)
    )

    assert order.borders == (0, 1, 2, 3)
    assert from_plain(EncodeAudio, json.loads(json.dumps(to_plain(order)))) == order


def test_a_video_order_comes_back_from_json() -> None:
    order = order_for(Chunk(first=1, count=2), {("540p", 1)}, a_film(100))

    assert from_plain(EncodeVideo, json.loads(json.dumps(to_plain(order)))) == order


@pytest.mark.parametrize(("seconds", "every"), [(1, 2), (600, 2), (601, 5), (3_600, 5), (3_601, 10), (10_000, 10)])
def test_longer_films_have_sprites_further_apart(seconds: int, every: int) -> None:
    assert sprite_interval(Fraction(seconds)) == every


@given(frames=st.integers(1, 100_000), rate=st.sampled_from([Fraction(24_000, 1001), Fraction(25), Fraction(60)]))
def test_each_sprite_is_a_recorded_keyframe_near_its_moment(frames: int, rate: Fraction) -> None:
    timing = Timing(rate=rate, frames=frames, gop=round(2 * rate), per_segment=3 * round(2 * rate))

    picks = sprite_picks(timing, RUNGS)

    every = sprite_interval(frames / rate)
    assert (len(picks) - 1) * every < frames / rate <= len(picks) * every
    for k, pick in enumerate(picks):
        assert pick.rung == "360p"
        assert 0 <= pick.segment < timing.segments
        frame = pick.segment * timing.per_segment + pick.fragment * timing.gop
        assert frame in timing.frames_of(pick.segment)
        assert pick.at == frame / rate
        assert abs(pick.at - k * every) <= timing.gop / rate


def test_posters_are_looked_for_all_over_the_film() -> None:
    index = a_film(25 * 100)

    picks = poster_picks(timing_for(index), RUNGS)

    assert [pick.at for pick in picks] == [10, 24, 50, 76]
    assert {pick.rung for pick in picks} == {"720p"}


def test_a_film_of_one_gop_has_one_candidate() -> None:
    assert len(poster_picks(timing_for(a_film(10)), RUNGS)) == 1


def test_pictures_are_not_made_of_a_rung_that_may_be_dropped() -> None:
    rungs: list[Rung] = [replace(rung, required=rung.name in ("540p", "1080p")) for rung in RUNGS]
    timing = timing_for(a_film(1_000))

    assert {pick.rung for pick in sprite_picks(timing, rungs)} == {"540p"}
    assert {pick.rung for pick in poster_picks(timing, rungs)} == {"1080p"}
