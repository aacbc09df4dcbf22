"""Which rungs a source gets: never above it, never none, and playable by what the level promises."""

import json
from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.errors import BadSpec
from telecine.media.ladders.h264_levels import LEVELS, in_blocks
from telecine.media.ladders.ladder import LADDERS, ChosenRungs, Ladder, LadderStep, climb
from telecine.media.ladders.ladder_spec import read_ladder
from telecine.media.plain_json import from_plain, to_plain
from telecine.media.source import Picture

FILM = Fraction(24)
PICTURES = st.builds(
    lambda wide, high, sar, rotation: a_picture(wide, high, sar=sar, rotation=rotation),
    st.integers(16, 8_192),
    st.integers(16, 4_320),
    st.sampled_from([Fraction(1), Fraction(4, 3), Fraction(64, 45), Fraction(8, 9)]),
    st.sampled_from([0, 90, 180, 270]),
)
OWN = st.lists(
    st.builds(
        LadderStep,
        height=st.one_of(st.none(), st.integers(1, 2_160).map(lambda half: 2 * half)),
        kbps=st.integers(50, 40_000),
        required=st.booleans(),
    ),
    min_size=1,
    max_size=8,
).map(
    lambda steps: tuple(
        LadderStep(name=f"r{k}", height=s.height, kbps=s.kbps, required=s.required) for k, s in enumerate(steps)
    )
)
ANY_LADDER = st.one_of(st.sampled_from(list(LADDERS.values())), OWN)
RATES = st.sampled_from([Fraction(24_000, 1001), Fraction(25), Fraction(60)])


def a_picture(width: int, height: int, *, sar: Fraction = Fraction(1), rotation: int = 0) -> Picture:
    return Picture(
        stream=0, codec="h264", width=width, height=height, time_base=Fraction(1, 1000), sar=sar, rotation=rotation
    )


def sizes(climbed: ChosenRungs) -> dict[str, tuple[int, int]]:
    return {rung.name: (rung.width, rung.height) for rung in climbed.rungs}


def test_full_hd_gets_the_whole_compact_ladder() -> None:
    climbed = climb(LADDERS["web-compact"], a_picture(1920, 1080), FILM)

    assert sizes(climbed) == {"360p": (640, 360), "540p": (960, 540), "720p": (1280, 720), "1080p": (1920, 1080)}
    assert [(rung.crf, rung.maxrate, rung.bufsize, rung.level) for rung in climbed.rungs] == [
        (23, 1_200_000, 1_600_000, "3.0"),
        (23, 3_000_000, 4_000_000, "3.1"),
        (21, 4_500_000, 6_000_000, "3.1"),
        (21, 9_000_000, 12_000_000, "4.0"),
    ]
    assert climbed.skipped == ()


def test_rungs_above_the_source_are_skipped_with_the_reason() -> None:
    climbed = climb(LADDERS["web"], a_picture(1280, 720), FILM)

    assert [rung.name for rung in climbed.rungs] == ["360p", "480p", "540p", "720p"]
    assert [skipped.name for skipped in climbed.skipped] == ["1080p", "1440p", "2160p"]
    assert climbed.skipped[0].reason == "the source is 1280×720, and enlarging it would add nothing"


@pytest.mark.parametrize("picture", [a_picture(1080, 1920), a_picture(1920, 1080, rotation=90)])
def test_a_portrait_film_climbs_by_its_short_side(picture: Picture) -> None:
    assert sizes(climb(LADDERS["web-compact"], picture, FILM)) == {
        "360p": (360, 640),
        "540p": (540, 960),
        "720p": (720, 1280),
        "1080p": (1080, 1920),
    }


def test_an_anamorphic_film_comes_out_with_square_pixels() -> None:
    dvd = a_picture(720, 576, sar=Fraction(64, 45))

    assert sizes(climb(LADDERS["web-compact"], dvd, FILM)) == {"360p": (640, 360), "540p": (960, 540)}


def test_a_wide_film_that_fills_the_width_counts_as_that_rung() -> None:
    assert sizes(climb(LADDERS["web-compact"], a_picture(1920, 804), FILM)) == {
        "360p": (860, 360),
        "540p": (1290, 540),
        "720p": (1720, 720),
        "1080p": (1920, 804),
    }


def test_a_tiny_source_gets_one_rung_of_its_size() -> None:
    climbed = climb(LADDERS["web-compact"], a_picture(321, 181), FILM)

    assert sizes(climbed) == {"180p": (320, 180)}
    assert climbed.rungs[0].required
    assert [skipped.name for skipped in climbed.skipped] == ["360p", "540p", "720p", "1080p"]


def test_single_is_the_source_as_it_is() -> None:
    [rung] = climb(LADDERS["single"], a_picture(1920, 1080), FILM).rungs

    assert (rung.name, rung.width, rung.height, rung.maxrate) == ("1080p", 1920, 1080, 9_000_000)


def test_more_frames_per_second_need_a_higher_level() -> None:
    levels = {rung.name: rung.level for rung in climb(LADDERS["web"], a_picture(3840, 2160), Fraction(60)).rungs}

    assert levels == {
        "360p": "3.1", "480p": "3.1", "540p": "3.2", "720p": "3.2", "1080p": "4.2", "1440p": "5.1", "2160p": "5.2",
    }  # fmt: skip


@given(ladder=ANY_LADDER, picture=PICTURES, rate=RATES)
def test_nothing_is_enlarged_odd_or_missing(ladder: Ladder, picture: Picture, rate: Fraction) -> None:
    wide, high = picture.shown

    climbed = climb(ladder, picture, rate)

    assert climbed.rungs
    assert any(rung.required for rung in climbed.rungs)
    for rung in climbed.rungs:
        assert 2 <= rung.width <= wide
        assert 2 <= rung.height <= high
        assert rung.width % 2 == rung.height % 2 == 0


@given(ladder=ANY_LADDER, picture=PICTURES, rate=RATES)
def test_the_shape_stays_to_the_nearest_even_pixel(ladder: Ladder, picture: Picture, rate: Fraction) -> None:
    wide, high = picture.shown

    for rung in climb(ladder, picture, rate).rungs:
        scale = Fraction(min(rung.width, rung.height), min(wide, high))
        long = max(rung.width, rung.height)
        # The short side may itself have lost a pixel, in proportion.
        assert abs(long - max(wide, high) * scale) <= 2 + Fraction(max(wide, high), min(wide, high))


@given(ladder=ANY_LADDER, picture=PICTURES, rate=RATES)
def test_rungs_are_sorted_and_every_step_is_a_rung_or_skipped(ladder: Ladder, picture: Picture, rate: Fraction) -> None:
    climbed = climb(ladder, picture, rate)

    names = [rung.name for rung in climbed.rungs] + [skipped.name for skipped in climbed.skipped]
    pixels = [rung.width * rung.height for rung in climbed.rungs]
    assert len(set(names)) == len(names) >= len(ladder)
    assert {step.name for step in ladder if step.name} <= set(names)
    assert pixels == sorted(pixels)


@given(ladder=ANY_LADDER, picture=PICTURES, rate=RATES)
def test_a_rung_keeps_what_its_level_promises(ladder: Ladder, picture: Picture, rate: Fraction) -> None:
    levels = {level.name: level for level in LEVELS}

    for rung in climb(ladder, picture, rate).rungs:
        level = levels[rung.level]
        blocks = in_blocks(rung.width) * in_blocks(rung.height)
        assert blocks <= level.blocks
        assert blocks * rate <= level.blocks_per_second
        assert rung.maxrate <= level.rate * 1250
        assert rung.bufsize <= level.buffer * 1250
        # x264 keeps four frames for a pyramid of B frames, and the level must have room for them.
        assert max(rung.refs, 4 if rung.bframes > 1 else 2) <= floor(level.buffered_blocks / blocks)
        assert rung.encoder_maxrate < rung.maxrate < rung.peak_over(Fraction(6)) <= 1.5 * rung.bufsize


@given(ladder=ANY_LADDER, picture=PICTURES, rate=RATES)
def test_a_climb_comes_back_from_json(ladder: Ladder, picture: Picture, rate: Fraction) -> None:
    climbed = climb(ladder, picture, rate)

    assert from_plain(ChosenRungs, json.loads(json.dumps(to_plain(climbed)))) == climbed


def test_an_own_ladder_is_a_list_of_tables() -> None:
    ladder = read_ladder(
        [
            {"height": 360, "kbps": 500},
            {"height": 360, "kbps": 900, "required": False},
            {"height": "source", "name": "master", "crf": 18, "preset": "slow"},
        ]
    )

    assert [(step.name, step.height, step.kbps, step.required) for step in ladder] == [
        ("360p", 360, 500, True),
        ("360p-900", 360, 900, False),
        ("master", None, None, True),
    ]


def test_a_ladder_is_found_by_name_in_the_settings_first() -> None:
    own = {"web": [{"height": 240, "kbps": 300}], "tv": {"rungs": [{"height": 480, "kbps": 1000}]}}

    assert [step.name for step in read_ladder("web", own)] == ["240p"]
    assert [step.name for step in read_ladder("tv", own)] == ["480p"]
    assert read_ladder("apple", own) == LADDERS["apple"]


def test_optional_rungs_alone_still_have_one_that_must_succeed() -> None:
    ladder = read_ladder(
        [{"height": 90, "kbps": 100, "required": False}, {"height": 180, "kbps": 300, "required": False}]
    )

    assert [rung.required for rung in climb(ladder, a_picture(320, 180), FILM).rungs] == [True, False]


def test_the_source_rung_beside_one_of_its_size_has_a_name_of_its_own() -> None:
    ladder = read_ladder([{"height": 180, "kbps": 300}, {"height": "source"}])

    assert {rung.name for rung in climb(ladder, a_picture(320, 180), FILM).rungs} == {"180p", "180p-source"}


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("wbe", "there is no ladder 'wbe'; did you mean 'web'?"),
        ("cinema", "there is no ladder 'cinema'; use web-compact, web, apple or single"),
        ([], "a ladder is a name or a list of rungs"),
        ({"rungs": "720p"}, "a ladder is a name or a list of rungs"),
        (7, "a ladder is a name or a list of rungs"),
        (["720p"], "rung 1 of the ladder must be a table"),
        ([{"kbps": 5}], "rung 1 of the ladder has no height"),
        ([{"height": 720}], "rung 1 of the ladder has no kbps"),
        ([{"height": 721, "kbps": 5}], "height 721 must be even"),
        ([{"height": True, "kbps": 5}], "height must be a whole number from 2 to 4320, not True"),
        ([{"height": 720, "kbps": 0}], "kbps must be a whole number from 1 to 400000, not 0"),
        ([{"height": 720, "kpbs": 5}], "has an unknown key 'kpbs'; did you mean 'kbps'?"),
        ([{"height": 720, "kbps": 5, "name": "../up"}], "the name '../up' may have small letters"),
        ([{"height": 720, "kbps": 5, "name": "a"}, {"height": 72, "kbps": 5, "name": "a"}], "'a' is taken"),
        ([{"height": 720, "kbps": 5, "required": 1}], "required must be true or false, not 1"),
        ([{"height": 720, "kbps": 5, "preset": "turbo"}], "preset must be ultrafast, "),
        ([{"height": 720, "kbps": 5}] * 17, "at most 16 rungs; this one has 17"),
    ],
)  # fmt: skip
def test_a_wrong_ladder_is_refused_in_one_sentence(value: object, sentence: str) -> None:
    with pytest.raises(BadSpec) as refused:
        read_ladder(value)

    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_wrong_ladder_of_the_settings_is_named() -> None:
    with pytest.raises(BadSpec, match="ladder 'tv' of the settings: rung 1 of the ladder has no kbps"):
        read_ladder("tv", {"tv": [{"height": 720}]})
