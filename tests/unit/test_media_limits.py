"""What may not come in is refused in one sentence that says what to do."""

from dataclasses import replace
from fractions import Fraction

import pytest

from telecine.errors import MediaRefused
from telecine.media.limits import SourceBounds, check_index, check_source
from telecine.media.source import Packets, Picture, Sound, Source
from telecine.media.timeline.index import build_index

PICTURE = Picture(stream=0, codec="h264", width=1920, height=1080, time_base=Fraction(1, 1000))
SOUND = Sound(stream=1, codec="aac", rate=48_000, channels=2, time_base=Fraction(1, 48_000))
SOURCE = Source(format="mov", size=10**9, duration=Fraction(7_200), picture=PICTURE, sounds=(SOUND,), streams=2)


@pytest.mark.parametrize(
    "source", [SOURCE, replace(SOURCE, picture=None), replace(SOURCE, sounds=()), replace(SOURCE, duration=None)]
)
def test_an_ordinary_source_comes_in(source: Source) -> None:
    check_source(source, SourceBounds())


@pytest.mark.parametrize(
    ("source", "code", "sentence"),
    [
        (replace(SOURCE, picture=None, sounds=()), "no_media", "neither video nor audio; give a media file"),
        (replace(SOURCE, size=10**12), "too_large", "has 1000.0 GB, and at most 214.7 GB are taken; make it smaller"),
        (replace(SOURCE, streams=65), "too_many_streams", "has 65 streams, and at most 64 are taken"),
        (replace(SOURCE, duration=Fraction(43_201)), "too_long", "lasts 12:00:01, and at most 12:00:00 are taken"),
        (
            replace(SOURCE, picture=replace(PICTURE, width=8_000, height=8_000)),
            "too_many_pixels",
            "is 8000×8000, and a frame may have at most 37748736 pixels; make it smaller or raise max_pixels",
        ),
        (
            replace(SOURCE, picture=replace(PICTURE, width=20_000, height=10)),
            "too_many_pixels",
            "no side may be longer than 16384 pixels",
        ),
        (
            replace(SOURCE, picture=replace(PICTURE, sar=Fraction(50))),
            "too_many_pixels",
            "is 96000×1080, and no side may be longer",
        ),
        (replace(SOURCE, picture=replace(PICTURE, width=0)), "no_size", "has no size; check that the file is whole"),
    ],
)
def test_what_is_too_much_is_refused(source: Source, code: str, sentence: str) -> None:
    with pytest.raises(MediaRefused) as refused:
        check_source(source, SourceBounds())

    assert (refused.value.code, refused.value.permanent) == (code, True)
    assert sentence in str(refused.value)


def test_a_source_that_lied_about_its_length_is_refused_by_its_index() -> None:
    index = build_index(Packets(time_base=Fraction(1, 1000), pts=(0, 40, 10**9), keys=(0,)))

    with pytest.raises(MediaRefused, match="lasts 277:46:40") as refused:
        check_index(index, SourceBounds())

    assert refused.value.code == "too_long"


def test_a_thousand_frames_per_second_are_refused() -> None:
    fast = tuple(range(1_000))
    uneven = tuple(k + (k > 500) for k in range(1_000))

    for pts in (fast, uneven):
        index = build_index(Packets(time_base=Fraction(1, 1000), pts=pts, keys=(0,)))
        with pytest.raises(MediaRefused, match="at most 240 are taken"):
            check_index(index, SourceBounds())
