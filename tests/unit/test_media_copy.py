"""What is known of a source whose streams were copied into another file."""

from __future__ import annotations

from fractions import Fraction

from telecine.apps.transcode.stages.fetch import clock_warnings
from telecine.media.source import Sound, Source, retold


def source(*languages: str | None) -> Source:
    sounds = tuple(
        Sound(stream=number, codec="aac", rate=48000, channels=2, time_base=Fraction(1, 48000), language=language)
        for number, language in enumerate(languages, 1)
    )
    return Source(format="mpegts", size=1, duration=None, picture=None, sounds=sounds)


def languages_of(original: Source, copied: Source) -> list[str | None]:
    return [sound.language for sound in retold(original, copied).sounds]


def test_tracks_of_a_copy_keep_their_languages() -> None:
    assert languages_of(source("deu", "eng"), source(None, None)) == ["deu", "eng"]


def test_a_track_that_the_copy_lacks_shifts_no_language() -> None:
    assert languages_of(source("deu", "eng", "fra"), source("eng", "fra")) == ["eng", "fra"]
    assert languages_of(source("deu"), source("deu", "eng")) == ["deu", "eng"]


def test_a_clock_that_jumps_again_is_counted() -> None:
    leap = "the clock jumps at 3 s"

    assert clock_warnings([]) == []
    assert clock_warnings([leap]) == [f"{leap}; the parts were joined"]
    assert clock_warnings([leap] * 2) == [f"{leap}, and 1 more time; the parts were joined"]
    assert clock_warnings([leap] * 3) == [f"{leap}, and 2 more times; the parts were joined"]
