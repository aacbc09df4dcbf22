"""No sound is lost at either end of a film: pictures wait for it, and stay until it has ended. Decoded, not assumed."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.videos.progress import progress_of
from tests.media.make_video import Film, Shot, Voice, ffmpeg, shoot
from tests.media.transcode_env import Theatre, faults_of, joined, numbers_of, play, renditions, seconds_in, small

PICTURES = 50  # two seconds
CLOCK = Fraction(3)  # when the first picture is shown, so that there is time before it


def film(path: Path, format: str, *voices: Voice) -> Path:
    codec = "mpeg2video" if format == "mpegts" else "libx264"
    return shoot(path, Film(format=format, codec=codec, shots=(Shot(count=PICTURES),), start=CLOCK, voices=voices))


def transcoded(path: Path, folder: Path, **wishes: Any) -> tuple[Path, dict[str, Any]]:
    """The exported film, after all readers have looked at it, and its plan."""
    found: list[tuple[Path, dict[str, Any]]] = []

    async def story(house: Theatre) -> None:
        job = await house.completed(small(path, verify="full", **wishes))
        found.append((await house.exported(job.id), await house.views.result(job.id, "fetch")))
        told = (await progress_of(house.views, job.id)).warnings  # what the command line and HTTP show
        assert list(told) == found[0][1]["warnings"]

    play(story, folder)
    assert faults_of(found[0][0], folder / "faults") == []
    return found[0]


def numbers_in_all(folder: Path) -> list[int]:
    """The numbers of the pictures, which are the same in every rung."""
    first, *others = numbers_of(folder).values()
    assert all(numbers == first for numbers in others)
    return first


def heard_in(folder: Path) -> list[dict[int, float]]:
    """Of each track, which second of the film is heard when."""
    lists = renditions(folder)
    return [seconds_in(joined(folder, lists[name])) for name in sorted(lists) if lists[name].startswith("audio/")]


@pytest.mark.parametrize(("format", "suffix"), [("mp4", "mp4"), ("mpegts", "ts")])
def test_sound_before_the_first_picture_is_heard_while_that_one_waits(format: str, suffix: str, tmp_path: Path) -> None:
    path = film(tmp_path / f"film.{suffix}", format, Voice(start=Fraction(-3, 2), length=Fraction(7, 2)))

    out, plan = transcoded(path, tmp_path)

    numbers = numbers_in_all(out)
    early = len(numbers) - PICTURES
    assert numbers == [0] * early + list(range(PICTURES))
    assert 0 <= early - 37.5 < 2  # 1.5 s and what the coder needs to start, in whole frames
    assert plan["lead"] == early
    [sound] = heard_in(out)
    assert set(sound) == {-1 % 16, 0, 1}
    for second, name in ((-1, -1 % 16), (0, 0), (1, 1)):
        assert abs(sound[name] - (second + early / 25)) < 0.012, sound
    assert plan["warnings"] == []


def test_sound_is_heard_to_the_end_of_its_longest_track(tmp_path: Path) -> None:
    voices = Voice(language="eng", length=Fraction(1)), Voice(language="fra", length=Fraction(16, 5))
    path = film(tmp_path / "film.mkv", "matroska", *voices)

    out, plan = transcoded(path, tmp_path)

    numbers = numbers_in_all(out)
    assert numbers[:PICTURES] == list(range(PICTURES))
    assert set(numbers[PICTURES:]) == {PICTURES - 1}
    assert 80 <= len(numbers) <= 81  # 3.2 s
    assert [set(sound) for sound in heard_in(out)] == [{0}, {0, 1, 2, 3}]
    assert plan["warnings"] == []


def test_a_third_of_a_second_after_the_last_picture_is_not_lost(tmp_path: Path) -> None:
    path = film(tmp_path / "film.mp4", "mp4", Voice(start=Fraction(1, 2), length=Fraction(18, 10)))

    out, _ = transcoded(path, tmp_path)

    numbers = numbers_in_all(out)
    assert 57 <= len(numbers) <= 59  # 2.3 s
    [sound] = heard_in(out)
    assert set(sound) == {1, 2}


def test_a_coder_s_lead_and_padding_add_no_picture(tmp_path: Path) -> None:
    early, late = Fraction(-1, 25), Fraction(1, 50)
    path = film(tmp_path / "film.ts", "mpegts", Voice(start=early, length=2 + late - early))

    out, plan = transcoded(path, tmp_path)

    assert numbers_in_all(out) == list(range(PICTURES))
    [sound] = heard_in(out)
    assert {0, 1} <= set(sound)
    assert abs(sound[1] - 1) < 0.012
    assert Fraction(plan["length"]) == 2
    assert Fraction(plan["sound_length"]) > 2  # the sound alone goes on


def test_tracks_without_pictures_are_heard_from_the_first_to_the_last(tmp_path: Path) -> None:
    voices = Voice(length=Fraction(3)), Voice(start=Fraction(2), length=Fraction(3))
    path = shoot(tmp_path / "film.mka", Film(format="matroska", shots=(), voices=voices))

    out, plan = transcoded(path, tmp_path)

    assert abs(Fraction(plan["length"]) - 5) < Fraction(1, 20)
    assert [set(sound) for sound in heard_in(out)] == [{0, 1, 2}, {2, 3, 4}]


def test_a_track_that_is_not_decoded_is_told_with_its_codec(tmp_path: Path) -> None:
    path = film(tmp_path / "whole.ts", "mpegts", Voice(language="eng"))
    ffmpeg(
        "-i", path, "-map", "0:v", "-map", "0:a", "-map", "0:a", "-c:v", "copy", "-c:a:0", "s302m", "-strict", "-2",
        "-c:a:1", "aac", tmp_path / "film.ts",
    )  # fmt: skip

    out, plan = transcoded(tmp_path / "film.ts", tmp_path)

    assert len(heard_in(out)) == 1
    assert plan["warnings"] == ["audio stream 1 is left out: s302m is not decoded"]
