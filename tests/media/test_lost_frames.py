"""A film that lost one picture shows the one before it twice and every other one once, whatever the clock."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from tests.media.make_video import Film, Shot, shoot
from tests.media.timeline import look

NTSC = Fraction(1000, 1001)
RATES = {
    "24": Fraction(24), "23.976": 24 * NTSC, "25": Fraction(25), "30": Fraction(30), "29.97": 30 * NTSC,
    "60": Fraction(60),
}  # fmt: skip
FORMATS = {"mp4": "mp4", "mkv": "matroska", "ts": "mpegts", "avi": "avi"}
COUNT, LOST = 100, 41
X264 = "keyint=24:min-keyint=24:scenecut=0:b-adapt=0"


def film_without_one(rate: Fraction, format: str) -> Film:
    return Film(
        format=format,
        rate=rate,
        shots=(Shot(count=COUNT - 1, size=(128, 72)),),
        times=tuple(k for k in range(COUNT) if k != LOST),
        # AVI knows only the order of decoding: with B-frames it cannot say which picture is missing.
        options={"x264-params": f"{X264}:bframes={0 if format == 'avi' else 2}"},
        voices=(),
    )


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("rate", RATES)
def test_one_lost_picture_is_one_repeated_picture(rate: str, suffix: str, tmp_path: Path) -> None:
    path = shoot(tmp_path / f"film.{suffix}", film_without_one(RATES[rate], FORMATS[suffix]))

    seen = look(path)

    pictures = list(range(COUNT - 1))
    assert seen.index.shown_rate == RATES[rate]
    assert seen.numbers() == [*pictures[:LOST], LOST - 1, *pictures[LOST:]]
