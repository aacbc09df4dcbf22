"""How a job is followed, quality by quality: every word of it is read off what was recorded."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from telecine.apps.transcode.videos.progress import Quality, TranscodeProgress, progress_of
from telecine.apps.transcode.videos.video_view import video_of
from telecine.facts import JobId
from telecine.flow import Bench
from tests.media.transcode_env import LADDER, Theatre, hooked, play, settings_in, small, until

Source = Callable[[str], Path]


class Gates:
    """Chunks wait until their gate is opened."""

    def __init__(self) -> None:
        self._open = [asyncio.Event(), asyncio.Event()]

    async def wait(self, bench: Bench) -> None:
        await self._open[bench.position].wait()

    def open(self, chunk: int) -> None:
        self._open[chunk].set()


async def progress(house: Theatre, job_id: int) -> TranscodeProgress:
    return await progress_of(house.views, job_id)


async def status(house: Theatre, job_id: int) -> str:
    subject = (await house.views.job(job_id)).subject
    return (await video_of(house.parts.engine, subject[1])).status


def states(now: TranscodeProgress) -> dict[str, tuple[str, int]]:
    return {one.quality: (one.status, one.segments_completed) for one in now.qualities}


def quality(now: TranscodeProgress, name: str) -> Quality:
    return next(one for one in now.qualities if one.quality == name)


def test_a_job_is_followed_from_its_first_moment_to_its_last(source: Source, tmp_path: Path) -> None:
    gates = Gates()

    async def story(house: Theatre) -> None:
        await house.parts.engine.jobs.pause("transcode")
        ladder = [*LADDER, {"height": 360, "kbps": 500}]
        job_id = await house.begun(small(source("mp4-h264"), ladder=ladder))
        first = await progress(house, job_id)
        assert (first.status, first.step, first.percent, first.qualities) == ("pending", "probe", 0.0, ())
        assert (first.eta, first.speed, await status(house, job_id)) == (None, None, "pending")

        await house.parts.engine.jobs.pause("transcode", False)
        await until(lambda: has(house, job_id, "audio-1", 4), "the sound is there")
        waiting = await progress(house, job_id)
        assert states(waiting) == {
            "90p": ("pending", 0), "180p": ("pending", 0), "audio-1": ("completed", 4), "360p": ("skipped", 0)
        }  # fmt: skip
        assert "320×180" in (quality(waiting, "360p").reason or "")
        assert quality(waiting, "360p").error_message is None
        assert quality(waiting, "audio-1").started_at <= quality(waiting, "audio-1").completed_at  # type: ignore[operator]
        assert (waiting.status, waiting.step, await status(house, job_id)) == ("processing", "transcode", "processing")

        gates.open(1)
        await until(lambda: has(house, job_id, "180p", 2), "the second chunk is there")
        half = await progress(house, job_id)
        assert states(half)["180p"] == ("in_progress", 2)
        assert quality(half, "180p").progress_percent == 50.0
        assert (quality(half, "180p").width, quality(half, "180p").height) == (320, 180)
        assert quality(half, "180p").completed_at is None
        assert waiting.percent < half.percent < 100
        assert half.eta is not None
        assert half.eta > 0

        gates.open(0)
        await house.ended(job_id)
        last = await progress(house, job_id)
        assert (last.status, last.step, last.percent, last.eta) == ("completed", None, 100.0, None)
        assert states(last)["180p"] == states(last)["90p"] == ("completed", 4)
        assert last.speed is not None
        assert await status(house, job_id) == "ready"

    play(story, tmp_path, flows=hooked(settings_in(tmp_path), "video", before=gates.wait), slots=3)


async def has(house: Theatre, job_id: int, name: str, count: int) -> bool:
    return sum(rung == name for rung, _ in await house.pieces(job_id)) >= count


def test_of_a_cancelled_job_what_is_whole_stays_so_and_the_rest_has_failed(source: Source, tmp_path: Path) -> None:
    gates = Gates()

    async def story(house: Theatre) -> None:
        job_id = await house.begun(small(source("mp4-h264")))
        await until(lambda: has(house, job_id, "audio-1", 4), "the sound is there")

        await house.parts.engine.jobs.cancel(JobId(job_id))
        await house.ended(job_id)

        now = await progress(house, job_id)
        assert now.status == "cancelled"
        assert states(now)["audio-1"] == ("completed", 4)
        assert {states(now)[name][0] for name in ("90p", "180p")} == {"failed"}
        assert await status(house, job_id) == "failed"

    play(story, tmp_path, flows=hooked(settings_in(tmp_path), "video", before=gates.wait), slots=3)
