"""What a second run, a longer sound or another set of tracks leads to: each was once a dead end or a loss."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from telecine.apps.transcode.stages.child_calls import made_file
from telecine.errors import ChildFailed
from tests.media.make_video import ffmpeg
from tests.media.transcode_env import Story, Theatre, play, small, until

Source = Callable[[str], Path]


def partly(film: Path) -> Story:
    """A first run that ends when the film is fetched."""

    async def story(house: Theatre) -> None:
        job_id = await house.begun(small(film))

        async def fetched() -> bool:
            return ("fetch", "done") in await house.attempts(job_id)

        await until(fetched, "the film is fetched")

    return story


def test_a_file_that_was_only_touched_is_still_the_same_film(source: Source, tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.write_bytes(source("mp4-h264").read_bytes())

    async def second(house: Theatre) -> None:
        os.utime(film)
        job = await house.completed(small(film))
        assert job.id == 1

    play(partly(film), tmp_path)
    play(second, tmp_path)


def test_sound_that_goes_on_after_the_last_picture_is_heard_to_its_end(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    ffmpeg(
        "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=10:duration=2", "-f", "lavfi", "-i", "sine=duration=5",
        "-c:v", "libx264", "-c:a", "aac", film,
    )  # fmt: skip

    async def story(house: Theatre) -> None:
        job = await house.completed(small(film))
        plan = await house.views.result(job.id, "fetch")

        assert plan["timing"]["frames"] in (50, 51)

    play(story, tmp_path)


def test_a_track_is_taken_over_only_if_it_is_made_of_the_same_stream(tmp_path: Path) -> None:
    film = _two_tracks(tmp_path)

    async def story(house: Theatre) -> None:
        first = await house.completed(small(film, audio="first"))
        again = await house.completed(small(film, audio="all", qualities=["90p"]))

        before = await house.views.result(first.id, "fetch")
        plan = await house.views.result(again.id, "fetch")
        assert before["sounds"][0]["sound"]["stream"] == 2
        assert [one["sound"]["stream"] for one in plan["sounds"]] == [1, 2]
        assert "audio-1" not in plan["carried"]

    play(story, tmp_path)


def _two_tracks(folder: Path) -> Path:
    film = folder / "film.mkv"
    ffmpeg(
        "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=10:duration=2", "-f", "lavfi", "-i", "sine=220:duration=2",
        "-f", "lavfi", "-i", "sine=880:duration=2", "-map", "0", "-map", "1", "-map", "2", "-c:v", "libx264",
        "-c:a", "aac", "-disposition:a:0", "0", "-disposition:a:1", "default", film,
    )  # fmt: skip
    return film


@pytest.mark.parametrize("name", ["/etc/hostname", "../x", "a/b", "", ".."])
def test_a_file_that_a_child_names_outside_its_folder_is_not_touched(name: str, tmp_path: Path) -> None:
    class Desk:
        scratch = tmp_path

    with pytest.raises(ChildFailed, match="not its own"):
        made_file(Desk(), name)  # type: ignore[arg-type]


def test_a_film_that_was_moved_goes_on_from_where_it_was_found_again(source: Source, tmp_path: Path) -> None:
    film, elsewhere = tmp_path / "film.mp4", tmp_path / "renamed.mp4"
    film.write_bytes(source("mp4-h264").read_bytes())

    async def found_again(house: Theatre) -> None:
        film.rename(elsewhere)
        assert await house.begun(small(elsewhere)) == 1

    async def second(house: Theatre) -> None:
        assert (await house.ended(1)).status == "completed"
        videos = (await house.parts.engine.subjects.list("video")).items
        assert [video.id.partition("-")[0] for video in videos] == ["film"]

    play(partly(film), tmp_path)
    play(found_again, tmp_path, working=False)
    play(second, tmp_path)
