"""What cannot become a film is refused with one sentence, at once; half a film is never published in silence."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.videos.progress import progress_of
from telecine.apps.transcode.videos.video_view import video_of
from telecine.engine import Submission
from telecine.engine.queries.view_models import JobView
from telecine.errors import BadSpec
from telecine.facts import Done, Outcome
from telecine.flow import Bench, Flow
from telecine.settings import Settings
from telecine.wiring import installed_flows
from tests.media.corrupt import lying_count, lying_sizes
from tests.media.make_video import Film, Shot, shoot
from tests.media.transcode_env import Theatre, faults_of, numbers_of, play, settings_in, small, until

Source = Callable[[str], Path]


async def submitted(house: Theatre, wishes: dict[str, Any], subject: str = "film") -> JobView:
    """As a server would: the file is not looked at before the job is there."""
    [answer] = await house.parts.engine.jobs.submit_many(
        [Submission(flow="transcode", spec=wishes, subject=("video", subject))]
    )
    return await house.ended(answer.job_id)


# Each with the code that it is refused with, and a part of the sentence.
REFUSED = {
    "text": ("not_media", ""),
    "encrypted": ("encrypted", "encrypted"),
    "subtitles-only": ("no_streams", "neither"),
    "mp4-without-its-index": ("damaged", ""),
    "mkv-damaged-tail": ("damaged", "damaged"),
    "mp4-damaged-tail": ("damaged", "damaged"),
    "ts-damaged-tail": ("damaged", "damaged"),
    "m4a-damaged-tail": ("damaged", "damaged"),
}


def test_a_bad_source_fails_its_job_with_one_sentence_and_no_second_try(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        jobs = dict(
            zip(REFUSED, await asyncio.gather(*(house.made(small(source(name))) for name in REFUSED)), strict=True)
        )

        for name, (code, words) in REFUSED.items():
            error = jobs[name].error
            assert error is not None, name
            assert jobs[name].status == "failed"
            assert (name, error["code"]) == (name, code)
            assert words in error["message"]
            assert "\n" not in error["message"]
            assert len(error["message"]) < 300
            outcomes = [outcome for _, outcome in await house.attempts(jobs[name].id)]
            assert outcomes == ["done"] * (len(outcomes) - 1) + ["failed"], name
            subject = jobs[name].subject
            assert subject is not None
            assert (await video_of(house.parts.engine, subject[1])).status == "failed"

    play(story, tmp_path)


def test_a_bad_request_fails_its_job_before_anything_is_read(source: Source, tmp_path: Path) -> None:
    film = source("mp4-no-audio")
    bad = {
        "no_such": (small(tmp_path / "nowhere.mp4"), "source_missing", "No such file"),
        "folder": (small(tmp_path), "source_missing", "plain file"),
        "ladder": ({"source": str(film), "ladder": "webb"}, "bad_spec", "did you mean 'web'?"),
        "typo": ({"source": str(film), "laddder": "web"}, "bad_spec", "laddder"),
        "scheme": ({"source": "ftp://example.org/film.mp4"}, "unknown_scheme", "ftp"),
        "private": ({"source": "http://127.0.0.1:1/film.mp4"}, "source_private", "allow_private_sources"),
        "other": ({**small(film), "sha256": "0" * 64}, "source_changed", "submit it again"),
    }

    async def story(house: Theatre) -> None:
        jobs = await asyncio.gather(*(submitted(house, wishes, name) for name, (wishes, _, _) in bad.items()))

        for (name, (_, code, words)), job in zip(bad.items(), jobs, strict=True):
            assert job.error is not None, name
            assert (name, job.error["code"]) == (name, code)
            assert words in job.error["message"]
            last = (await house.attempts(job.id))[-1]
            assert last == ("fetch" if name == "other" else "validate", "failed")

    play(story, tmp_path)


def test_a_file_that_is_not_there_never_becomes_a_job(tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        with pytest.raises(BadSpec, match="cannot be read: No such file"):
            await house.begun(small(tmp_path / "nowhere.mp4"))

        assert await house.sql("select id from job") == []

    play(story, tmp_path, working=False)


def test_what_is_left_of_a_damaged_film_comes_out_with_a_warning_if_it_may(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.completed(small(source("mkv-damaged-tail"), damaged="warn"))

        now = await progress_of(house.views, job.id)
        [warning] = now.warnings
        assert "the file lacks its last" in warning
        assert (await video_of(house.parts.engine, job.subject[1])).facts["warnings"] == [warning]  # type: ignore[index]
        folder = await house.exported(job.id)
        assert faults_of(folder, tmp_path / "s") == []
        numbers = numbers_of(folder)["h264-180p"]
        # Where the file breaks off, frames that others refer to are there and those between them are not.
        assert 50 <= len(numbers) < 85
        assert numbers[:50] == list(range(50))
        assert numbers == sorted(numbers)

    play(story, tmp_path)


@pytest.mark.parametrize("lie", [lying_sizes, lying_count])
def test_pictures_that_are_promised_and_not_there_are_never_left_out_in_silence(
    lie: Callable[[Path], Path], tmp_path: Path
) -> None:
    film = lie(shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=50, size=(128, 72)),))))

    async def story(house: Theatre) -> None:
        refused = await house.made(small(film))
        assert refused.error is not None
        assert refused.error["code"] == "damaged"
        assert "its video stream 0 promises" in refused.error["message"]
        assert "--damaged warn" in refused.error["message"]

        job = await house.completed(small(film, damaged="warn"))
        [warning] = (await progress_of(house.views, job.id)).warnings
        assert "its video stream 0 promises" in warning
        assert (await video_of(house.parts.engine, job.subject[1])).facts["qualities"] == []  # type: ignore[index]

    play(story, tmp_path)


# -- the source changes -----------------------------------------------------------------------------------------------


def after_fetch(settings: Settings, then: Callable[[Done], Done]) -> list[Flow]:
    """The real flow, with something that happens between its fetch and what comes after it."""
    [flow] = installed_flows(settings)
    fetch = flow.handlers["fetch"]

    async def and_then(bench: Bench) -> Outcome:
        outcome: Outcome = await fetch(bench)  # type: ignore[misc, assignment]
        return then(outcome) if isinstance(outcome, Done) else outcome

    flow.handlers["fetch"] = and_then
    return [flow]


@pytest.mark.parametrize("how", ["written", "replaced", "removed"])
def test_a_source_that_changes_while_it_is_transcoded_fails_the_job(source: Source, tmp_path: Path, how: str) -> None:
    film = tmp_path / "film.mp4"
    shutil.copy(source("mp4-no-audio"), film)

    def change(outcome: Done) -> Done:
        if how == "written":
            with film.open("r+b") as file:
                file.seek(1000)
                file.write(b"!")
        elif how == "replaced":
            other = tmp_path / "other.mp4"
            other.write_bytes(film.read_bytes() + b"!")
            os.replace(other, film)
        else:
            film.unlink()
        return outcome

    async def story(house: Theatre) -> None:
        job = await house.made(small(film))

        assert job.status == "failed"
        assert job.error is not None
        assert job.error["code"] == ("source_missing" if how == "removed" else "source_changed")
        assert ("video", "failed") in await house.attempts(job.id)

    play(story, tmp_path, flows=after_fetch(settings_in(tmp_path), change))


def test_another_film_under_the_same_name_is_another_video(source: Source, tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"

    async def story(house: Theatre) -> None:
        shutil.copy(source("mp4-no-audio"), film)
        first = await house.completed(small(film))
        shutil.copy(source("mp4-shorter-than-a-segment"), film)
        second = await house.completed(small(film))

        assert first.id != second.id
        assert first.subject != second.subject

    play(story, tmp_path)


# -- rungs that fail --------------------------------------------------------------------------------------------------


def planned_elsewhere(settings: Settings, rung: str) -> list[Flow]:
    """As if another build of the encoder had made the plan: it made another init of this rung, so no piece will fit."""

    def spoil(outcome: Done) -> Done:
        outcome.result["inits"][rung]["sha256"] = "0" * 64
        return outcome

    return after_fetch(settings, spoil)


def failing(required: bool) -> list[dict[str, Any]]:
    return [{"height": 90, "kbps": 80}, {"height": 180, "kbps": 200, "required": required}]


async def hurried(house: Theatre, job_id: int) -> JobView:
    async def is_final() -> JobView | None:
        await house.hurry()
        job: JobView = await house.views.job(job_id)
        return job if job.ended_at is not None else None

    ended: JobView = await until(is_final, f"job {job_id} has ended")
    return ended


def test_an_optional_rung_that_fails_again_and_again_is_left_out(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        wishes = small(source("mp4-h264"), ladder=failing(required=False), poster=True)
        job = await hurried(house, await house.begun(wishes))

        assert job.status == "completed", job.error
        now = await progress_of(house.views, job.id)
        states = {one.quality: one.status for one in now.qualities}
        assert states == {"90p": "completed", "180p": "failed", "audio-1": "completed"}
        [gone] = [one for one in now.qualities if one.quality == "180p"]
        assert "init" in (gone.error_message or "")
        assert (await video_of(house.parts.engine, job.subject[1])).facts["qualities"] == ["90p"]  # type: ignore[index]
        folder = await house.exported(job.id)
        assert faults_of(folder, tmp_path / "s") == []
        assert numbers_of(folder) == {"h264-90p": list(range(85))}
        tried = [outcome for stage, outcome in await house.attempts(job.id) if stage == "video"]
        assert sorted(tried) == ["done"] * 2 + ["failed"] * 4

    play(story, tmp_path, flows=planned_elsewhere(settings_in(tmp_path), "180p"))


def test_a_required_rung_that_fails_again_and_again_fails_the_job(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        wishes = small(source("mp4-no-audio"), ladder=failing(required=True))
        job = await hurried(house, await house.begun(wishes))

        assert job.status == "failed"
        assert job.error is not None
        assert job.error["code"] == "init_mismatch"
        assert job.error["message"].startswith("180p: ")
        now = await progress_of(house.views, job.id)
        assert {one.quality: one.status for one in now.qualities} == {"90p": "completed", "180p": "failed"}
        assert (await video_of(house.parts.engine, job.subject[1])).status == "failed"  # type: ignore[index]

    play(story, tmp_path, flows=planned_elsewhere(settings_in(tmp_path), "180p"))


def test_an_empty_file_is_refused_before_there_is_a_job(tmp_path: Path) -> None:
    film = tmp_path / "film.mp4"
    film.touch()

    async def story(house: Theatre) -> None:
        with pytest.raises(BadSpec, match="is empty"):
            await house.begun(small(film))

        assert await house.sql("select id from job") == []

    play(story, tmp_path, working=False)
