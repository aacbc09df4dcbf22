"""A film planned for hardware: made by a worker that has it, or in software when nobody comes or it fails."""

from collections.abc import Callable
from pathlib import Path

from telecine.errors import ChildFailed
from telecine.flow import Bench
from tests.media.transcode_env import Theatre, faults_of, hooked, numbers_of, play, settings_in, small

Source = Callable[[str], Path]
FILM = "mp4-h264"
FRAMES = tuple(range(85))


async def stages_of(house: Theatre, job_id: int) -> dict[str, str]:
    return {stage.name: stage.state for stage in (await house.views.job(job_id)).stages}


async def makers_of(house: Theatre, job_id: int) -> set[str]:
    """The stages whose segments the published playlists name."""
    folder = Path(house.parts.settings.artifacts_url)
    lists = [one.kept for one in await house.views.kept(job_id, "package") if one.kept.name.endswith("p/index.m3u8")]
    lines = [line for kept in lists for line in (folder / str(kept.key)).read_text().splitlines()]
    return {line.split("/")[-5].partition("@")[0] for line in lines if line.endswith(".m4s")}


async def check(house: Theatre, job_id: int, tmp_path: Path) -> None:
    folder = await house.exported(job_id)
    assert faults_of(folder, tmp_path / "scratch") == []
    assert set(map(tuple, numbers_of(folder).values())) == {FRAMES}


def test_a_worker_that_offers_the_encoder_makes_the_film(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.completed(small(source(FILM), encoder="x264-alt"))

        assert await makers_of(house, job.id) == {"video"}
        assert (await stages_of(house, job.id))["again"] == "skipped"
        await check(house, job.id, tmp_path)

    play(story, tmp_path, labels=("alt",))


def test_without_such_a_worker_software_makes_it_after_a_while_with_a_warning(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.completed(small(source(FILM), encoder="x264-alt"))

        warnings = [line.message for line in await house.views.logs(job.id, level="warning")]
        assert any("x264-alt did not make all of this film, so x264 makes it" in warning for warning in warnings)
        assert await makers_of(house, job.id) == {"again"}
        await check(house, job.id, tmp_path)

    play(story, tmp_path, hardware_patience_seconds=0.3)


def test_hardware_that_does_not_work_is_left_for_software(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.completed(small(source(FILM), encoder="nvenc"))

        assert ("encoder", "failed") in await house.attempts(job.id)
        assert await makers_of(house, job.id) == {"again"}
        await check(house, job.id, tmp_path)

    play(story, tmp_path, labels=("nvenc",))


def test_a_rendition_never_mixes_two_encoders(source: Source, tmp_path: Path) -> None:
    """The hardware makes some segments and then fails for good: none of them is in what is published."""

    async def story(house: Theatre) -> None:
        job_id = await house.begun(small(source(FILM), encoder="x264-alt"))
        await house.ended(job_id)

        assert ("video", "done") in await house.attempts(job_id)
        assert await house.sql("select key from freed where key like '%/video@2/%.m4s'")
        left = {one.stage for one in await house.views.kept(job_id, "video", "again") if one.kept.name.endswith(".m4s")}
        assert left == {"again"}
        assert await makers_of(house, job_id) == {"again"}
        await check(house, job_id, tmp_path)

    async def break_down(bench: Bench) -> None:
        if bench.position:
            raise ChildFailed("the card fell off the bus", code="encoder_failed", permanent=True)

    how = {"labels": ("alt",)}
    play(story, tmp_path, flows=hooked(settings_in(tmp_path, **how), "video", before=break_down), **how)
