"""What a rung is scaled from: the source, or another rung's picture where that costs next to nothing."""

from dataclasses import replace
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from telecine.media.ladders.ladder import LADDERS, ChosenRungs, Ladder, LadderStep, climb, shared
from telecine.media.source import Picture
from tests.unit.test_media_ladder import ANY_LADDER, FILM, PICTURES, RATES, a_picture


def origins(climbed: ChosenRungs) -> dict[str, tuple[int, int]]:
    return {rung.name: rung.scaled_from for rung in climbed.rungs if rung.scaled_from}


def test_a_picture_that_goes_a_whole_number_of_times_into_another_rungs_is_scaled_from_that() -> None:
    full_hd = climb(LADDERS["web-compact"], a_picture(1920, 1080), FILM)
    ultra_hd = climb(LADDERS["web"], a_picture(3840, 2160), FILM)
    apple = climb(LADDERS["apple"], a_picture(1920, 1080), FILM)

    assert origins(full_hd) == {"360p": (1280, 720)}
    # Not from 1080 lines, which have lost too much, nor from 720, which were scaled twice already.
    assert origins(ultra_hd) == {"720p": (2560, 1440), "360p": (2560, 1440)}
    assert origins(apple) == {"360p": (1280, 720)}


def test_a_rung_without_the_other_is_scaled_from_the_source() -> None:
    picture = a_picture(1920, 1080)
    climbed = climb(LADDERS["web-compact"], picture, FILM)

    [small] = shared([rung for rung in climbed.rungs if rung.name == "360p"], picture)

    assert small.scaled_from is None


def test_a_rung_that_shall_lose_nothing_is_scaled_from_the_source() -> None:
    ladder = tuple(replace(step, lossless=True) for step in LADDERS["web-compact"])

    assert origins(climb(ladder, a_picture(1920, 1080), FILM)) == {}


# Half of the ladders are made of multiples, for a picture that is up to half as large again: most of these share.
MULTIPLES = st.builds(
    lambda unit, times, more: (
        tuple(LadderStep(name=f"r{k}", height=18 * unit * k, kbps=100 * k) for k in sorted(times)),
        a_picture(32 * unit * max(times) * more // 6, 18 * unit * max(times) * more // 6),
    ),
    st.integers(1, 20),
    st.sets(st.integers(1, 6), min_size=2, max_size=4),
    st.integers(6, 10),
)


@given(st.one_of(MULTIPLES, st.tuples(ANY_LADDER, PICTURES)), RATES)
def test_what_a_rung_is_scaled_from_is_another_rung_that_is_scaled_from_the_source(
    asked: tuple[Ladder, Picture], rate: Fraction
) -> None:
    ladder, picture = asked
    climbed = climb(ladder, picture, rate)

    straight = {(rung.width, rung.height) for rung in climbed.rungs if rung.scaled_from is None}
    for rung in climbed.rungs:
        if rung.scaled_from is not None:
            times = rung.scaled_from[0] // rung.width
            assert rung.scaled_from in straight - {picture.shown}
            assert 3 * rung.scaled_from[0] >= 2 * picture.shown[0]
            assert times >= 2
            assert rung.scaled_from == (times * rung.width, times * rung.height)
