"""`telecine transcode` as people use it: a real process, its words, its exit codes, and what it leaves behind."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from telecine.apps.transcode.cli import growing_folder
from telecine.apps.transcode.cli.growing_folder import GrowingFolder
from telecine.media.hls.export import FolderBusy, HlsExport
from telecine.world import World
from tests.media.make_video import Film, Shot, shoot
from tests.media.transcode_env import Theatre, faults_of, numbers_of, play, small
from tests.media.transcode_shell import PATIENCE, Shell, until

Source = Callable[[str], Path]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(scope="module")
def long_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough to be interrupted; made quickly, encoded slowly."""
    film = Film(shots=(Shot(count=264),), voices=(), options={"x264-params": "keyint=25"})
    return shoot(tmp_path_factory.mktemp("long") / "long.mp4", film)


def test_a_film_is_made_once_and_told_in_figures(shell: Shell, source: Source, tmp_path: Path) -> None:
    film = Path(shutil.copy(source("mp4-h264"), tmp_path / "Big Film (1).mp4"))
    made = shell(film, "-o", "out")

    assert made.returncode == 0, made.stderr
    assert "180p" in made.stdout
    assert "as fast as it plays" in made.stdout
    assert "Watch it: mpv out/master.m3u8" in made.stdout
    assert faults_of(tmp_path / "out", tmp_path / "s") == []
    assert (tmp_path / "out/poster.jpg").exists()

    again = shell(film, "--json")

    assert again.returncode == 0
    told = json.loads(again.stdout)
    assert (told["how"], told["status"], told["job_id"]) == ("made before", "completed", 1)
    assert told["video"].startswith("big-film-1-")
    assert {one["quality"]: one["status"] for one in told["qualities"]} == {
        "90p": "completed", "180p": "completed", "audio-1": "completed"
    }  # fmt: skip
    assert Path(told["master"]).read_text().startswith("#EXTM3U")
    assert told["seconds"] == 3.4
    assert [json.loads(line)["status"] for line in again.stderr.splitlines()] == ["completed"]


def test_several_files_each_get_a_folder_and_one_that_fails_is_told(shell: Shell, source: Source) -> None:
    good = shutil.copy(source("mp4-shorter-than-a-segment"), shell.folder / "good.mp4")
    bad = shutil.copy(source("text"), shell.folder / "bad.mp4")

    made = shell(good, bad, "-o", "out")

    assert made.returncode == 5
    assert "bad.mp4: failed in plan: this is not a video or audio file that can be read" in made.stdout
    assert (shell.folder / "out/good/master.m3u8").exists()
    assert not (shell.folder / "out/bad").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nowhere.mp4",), "cannot be read: No such file or directory"),
        (("film.mp4", "--ladder", "smal"), "did you mean 'small'?"),
        (("film.mp4", "--preset", "Very-Fast"), "preset"),
        (("film.mp4", "-o", "full"), "is not empty and no export of Telecine"),
        (("film.mp4", "-o", ""), "-o names no folder; `-o .` is the one that you are in"),
        (("film.mp4", "-o", "film.mp4/out"), "there can be no folder film.mp4/out: "),
        (("film.mp4", "-o", "/proc/nothing"), "there can be no folder /proc/nothing: "),
        (("nowhere.mp4", "-o", "new/er"), "cannot be read: No such file or directory"),
        (("film.mp4", "a/film.mkv", "-o", "out"), "film.mp4 and a/film.mkv would both be written to out/film"),
    ],
)
def test_a_bad_request_ends_at_once_and_makes_no_job(
    shell: Shell, source: Source, arguments: tuple[str, ...], sentence: str
) -> None:
    shutil.copy(source("mp4-no-audio"), shell.folder / "film.mp4")
    (shell.folder / "full").mkdir()
    (shell.folder / "full/mine.txt").touch()

    refused = shell.quick(*arguments)

    assert refused.returncode == 2
    assert sentence in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert shell.rows("select id from job") == []
    assert not (shell.folder / "new").exists()


def test_after_ctrl_c_the_same_command_goes_on_where_it_was(shell: Shell, long_film: Path) -> None:
    command = (long_film, "-o", "out", "--preset", "veryslow")
    with shell.started(*command) as first:
        until(lambda: len(shell.pieces()) >= 3, "some segments are recorded")
        first.send_signal(signal.SIGINT)
        out, _ = first.communicate(timeout=PATIENCE)
    before = shell.pieces()

    assert first.returncode == 130
    assert "run the same command to go on" in out
    assert 3 <= len(before) < 22

    second = shell(*command, "--json")

    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout)["how"] == "continued"
    after = shell.pieces()
    assert {name: after[name] for name in before} == before
    assert len(after) == 22  # of 24 frames, so that keyframes are half a second apart
    frames = list(range(264))
    assert numbers_of(shell.folder / "out") == {"h264-90p": frames, "h264-180p": frames}
    assert shell.rows("select distinct outcome from attempt order by 1") == [("done",), ("released",)]


@pytest.mark.parametrize("folder", [(), ("-o", "out")])
def test_ctrl_c_at_the_very_end_says_what_is_true(shell: Shell, source: Source, folder: tuple[str, ...]) -> None:
    command = (source("mp4-no-audio"), *folder)
    with shell.started(*command) as process:
        until(lambda: shell.rows("select id from job where outcome = 'completed'"), "the job has completed")
        process.send_signal(signal.SIGINT)  # before the command has looked, twice a second
        out, _ = process.communicate(timeout=PATIENCE)

    assert "Stopped" not in out
    if folder and process.returncode == 130:
        assert "All is encoded, but not all of it is in out yet: run the same command to go on." in out
        assert shell(*command).returncode == 0
        assert faults_of(shell.folder / "out", shell.folder / "s") == []
    else:
        assert process.returncode == 0
        assert "as fast as it plays" in out


def test_after_three_kills_within_a_segment_the_same_command_goes_on(shell: Shell, long_film: Path) -> None:
    """The third loss in a row puts a task into quarantine: a person who runs the command again has retried it."""
    command = (long_film, "--preset", "veryslow", "--segment", "60")
    running = "select id from task where state = 'running' and token = {} and lane like 'transcode/video@%'"
    for turn in (1, 2, 3):
        with shell.started(*command) as process:
            until(partial(shell.rows, running.format(turn)), f"attempt {turn} runs")
            process.kill()
            process.communicate(timeout=PATIENCE)
    before = shell.rows("select losses, state from task where lane like 'transcode/video@%'")

    last = shell(*command, "--json")

    assert before == [(1, "running")]  # the third kill is not noticed yet, the second one was after a person's retry
    assert last.returncode == 0, last.stderr
    told = json.loads(last.stdout)
    assert told["how"] == "continued"
    assert told["elapsed_seconds"] > told["wall_seconds"] + 1, "between a kill and the next run nobody works"
    assert shell.rows("select count(*) from attempt where outcome = 'lost'") >= [(3,)]


def test_a_folder_that_is_locked_for_a_while_does_not_end_the_run(shell: Shell, long_film: Path) -> None:
    out = shell.folder / "out"
    with shell.started(long_film, "-o", "out") as process:
        # Not before: at the start, a folder that is locked is refused.
        until(lambda: shell.rows("select id from task where state = 'running'"), "the job has begun")
        out.mkdir()
        with HlsExport(out, "somebody else's"):
            until(lambda: shell.rows("select id from job where outcome = 'completed'"), "the film is made")
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=1.0)
        said, complaints = process.communicate(timeout=PATIENCE)

    assert process.returncode == 0, complaints
    assert "Watch it: mpv out/master.m3u8" in said
    assert len(list(out.glob("video/h264-180p/*.m4s"))) == 11


def test_a_preview_whose_folder_is_locked_is_told_once_and_tried_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Locked:
        tried = 0

        async def update(self) -> None:
            self.tried += 1
            if self.tried < 3:
                raise FolderBusy("another export is writing into out")

    monkeypatch.setattr(growing_folder, "SECONDS", 0.0)
    monkeypatch.setattr(growing_folder, "PAUSE", 0)
    locked = Locked()
    preview = GrowingFolder("film.mp4", locked, World())  # type: ignore[arg-type]

    async def watch() -> None:
        for _ in range(4):
            await preview.grow()

    asyncio.run(watch())

    told = capsys.readouterr().err.splitlines()
    assert told == ["telecine: film.mp4 is not shown yet: another export is writing into out; encoding goes on"]
    assert locked.tried == 4


def test_ctrl_c_is_heard_while_the_folder_is_being_finished(shell: Shell, source: Source) -> None:
    """A segment that lies in a pipe cannot be copied until somebody writes into it."""
    film = source("mp4-no-audio")
    assert shell(film).returncode == 0
    piece = shell.folder / ".telecine/artifacts" / shell.pieces()["180p/00000.m4s"][0]
    piece.unlink()
    os.mkfifo(piece)

    with shell.started(film, "-o", "out") as process:
        until((shell.folder / "out/video/h264-180p/seg_00000.m4s.part").exists, "the pipe is being read")
        process.send_signal(signal.SIGINT)
        until(lambda: len(shell.rows("select id from worker where gone_at is not null")) == 2, "the worker has left")
        piece.write_bytes(b"")
        said, _ = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130
    assert "run the same command to go on" in said
    assert not (shell.folder / "out/master.m3u8").exists()


def test_a_film_that_was_moved_before_it_began_or_is_wished_otherwise_is_another_job(
    source: Source, tmp_path: Path
) -> None:
    here = Path(shutil.copy(source("mp4-no-audio"), tmp_path / "film.mp4"))
    (tmp_path / "there").mkdir()

    async def story(house: Theatre) -> None:
        first = await house.begun(small(here))
        assert await house.begun(small(here)) == first
        there = Path(shutil.move(here, tmp_path / "there/film.mp4"))
        moved = await house.begun(small(there))
        other = await house.begun(small(there, preset="fast"))

        assert len({first, moved, other}) == 3
        jobs = await house.sql("select subject_id, status from job order by id")
        assert [job["status"] for job in jobs] == ["cancelled", "pending", "pending"]
        assert len({job["subject_id"] for job in jobs}) == 1

    play(story, tmp_path, working=False)
