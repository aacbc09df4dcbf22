"""A film that failed is tried again by a person: with what it has, or anew; and what it left may be freed before."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.videos.failed_cleanup import FailedCleanup
from telecine.apps.transcode.videos.start import start_video
from telecine.facts import Failed, JobId
from telecine.flow import Bench, Flow
from telecine.settings import Settings
from telecine.wiring import installed_flows
from tests.media.transcode_env import Theatre, faults_of, numbers_of, play, settings_in, small, spec_of, until

Source = Callable[[str], Path]
FRAMES = list(range(85))


class Spoilt:
    """The real flow; until it is mended, the second chunk fails for good after it has made its segments."""

    def __init__(self, settings: Settings) -> None:
        self.mended = False
        [self.flow] = installed_flows(settings)
        real = self.flow.handlers["video"]

        async def handler(bench: Bench) -> Any:
            outcome = await real(bench)  # type: ignore[misc]
            if bench.position == 1 and not self.mended:
                return Failed("spoilt", code="spoilt", permanent=True)
            return outcome

        self.flow.handlers["video"] = handler

    @property
    def flows(self) -> list[Flow]:
        return [self.flow]


def test_a_film_that_is_asked_for_again_while_it_fails_is_made(source: Source, tmp_path: Path) -> None:
    """The second chunk has failed for good while the first is still being made: the same command goes on."""
    spoilt, released = Spoilt(settings_in(tmp_path)), asyncio.Event()
    real = spoilt.flow.handlers["video"]

    async def handler(bench: Bench) -> Any:
        if bench.position == 0 and not spoilt.mended:
            with suppress(asyncio.CancelledError):  # it was told to stop, and takes its time
                await released.wait()
            await released.wait()
        return await real(bench)  # type: ignore[misc]

    spoilt.flow.handlers["video"] = handler

    async def story(house: Theatre) -> None:
        wishes = small(source("mp4-h264"))
        job_id = await house.begun(wishes)

        async def failing() -> bool:
            return (await house.views.job(job_id)).error is not None

        await until(failing, "a chunk has failed")
        spoilt.mended = True
        again = await start_video(house.parts.engine, spec_of(wishes))
        released.set()
        job = await house.ended(job_id)
        assert (again.job_id, again.how) == (job_id, "continued")
        assert (job.status, job.generation) == ("completed", 2), job.error
        assert faults_of(await house.exported(job_id), house.folder / "scratch-of-readers") == []

    play(story, tmp_path, flows=spoilt.flows)


async def made_again(house: Theatre, job_id: int) -> int:
    """How many segments the second chunk made after the retry."""
    await house.client.retry(JobId(job_id))
    job = await house.ended(job_id)
    assert job.status == "completed", job.error
    [result] = [one.value for one in job.results if (one.stage, one.position) == ("video", 1)]
    return int(result["made"])


@pytest.mark.parametrize(("keep", "made"), [(True, 0), (False, 4)])
def test_a_persons_retry_goes_on_or_begins_anew_as_the_settings_say(
    source: Source, tmp_path: Path, keep: bool, made: int
) -> None:
    spoilt = Spoilt(settings_in(tmp_path, keep_completed_rungs=keep))

    async def story(house: Theatre) -> None:
        job = await house.made(small(source("mp4-h264")))
        assert (job.status, (job.error or {})["code"]) == ("failed", "spoilt")
        spoilt.mended = True

        assert await made_again(house, job.id) == made
        found = numbers_of(await house.exported(job.id))
        assert found == {"h264-90p": FRAMES, "h264-180p": FRAMES}

    play(story, tmp_path, flows=spoilt.flows, keep_completed_rungs=keep)


def test_what_a_failed_film_left_half_done_is_freed_and_made_again(source: Source, tmp_path: Path) -> None:
    spoilt = Spoilt(settings_in(tmp_path))

    async def story(house: Theatre) -> None:
        job = await house.made(small(source("mp4-h264")))
        tidying = FailedCleanup(house.parts.engine)
        whole = await tidying.look()
        # Lose one segment, as if the chunk had failed before it.
        await house.sql("delete from artifact where name = '180p/00003.m4s'")

        freed = [await tidying.look() for _ in range(2)]
        left = sorted(await house.pieces(job.id))
        spoilt.mended = True

        assert (whole, freed) == (0, [1, 0])
        assert [number for name, number in left if name == "180p"] == [0, 1]
        assert [number for name, number in left if name == "90p"] == [0, 1, 2, 3]
        assert await made_again(house, job.id) == 2
        assert numbers_of(await house.exported(job.id))["h264-180p"] == FRAMES

    play(story, tmp_path, flows=spoilt.flows)
