"""A film goes in, a stream comes out: whole, in order, checked by others' programs; known as a video afterwards."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.videos.progress import TranscodeProgress, progress_of
from telecine.apps.transcode.videos.video_view import Video, video_of
from telecine.engine.queries.view_models import JobView
from telecine.media.hls.lint_text import parse
from tests.media.sources import KINDS
from tests.media.transcode_env import (
    Theatre,
    faults_of,
    joined,
    numbers_of,
    play,
    renditions,
    seconds_in,
    small,
    theatre,
)
from tests.support.postgres import fresh_schema

Source = Callable[[str], Path]
FRAMES = list(range(85))


@dataclass(frozen=True)
class Shown:
    """A job that has completed, and its film in a folder."""

    job: JobView
    folder: Path
    progress: TranscodeProgress
    video: Video
    attempts: list[tuple[str, str]]

    @property
    def master(self) -> Any:
        return parse("master.m3u8", (self.folder / "master.m3u8").read_text())

    @property
    def tracks(self) -> list[bytes]:
        return [joined(self.folder, path) for path in renditions(self.folder).values() if path.startswith("audio/")]


async def shown(house: Theatre, wishes: dict[str, Any], name: str = "out") -> Shown:
    job = await house.completed(wishes)
    assert job.subject is not None
    return Shown(
        job=job,
        folder=await house.exported(job.id, name),
        progress=await progress_of(house.views, job.id),
        video=await video_of(house.parts.engine, job.subject[1]),
        attempts=await house.attempts(job.id),
    )


@pytest.fixture(scope="module")
def films(source: Source, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Shown]:
    """Films of several kinds, made side by side by one worker."""
    wishes = {
        "mp4-h264": {"poster": True, "sprites": True, "verify": "full"},
        "m4a-audio-only": {"poster": True, "sprites": True},
        "mp4-no-audio": {},
        "mkv-three-languages": {},
        "mp4-shorter-than-a-segment": {},
        "ts-h264-open-gop": {},
    }
    folder = tmp_path_factory.mktemp("transcode")

    async def all_of_them() -> dict[str, Shown]:
        async with theatre(folder) as house:
            made = [shown(house, small(source(name), **own), name) for name, own in wishes.items()]
            return dict(zip(wishes, await asyncio.gather(*made), strict=True))

    return asyncio.run(all_of_them())


EACH = ["mp4-h264", "m4a-audio-only", "mp4-no-audio", "mkv-three-languages", "mp4-shorter-than-a-segment"]


@pytest.mark.parametrize("name", [*EACH, "ts-h264-open-gop"])
def test_nobody_has_anything_to_say_against_the_film(films: dict[str, Shown], name: str, tmp_path: Path) -> None:
    assert faults_of(films[name].folder, tmp_path / "scratch") == []


@pytest.mark.parametrize("name", [name for name in [*EACH, "ts-h264-open-gop"] if "audio-only" not in name])
def test_every_rung_has_every_frame_once_and_in_order(films: dict[str, Shown], name: str) -> None:
    numbers = list(KINDS[name].numbers)

    assert numbers_of(films[name].folder) == {"h264-90p": numbers, "h264-180p": numbers}


@pytest.mark.parametrize("name", ["mp4-h264", "mkv-three-languages", "m4a-audio-only"])
def test_every_second_is_heard_where_it_belongs(films: dict[str, Shown], name: str) -> None:
    tracks = [seconds_in(track) for track in films[name].tracks]

    assert len(tracks) == len(KINDS[name].voices)
    for track in tracks:
        assert list(track) == [0, 1, 2, 3]
        assert all(at == pytest.approx(second, abs=0.002) for second, at in track.items())


def test_every_attempt_succeeds_at_once(films: dict[str, Shown]) -> None:
    assert {outcome for film in films.values() for _, outcome in film.attempts} == {"done"}


def test_a_film_without_sound_has_no_audio_and_one_without_pictures_no_video(films: dict[str, Shown]) -> None:
    silent, blind = films["mp4-no-audio"], films["m4a-audio-only"]

    assert (len(silent.master.media), len(silent.master.variants)) == (0, 2)
    assert [path.split("/")[0] for path in renditions(blind.folder).values()] == ["audio"]
    assert [one.quality for one in blind.progress.qualities] == ["audio-1"]


def test_each_track_keeps_its_language_and_the_first_is_the_default(films: dict[str, Shown]) -> None:
    tracks = films["mkv-three-languages"].master.media

    assert [one.get("LANGUAGE") for one in tracks] == ["en", "de", "fr"]
    assert [one.get("DEFAULT") for one in tracks] == ["YES", "NO", "NO"]


def test_a_film_shorter_than_a_segment_is_one_segment(films: dict[str, Shown]) -> None:
    short = films["mp4-shorter-than-a-segment"]

    assert {one.segments_total for one in short.progress.qualities} == {1}
    assert len(list(short.folder.glob("video/*/seg_*.m4s"))) == 2


def test_poster_and_sprites_come_with_the_film(films: dict[str, Shown]) -> None:
    beside = {path.name for path in films["mp4-h264"].folder.iterdir() if path.is_file()}

    assert beside == {
        *("master.m3u8", "telecine-export.json"),
        *("poster.jpg", "poster_small.jpg", "sheet_000.jpg", "thumbs.vtt"),
    }
    assert "sheet_000.jpg#xywh=160,0,160,90" in (films["mp4-h264"].folder / "thumbs.vtt").read_text()


def test_sound_alone_needs_neither_poster_nor_sprites(films: dict[str, Shown]) -> None:
    stages = {stage.name: stage.state for stage in films["m4a-audio-only"].job.stages}

    assert (stages["poster"], stages["sprites"], stages["publish"]) == ("skipped", "skipped", "done")


def test_a_source_that_cannot_be_sought_in_is_remuxed_once(films: dict[str, Shown]) -> None:
    made = [one for one in films["ts-h264-open-gop"].attempts if one[0] == "fetch"]

    assert made == [("fetch", "done")]
    assert films["ts-h264-open-gop"].video.facts["duration_ms"] == 3400


def test_the_video_is_ready_and_its_facts_say_what_it_is(films: dict[str, Shown]) -> None:
    video = films["mp4-h264"].video

    assert (video.status, video.version) == ("ready", 1)
    assert video.id.startswith("film-")
    expected = {
        "duration_ms": 3400, "width": 320, "height": 180, "rate": "25", "qualities": ["90p", "180p"], "audio": ["und"]
    }  # fmt: skip
    assert {name: video.facts[name] for name in expected} == expected
    assert video.facts["bytes"] == sum(one.bytes for one in films["mp4-h264"].progress.qualities)


def test_on_postgres_the_same_film_comes_out(source: Source, tmp_path: Path, postgres_url: str) -> None:
    async def story(house: Theatre) -> None:
        film = await shown(house, small(source("mp4-h264")))

        assert numbers_of(film.folder) == {"h264-90p": FRAMES, "h264-180p": FRAMES}
        assert film.video.status == "ready"
        assert {one.status for one in film.progress.qualities} == {"completed"}

    with fresh_schema(postgres_url) as url:
        play(story, tmp_path, database_url=url)
