"""The tape under a track, to the sample: no gap, nothing twice, everything at its time; and how channels are mixed."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import av
import pytest
from av.audio.frame import AudioFrame

from telecine.media.child.sound.audio_timeline import AudioRange, blocks
from telecine.media.child.sound.downmix import matrix, pan

TAPE = AudioRange(start=0, time_base=Fraction(1, 48_000), rate=48_000, channels=1, samples=10_000)


def ramp(first: int, count: int, pts: int | None) -> AudioFrame:
    """Samples that say their number."""
    frame = AudioFrame(format="fltp", layout="mono", samples=count)
    frame.sample_rate, frame.pts, frame.time_base = 48_000, pts, Fraction(1, 48_000)
    frame.planes[0].update(array("f", range(first, first + count)).tobytes().ljust(frame.planes[0].buffer_size, b"\0"))
    return frame


def taped(frames: Sequence[AudioFrame], tape: AudioRange = TAPE) -> list[int]:
    samples = array("f")
    for block in stamped(blocks(iter(frames), tape)):
        samples.frombytes(bytes(block.planes[0])[: block.samples * 4])
    return [int(one) for one in samples]


def stamped(made: Iterator[AudioFrame]) -> Iterator[AudioFrame]:
    at = 0
    for block in made:
        assert block.pts == at
        at += block.samples
        yield block


def test_what_sounds_before_the_film_is_cut_to_the_sample() -> None:
    frames = [ramp(n, 1000, n - 2345) for n in range(0, 20_000, 1000)]

    assert taped(frames) == list(range(2345, 12_345))


def test_a_track_that_begins_later_and_ends_earlier_is_filled_with_silence() -> None:
    assert taped([ramp(1, 1000, 500)]) == [0] * 500 + list(range(1, 1001)) + [0] * 8500


def test_times_that_tremble_are_not_gaps() -> None:
    frames = [ramp(n, 1000, n + (n // 1000 % 3) * 30) for n in range(0, 12_000, 1000)]

    assert taped(frames) == list(range(10_000))


def test_a_gap_is_filled_and_an_overlap_trimmed() -> None:
    gap = [ramp(1, 1000, 0), ramp(2001, 1000, 5000)]
    overlap = [ramp(1, 4000, 0), ramp(1, 10_000, 2000)]

    assert taped(gap) == [*range(1, 1001), *[0] * 4000, *range(2001, 3001), *[0] * 4000]
    assert taped(overlap, replace(TAPE, samples=6000))[:4000] == list(range(1, 4001))
    assert taped([ramp(1, 1000, 0), ramp(1, 1000, 9000), ramp(7, 1000, 3000)])[9000:] == list(range(1, 1001))


def test_frames_without_a_time_follow_on_the_one_before() -> None:
    assert taped([ramp(0, 6000, 0), ramp(6000, 6000, None)]) == list(range(10_000))


def test_a_change_of_kind_in_mid_track_keeps_the_time() -> None:
    other = AudioFrame(format="s16", layout="stereo", samples=4410)
    other.sample_rate, other.pts, other.time_base = 44_100, 3000, Fraction(1, 48_000)
    other.planes[0].update(bytes(other.planes[0].buffer_size))

    samples = taped([ramp(1, 3000, 0), other, ramp(1, 2000, 7800)])

    assert samples[:3000] == list(range(1, 3001))
    assert samples[7800:9800] == list(range(1, 2001))


# --- channels ----------------------------------------------------------------------------------------------------

LAYOUTS = [
    "mono",
    "stereo",
    "2.1",
    "3.0",
    "quad",
    "4.0",
    "5.0",
    "5.1",
    "5.1(side)",
    "6.1",
    "7.1",
    "7.1(wide)",
    "downmix",
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("wanted", [1, 2, 6])
def test_no_mix_can_clip_and_none_is_silent(layout: str, wanted: int) -> None:
    rows = matrix([one.name for one in av.AudioLayout(layout).channels], wanted)

    assert all(0 <= sum(row) <= 1 for row in rows)
    assert max(sum(row) for row in rows) > 0.999


def test_what_fits_is_left_alone() -> None:
    assert pan(["FL", "FR"], 2) is None
    assert pan(["FL", "FR", "FC", "LFE", "BL", "BR"], 6) is None


def test_mono_goes_to_both_sides_at_full_level_and_lfe_stays_out_of_stereo() -> None:
    assert matrix(["FC"], 2) == [[1.0], [1.0]]
    left, right = matrix(["FL", "FR", "FC", "LFE", "BL", "BR"], 2)
    assert (left[0], left[1], left[3], left[5]) == (pytest.approx(0.414213, abs=2e-6), 0, 0, 0)
    assert left[2] == right[2] == pytest.approx(0.292893, abs=2e-6)
