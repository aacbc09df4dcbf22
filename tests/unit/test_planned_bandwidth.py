"""What a master playlist promises before anything was measured."""

import re
from dataclasses import replace
from fractions import Fraction

import pytest

from telecine.media.hls.playlists import Kind, master
from telecine.media.orders import Timing
from tests.support.films import a_film, a_video


def uri(kind: Kind, rung: str, number: int) -> str:
    return f"{rung}/{kind}-{number}"


@pytest.mark.parametrize(
    ("frames", "seconds"),
    [(1500, 6), (1500 + 75, 3), (1500 + 74, 6), (20, Fraction(4, 5))],
    ids=["whole segments", "half a segment at the end counts", "less does not", "one short segment"],
)
def test_the_planned_bandwidth_covers_a_full_buffer_in_the_shortest_segment_that_counts(
    frames: int, seconds: Fraction
) -> None:
    timing = Timing(rate=Fraction(25), frames=frames, gop=50, per_segment=150)
    video = replace(a_video(sizes=()), rung=replace(a_video().rung, maxrate=900_000, bufsize=1_200_000))

    growing = master(replace(a_film(video, timing=timing, audios=()), growing=True), uri)

    [said] = re.findall(r"STREAM-INF:BANDWIDTH=(\d+).*FRAME-RATE", growing)
    assert int(said) == 900_000 + 1_200_000 / seconds
