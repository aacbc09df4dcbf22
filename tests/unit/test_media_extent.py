"""How long a film is when its sound starts before its pictures or ends after them."""

from fractions import Fraction

import pytest

from telecine.media.source import Packets, Samples
from telecine.media.timeline.extent import MAX_LAG_SECONDS, MAX_LEAD_SECONDS, extent_of
from telecine.media.timeline.grid import timing_for
from telecine.media.timeline.index import Index, build_index

MILLI = Fraction(1, 1000)
HOUR = Fraction(3600)


def pictures(count: int = 50, start: int = 10_000) -> Index:
    times = tuple(start + 40 * n for n in range(count))
    return build_index(Packets(time_base=MILLI, pts=times, keys=times[:1], last_duration=40))


def sound(start: int, end: int, stream: int = 1) -> Samples:
    return Samples(stream=stream, time_base=MILLI, start=start, end=end)


def fitted(*heard: Samples, index: Index | None = None, most: Fraction = HOUR, segment: int = 6):  # type: ignore[no-untyped-def]
    index = index or pictures()
    return extent_of(index, timing_for(index, segment=Fraction(segment), gop=Fraction(2)), heard, most)


@pytest.mark.parametrize("heard", [(), (sound(10_000, 12_000),), (sound(9_901, 12_046),), (sound(11_000, 11_500),)])
def test_pictures_alone_say_how_many_frames_there_are(heard: tuple[Samples, ...]) -> None:
    film = fitted(*heard)

    assert (film.index.lead, film.timing.frames) == (0, 50)
    assert film.span.start == 10
    assert film.warnings == ()


def test_the_first_picture_waits_in_whole_frames() -> None:
    film = fitted(sound(8_990, 12_000))

    assert (film.index.lead, film.timing.frames) == (26, 76)
    assert film.span.start == 10 - Fraction(26, 25)
    times = film.index.times_of(film.timing)
    assert times[:27] == (10_000,) * 27
    assert times[27:] == tuple(range(10_040, 12_000, 40))
    assert film.index.head_start(film.timing, 30) == 4
    assert not film.index.drops(times)


def test_a_variable_rate_waits_as_well() -> None:
    odd = Packets(time_base=MILLI, pts=(10_000, 10_040, 10_150, 10_700, 11_000), keys=(10_000,), last_duration=40)
    index = build_index(odd)
    timing = timing_for(index)

    film = fitted(sound(9_000, 11_000), index=index)

    assert index.rate is None
    assert film.index.times_of(film.timing)[film.index.lead :] == index.times_of(timing)
    assert set(film.index.times_of(film.timing)[: film.index.lead]) == {10_000}


def test_the_longest_track_says_when_the_film_ends() -> None:
    film = fitted(sound(10_000, 12_000), sound(10_000, 13_010, stream=2))

    assert film.timing.frames == 76
    assert film.index.times_of(film.timing)[-27:] == (11_960,) * 27
    assert film.span.length == Fraction(76, 25)


def test_a_little_more_sound_goes_on_alone() -> None:
    film = fitted(sound(10_000, 12_030))
    longer = fitted(sound(10_000, 12_045))

    assert film.timing.frames == longer.timing.frames == 50
    assert film.span.length == Fraction(203, 100)
    assert longer.span.length == Fraction(204, 100)  # one picture more, and no further


def test_but_not_where_the_last_segment_would_be_too_long() -> None:
    film, padded = fitted(sound(10_000, 12_040), segment=2), fitted(sound(10_000, 12_021), segment=2)

    assert (film.timing.frames, film.timing.segments) == (51, 2)
    assert (padded.timing.frames, padded.timing.segments) == (50, 1)


def test_a_track_with_another_clock_is_told() -> None:
    early = 10_000 - 1000 * MAX_LEAD_SECONDS - 5_000

    film = fitted(sound(early, 12_000), sound(9_000, 12_000, stream=2))

    assert film.index.lead == 25
    why = "they are more than 10 minutes before the first picture"
    assert film.warnings == (f"audio stream 1: its first 604.0 s are left out, because {why}",)


def test_a_film_does_not_grow_longer_than_is_allowed() -> None:
    film = fitted(sound(10_000, 3_700_000), most=HOUR)

    assert film.timing.frames == 25 * 3600
    assert film.warnings == (
        "audio stream 1: its last 90.0 s are left out, because the film would be longer than max_source_seconds allows",
    )


def test_pictures_that_are_longer_than_that_are_for_others_to_refuse() -> None:
    film = fitted(sound(10_000, 20_000), most=Fraction(1))

    assert film.timing.frames == 50


LATE = 12_000 + 1000 * MAX_LAG_SECONDS + 1


def test_sound_that_goes_on_long_after_the_last_picture_has_another_clock() -> None:
    leapt = Samples(stream=1, time_base=MILLI, start=10_000, end=LATE + 3_000, gaps=((12_800, LATE),))

    film = fitted(leapt, sound(LATE, LATE + 5_000, stream=2))

    assert film.timing.frames == 70
    why = "they are more than 10 minutes after the last picture"
    assert film.warnings == (
        f"audio stream 1: its last 3.0 s are left out, because {why}",
        f"audio stream 2: its last 5.0 s are left out, because {why}",
    )


def test_a_gap_within_the_film_or_soon_after_it_is_one_of_the_film() -> None:
    pictures_for_hours = pictures(50_000)
    inside = Samples(stream=1, time_base=MILLI, start=10_000, end=2_000_000, gaps=((20_000, 1_900_000),))
    after = Samples(stream=1, time_base=MILLI, start=10_000, end=LATE + 999, gaps=((11_000, LATE - 1),))

    assert fitted(inside, index=pictures_for_hours).warnings == ()
    assert fitted(after).span.length == 603
    assert fitted(after).warnings == ()
