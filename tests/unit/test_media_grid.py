"""Every frame in one segment, every segment in one chunk, nothing between."""

from fractions import Fraction
from itertools import chain
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.media.orders import Timing
from telecine.media.plain_json import from_plain, to_plain
from telecine.media.source import Packets, Samples
from telecine.media.timeline.grid import chunks_of, span_of, span_of_sound, timing_of
from telecine.media.timeline.index import build_index

RATES = st.one_of(
    st.sampled_from([Fraction(24_000, 1001), Fraction(25), Fraction(60_000, 1001), Fraction(25, 2)]),
    st.fractions(5, 60, max_denominator=1001),
)
TIMINGS = st.builds(
    timing_of,
    RATES,
    st.integers(1, 20_000),
    segment=st.sampled_from([Fraction(1), Fraction(2), Fraction(6)]),
    gop=st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]),
)


@pytest.mark.parametrize(
    ("rate", "gop", "per_segment"),
    [
        (Fraction(24_000, 1001), 48, 144),
        (Fraction(24), 48, 144),
        (Fraction(25), 50, 150),
        (Fraction(30_000, 1001), 60, 180),
        (Fraction(30), 60, 180),
        (Fraction(50), 100, 300),
        (Fraction(60_000, 1001), 120, 360),
        (Fraction(60), 120, 360),
        (Fraction(25, 2), 25, 75),
    ],
)
def test_segments_are_whole_frames(rate: Fraction, gop: int, per_segment: int) -> None:
    timing = timing_of(rate, 1_000)

    assert (timing.gop, timing.per_segment) == (gop, per_segment)


@given(rate=RATES)
def test_no_segment_is_longer_than_players_allow(rate: Fraction) -> None:
    timing = timing_of(rate, 10_000)

    assert timing.per_segment / rate <= Fraction(13, 2)


@given(timing=TIMINGS, slots=st.integers(1, 200))
def test_each_frame_is_in_one_segment_of_one_chunk(timing: Timing, slots: int) -> None:
    chunks = chunks_of(timing.segments, slots)

    by_segment = chain.from_iterable(timing.frames_of(k) for chunk in chunks for k in chunk.segments)
    by_chunk = chain.from_iterable(chunk.frames_of(timing) for chunk in chunks)

    assert list(by_segment) == list(range(timing.frames))
    assert list(by_chunk) == list(range(timing.frames))


@given(segments=st.integers(1, 3_000), slots=st.integers(1, 500), dice=st.randoms(use_true_random=False))
def test_chunks_are_as_equal_as_can_be_and_never_long(segments: int, slots: int, dice: Random) -> None:
    head_starts = [dice.random() for _ in range(segments * dice.randrange(2))]
    chunks = chunks_of(segments, slots, head_starts)
    counts = [chunk.count for chunk in chunks]

    assert list(chain.from_iterable(chunk.segments for chunk in chunks)) == list(range(segments))
    longest = min(max(1, -(-segments // (2 * slots))), 5)
    assert max(counts) <= longest
    assert len(counts) == -(-segments // longest)
    assert max(counts) - min(counts) <= 1


def test_each_slot_gets_two_chunks_until_they_are_long_enough() -> None:
    assert [chunk.count for chunk in chunks_of(10, 2)] == [3, 3, 2, 2]
    assert [chunk.count for chunk in chunks_of(5, 8)] == [1] * 5
    assert [chunk.count for chunk in chunks_of(11, 1)] == [4, 4, 3]


def test_longer_chunks_stand_where_little_is_decoded_in_vain_and_both_slots_end_together() -> None:
    # Keyframes at 0, 12, 30 and 42 seconds; the last two slots would end a segment apart with 2, 3, 2, 3.
    head_starts = [0, 0.1, 0, 0.1, 0.2, 0, 0.1, 0, 0.1, 0.2]

    assert [chunk.count for chunk in chunks_of(10, 2, head_starts)] == [2, 3, 3, 2]
    assert [chunk.count for chunk in chunks_of(10, 2, [0] * 10)] == [3, 3, 2, 2]
    assert [chunk.count for chunk in chunks_of(11, 1, [0, 0, 0, 1, 9, 9, 9, 1, 9, 9, 9])] == [3, 4, 4]


def test_a_long_film_is_cut_without_trying_thousands_of_orders() -> None:
    # 4,799 segments are 960 chunks, of which one is shorter: 960 orders of 960 chunks would take seconds.
    counts = [chunk.count for chunk in chunks_of(4_799, 2, [0.5] * 4_799)]

    assert (counts.count(5), counts[-1]) == (959, 4)


@given(timing=TIMINGS)
def test_ticks_of_the_track_are_whole(timing: Timing) -> None:
    assert timing.step == timing.timescale / timing.rate
    assert from_plain(Timing, to_plain(timing)) == timing


def test_sound_is_cut_where_the_pictures_are() -> None:
    times = tuple(1_000 + k * 40 for k in range(400))
    index = build_index(Packets(time_base=Fraction(1, 1000), pts=times, keys=times[:1]))

    film = span_of(index, timing_of(index.shown_rate, index.shown_frames))

    assert (film.start, film.length) == (1, 16)
    assert film.borders == (0, 6, 12)


@given(length=st.integers(1, 10_000_000))
def test_sound_alone_is_cut_every_six_seconds_without_a_tiny_rest(length: int) -> None:
    film = span_of_sound(Samples(stream=0, time_base=Fraction(1, 48_000), start=480, end=480 + length))

    durations = [stop - start for start, stop in zip(film.borders, (*film.borders[1:], film.length), strict=True)]
    assert (film.start, film.length) == (Fraction(1, 100), Fraction(length, 48_000))
    assert all(duration == 6 for duration in durations[:-1])
    assert 0 < durations[-1] < Fraction(32, 5)
    assert durations[-1] >= Fraction(2, 5) or len(durations) == 1
