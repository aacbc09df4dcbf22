"""Other people's readers are silent on a correct film, and not on a damaged one."""

import shutil
from collections.abc import Callable
from pathlib import Path

import av
import pytest

from telecine.media.hls.export import HlsExport
from tests.media.cmaf import TIMING, a_real_film
from tests.media.patterns import bursts, heard, read_number
from tests.media.readers import ffmpeg_complaints, ffmpeg_frames, packager_complaints
from tests.media.transcode_env import Theatre, play

HIGH = "video/h264-240p"


@pytest.fixture(scope="module")
def correct(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shelf, folder = a_real_film(tmp_path_factory.mktemp("shelf")), tmp_path_factory.mktemp("film")
    with HlsExport(folder, "1") as export:
        export.finish(shelf.film, shelf.place)
    return folder


@pytest.fixture
def damaged(correct: Path, tmp_path: Path) -> Path:
    """The middle of a segment is another's."""
    folder = Path(shutil.copytree(correct, tmp_path / "film"))
    segment, other = folder / HIGH / "seg_00002.m4s", (folder / HIGH / "seg_00003.m4s").read_bytes()
    data = segment.read_bytes()
    half = len(data) // 2
    segment.write_bytes(data[:half] + other[: len(data) - half].ljust(len(data) - half, b"\0"))
    return folder


def test_ffmpeg_reads_every_stream_of_a_correct_film_in_silence(correct: Path) -> None:
    assert ffmpeg_complaints(correct) == []
    assert ffmpeg_frames(correct, f"{HIGH}/index.m3u8") == TIMING.frames


def test_the_packager_reads_a_correct_film_in_silence(correct: Path, tmp_path: Path) -> None:
    assert packager_complaints(correct, tmp_path) == []


def test_both_complain_about_damage(damaged: Path, tmp_path: Path) -> None:
    assert ffmpeg_complaints(damaged)
    with pytest.raises(ValueError, match="box"):  # our own reader, which counts its frames, is the first to see it
        packager_complaints(damaged, tmp_path)


def test_a_segment_that_is_missing_is_complained_about(correct: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(correct, tmp_path / "film"))
    (folder / HIGH / "seg_00002.m4s").unlink()

    assert ffmpeg_complaints(folder)
    assert ffmpeg_frames(folder, f"{HIGH}/index.m3u8") < TIMING.frames


def test_ffmpeg_and_what_is_made_of_it_show_pictures_and_sound_in_time(
    finished: Callable[[Path], None], tmp_path: Path
) -> None:
    """mpv, ffplay and many servers read with FFmpeg: its times are what their viewers see and hear."""
    folders: list[Path] = []

    async def story(house: Theatre) -> None:
        folders.append(await house.exported(1))

    finished(tmp_path / "house")
    play(story, tmp_path / "house", working=False)
    with av.open(str(folders[0] / "master.m3u8")) as film:
        shown = [(read_number(frame), frame.time) for frame in film.decode(video=0)]
    with av.open(str(folders[0] / "master.m3u8")) as film:
        sounds = list(film.decode(audio=0))
    begins = sounds[0].time or 0.0

    assert [number for number, _ in shown] == list(range(85))
    assert [time for _, time in shown] == pytest.approx([number / 25 for number in range(85)], abs=0.0001)
    assert {second: begins + at for second, at in bursts(heard(sounds), 48_000).items()} == pytest.approx(
        {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0}, abs=0.003
    )
