"""A film is made anew, in whole or in part: the old version plays until the new one is whole, and is freed later."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.stage_inputs import PLAN
from telecine.apps.transcode.videos.progress import progress_of
from telecine.apps.transcode.videos.start import start_video
from telecine.apps.transcode.videos.video_view import video_of
from telecine.flow import Bench
from telecine.media.plain_json import from_plain
from telecine.wiring import housekeeping, open_artifacts
from tests.media.transcode_env import Theatre, faults_of, hooked, numbers_of, play, settings_in, small, spec_of, until

Source = Callable[[str], Path]
FRAMES = list(range(85))


@pytest.fixture
def film(source: Source) -> Path:
    return source("mp4-h264")


@pytest.fixture
def published(finished: Callable[[Path], None], tmp_path: Path) -> Path:
    """The folder of a house whose first job has made the film."""
    finished(tmp_path)
    return tmp_path


async def keys_of(house: Theatre, video: str) -> dict[str, str]:
    """Where the segments of the version that is shown lie, by name."""
    shown = await house.views.published("video", video)
    return {one.kept.name: one.kept.key for one in shown if one.kept.name.endswith((".m4s", "init.mp4"))}


async def cleared(house: Theatre, gone: list[str]) -> None:
    """Let the housekeeper do its duties until these bytes are deleted."""
    artifacts = open_artifacts(house.parts.settings)

    async def all_gone() -> bool:
        paths = [artifacts.path(key) for key in gone]
        return not any(path.exists() for path in paths if path is not None)

    async with housekeeping(house.parts):
        await until(all_gone, "the old version's bytes are gone")


def test_chosen_qualities_are_made_anew_and_the_others_carried_over(film: Path, tmp_path: Path) -> None:
    seen: list[tuple[int | None, str]] = []
    houses: list[Theatre] = []

    async def look(bench: Bench) -> None:
        assert bench.subject is not None
        video = await video_of(houses[0].parts.engine, bench.subject[1])
        seen.append((video.version, video.status))

    async def story(house: Theatre) -> None:
        houses.append(house)
        first = await house.completed(small(film))
        assert first.subject is not None
        video = first.subject[1]
        before = await keys_of(house, video)

        second = await house.completed(small(film, qualities=["180p"], preset="veryfast"))

        # Until the new version was whole, the old one was shown.
        assert seen == [(None, "processing"), (1, "ready")]
        assert (await video_of(house.parts.engine, video)).version == 2
        after = await keys_of(house, video)
        assert after.keys() == before.keys()
        changed = {name.partition("/")[0] for name in after if after[name] != before[name]}
        assert changed == {"180p"}
        assert {stage for stage, _ in await house.attempts(second.id)}.isdisjoint({"audio"})
        now = await progress_of(house.views, second.id)
        assert {one.quality: (one.status, one.segments_completed) for one in now.qualities} == {
            "90p": ("completed", 4), "180p": ("completed", 4), "audio-1": ("completed", 4)
        }  # fmt: skip
        await check(house, second.id, "second")

        await cleared(house, [before[name] for name in before if name.startswith("180p/")])

        # What was carried over has outlived the version that it was made for.
        assert [key for key in after.values() if not open_artifacts(house.parts.settings).path(key).exists()] == []  # type: ignore[union-attr]
        await check(house, second.id, "again")

        anew = await start_video(house.parts.engine, spec_of(small(film)))
        assert (anew.how, anew.job_id) == ("submitted", second.id + 1)
        assert (await house.ended(anew.job_id)).status == "completed"
        kept = await start_video(house.parts.engine, spec_of(small(film, qualities=["180p"], preset="veryfast")))
        assert (kept.how, kept.job_id) == ("made before", second.id)

    settings = {"version_days": 0}
    play(story, tmp_path, flows=hooked(settings_in(tmp_path, **settings), "publish", before=look), **settings)


def test_a_quality_that_is_made_alone_is_scaled_from_the_source(film: Path, tmp_path: Path) -> None:
    ladder = [{"height": 72, "kbps": 80}, {"height": 144, "kbps": 200}]

    async def story(house: Theatre) -> None:
        whole = await house.completed(small(film, ladder=ladder))
        alone = await house.completed(small(film, ladder=ladder, qualities=["72p"], preset="veryfast"))

        assert await origins(house, whole.id) == {"72p": (256, 144), "144p": None}
        assert await origins(house, alone.id) == {"72p": None, "144p": None}

    play(story, tmp_path)


async def origins(house: Theatre, job_id: int) -> dict[str, tuple[int, int] | None]:
    """By the plan of the job, the size of the picture that each rung is made from."""
    kept = next(one.kept for one in await house.views.kept(job_id) if one.kept.name == PLAN)
    path = open_artifacts(house.parts.settings).path(str(kept.key))
    assert path is not None
    return {rung.name: rung.scaled_from for rung in from_plain(TranscodePlan, json.loads(path.read_bytes())).rungs}


async def check(house: Theatre, job_id: int, name: str) -> None:
    folder = await house.exported(job_id, name)
    assert faults_of(folder, house.folder / "scratch-of-readers") == []
    assert numbers_of(folder) == {"h264-90p": FRAMES, "h264-180p": FRAMES}
    assert len(list(folder.glob("audio/*/seg_*.m4s"))) == 4


def test_again_makes_what_was_made_and_goes_on_with_what_is_being_made(film: Path, published: Path) -> None:
    async def story(house: Theatre) -> None:
        made = (await house.completed(small(film))).id

        begun = await house.begun(small(film), again=True)
        same = await house.begun(small(film), again=True)

        assert begun != made
        assert same == begun
        assert (await house.ended(begun)).status == "completed"

    play(story, published)


def test_a_version_that_is_not_shown_any_more_is_still_exported_as_it_was(film: Path, published: Path) -> None:
    async def story(house: Theatre) -> None:
        partly = await house.completed(small(film, qualities=["180p"], preset="veryfast"))
        before = contents(await house.exported(partly.id, "before"))

        again = await house.completed(small(film), again=True)

        assert (await video_of(house.parts.engine, again.subject[1])).version == 3  # type: ignore[index]
        assert contents(await house.exported(partly.id, "after")) == before

    play(story, published)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.m*")}


REFUSED: dict[str, dict[str, Any]] = {
    "unknown_rung": {"qualities": ["480p"]},
    "other_grid": {"qualities": ["180p"], "segment_seconds": 2},
}


def test_what_cannot_be_replaced_alone_is_refused_and_the_old_version_stays(film: Path, published: Path) -> None:
    async def story(house: Theatre) -> None:
        jobs = await asyncio.gather(*(house.made(small(film, **wishes)) for wishes in REFUSED.values()))

        for code, job in zip(REFUSED, jobs, strict=True):
            assert job.error is not None
            assert job.error["code"] == code
            assert ("fetch", "failed") in await house.attempts(job.id)
        video = await video_of(house.parts.engine, jobs[0].subject[1])  # type: ignore[index]
        assert (video.status, video.version) == ("ready", 1)
        assert video.job is not None
        assert video.job.status == "failed"

    play(story, published)


def test_a_version_that_was_replaced_meanwhile_is_not_mixed_with_the_next(film: Path, published: Path) -> None:
    houses: list[Theatre] = []

    async def overtake(bench: Bench) -> None:
        if bench.spec.get("qualities"):
            await houses[0].completed(small(film), again=True)

    async def story(house: Theatre) -> None:
        houses.append(house)
        late = await house.made(small(film, qualities=["180p"]))

        assert late.error is not None
        assert late.error["code"] == "version_changed"
        assert (await video_of(house.parts.engine, late.subject[1])).version == 2  # type: ignore[index]

    play(story, published, flows=hooked(settings_in(published), "package", before=overtake))
