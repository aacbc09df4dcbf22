"""Which rate the times of a source show, whatever clock they were written with."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.media.timeline.frame_rates import STANDARD, USUAL, fit, output_rate, snap, typical

MS = Fraction(1, 1000)
TS = Fraction(1, 90_000)
QUICKTIME = Fraction(1, 600)
NTSC_24 = Fraction(24_000, 1001)


def shown_at(rate: Fraction, frames: int, time_base: Fraction, start: int = 0) -> list[int]:
    return [start + round(k / rate / time_base) for k in range(frames)]


@given(
    rate=st.sampled_from(USUAL),
    frames=st.integers(1_500, 2_000),
    start=st.integers(-100_000, 100_000),
    time_base=st.sampled_from((MS, TS, QUICKTIME)),
)
def test_a_usual_rate_is_found_through_any_clock(rate: Fraction, frames: int, start: int, time_base: Fraction) -> None:
    assert fit(shown_at(rate, frames, time_base, start), time_base) == rate


@given(rate=st.sampled_from(USUAL))
def test_a_rate_that_passed_through_milliseconds_is_found_on_a_finer_clock(rate: Fraction) -> None:
    copied = [90 * time for time in shown_at(rate, 1_500, MS)]

    assert fit(copied, TS) == rate


@pytest.mark.parametrize(
    "rate", [Fraction(25, 2), Fraction(90), Fraction(1), Fraction(18), Fraction(72), 90 * Fraction(1000, 1001)]
)
def test_an_unusual_constant_rate_is_found_too(rate: Fraction) -> None:
    assert fit(shown_at(rate, 500, MS), MS) == rate


def test_equal_steps_are_a_rate_whatever_it_is() -> None:
    assert fit([0, 7_777, 15_554, 23_331], TS) == Fraction(90_000, 7_777)


def test_what_a_short_film_cannot_tell_is_told_by_the_container() -> None:
    few = shown_at(NTSC_24, 5, MS)

    assert fit(few, MS, NTSC_24) == NTSC_24
    assert fit(few, MS, Fraction(24)) == 24


def test_a_claim_that_the_times_deny_is_ignored() -> None:
    assert fit(shown_at(Fraction(25), 50, MS), MS, Fraction(30)) == 25


def test_one_lost_frame_makes_a_rate_variable_on_every_clock() -> None:
    times = shown_at(Fraction(25), 500, MS)
    del times[250]

    assert fit(times, MS) is None
    assert fit([time // 40 for time in times], Fraction(1, 25)) is None


def test_a_slow_drift_is_no_constant_rate() -> None:
    assert fit([k * 40 + k * k // 5_000 for k in range(500)], MS) is None


@given(rate=st.fractions(Fraction(1, 100), 1_000, max_denominator=2_000))
def test_the_output_is_never_faster_than_sixty_and_shows_frames_evenly(rate: Fraction) -> None:
    shown = output_rate(rate)

    assert 5 <= shown <= 60
    ratio = max(rate / shown, shown / rate)
    assert ratio.denominator == 1
    assert ratio.numerator.bit_count() == 1
    assert shown == rate or not 5 <= rate <= 60


@given(rate=st.fractions(Fraction(1, 10), 500))
def test_a_variable_rate_becomes_the_nearest_standard_one(rate: Fraction) -> None:
    assert all(abs(snap(rate) - rate) <= abs(other - rate) for other in STANDARD)


def test_pauses_say_nothing_about_the_rate() -> None:
    bursts = [second * 10_000 + k * 33 for second in range(10) for k in range(60)]

    assert snap(typical(bursts, MS)) == 30


@pytest.mark.parametrize("rate", STANDARD)
def test_a_film_that_lost_frames_keeps_its_rate(rate: Fraction) -> None:
    times = [round(n * 90_000 / rate) for n in range(200) if n % 7 and n % 11 > 1]

    assert fit(times, Fraction(1, 90_000)) is None
    assert snap(typical(times, Fraction(1, 90_000))) == rate


def test_film_on_a_60_hz_clock_counts_both_steps() -> None:
    times = [n * 5 // 2 * 1000 for n in range(100)]

    assert snap(typical(times, Fraction(1, 60_000))) == 24
