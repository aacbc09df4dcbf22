"""Watched folders: what is put there is transcoded by itself, once, when it has settled."""

import asyncio
import logging
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from telecine.apps.transcode.videos.upload_check import looker_of
from telecine.apps.transcode.videos.watch_folders import TOUCH_SECONDS, FolderWatcher, watching
from telecine.facts import DAY
from telecine.settings import Settings
from telecine.wiring import Parts
from tests.api.in_process_server import Front
from tests.api.raw_requests import a_film, jobs_of, ready
from tests.fault.server_processes import outpost, wait_for
from tests.media.transcode_env import until

SETTLE = 10.0


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("film")
    a_film(folder)
    return folder / "film.mp4"


class Clock:
    """The watcher's own clock, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Night:
    """A watcher on a folder, and a clock."""

    def __init__(self, front: Front, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.clock, self.folder = Clock(), folder
        world = replace(front.parts.world, mono=self.clock)
        settings = front.settings.model_copy(update={"watch_settle_seconds": SETTLE})
        self.parts = Parts(settings, front.parts.store, front.parts.bell, front.parts.engine, world)
        self.watcher = FolderWatcher(self.parts, folder, looker_of(front.parts))

    async def looks(self, after: float = 0.0) -> int:
        self.clock.seconds += after
        return await self.watcher.look()


@pytest.fixture
def night(front: Front, tmp_path: Path) -> Night:
    return Night(front, tmp_path / "inbox")


async def test_a_film_is_taken_when_it_has_settled_and_only_once(front: Front, night: Night, film: Path) -> None:
    await ready(front)
    shutil.copy(film, night.folder / "Film One.mp4")

    taken = [await night.looks(), await night.looks(SETTLE - 1), await night.looks(2), await night.looks(SETTLE)]

    [job] = await jobs_of(front)
    assert taken == [0, 0, 1, 0]
    assert job["subject_id"].startswith("film-one-")
    assert str(night.folder / "Film One.mp4") in job["spec"], "it is read in place"


async def test_a_film_that_stays_is_never_forgotten(front: Front, night: Night, film: Path) -> None:
    await ready(front)
    shutil.copy(film, night.folder / "film.mp4")
    await night.looks()
    await night.looks(SETTLE)
    [taken] = await front.bed.sql("select at from watched")

    front.parts.store.now = taken["at"] + 300 * DAY
    await night.looks(TOUCH_SECONDS)
    [seen] = await front.bed.sql("select at from watched")

    assert seen["at"] == front.parts.store.now


async def test_a_film_that_still_grows_is_left_alone(front: Front, night: Night, film: Path) -> None:
    await ready(front)
    content, path = film.read_bytes(), night.folder / "film.mp4"
    path.write_bytes(content[:1000])
    await night.looks()
    await night.looks(SETTLE - 1)
    path.write_bytes(content)

    growing = await night.looks(SETTLE - 1)
    settled = await night.looks(SETTLE)

    assert (growing, settled) == (0, 1)


async def test_what_is_no_film_by_its_name_is_not_even_looked_at(front: Front, night: Night, film: Path) -> None:
    await ready(front)
    (night.folder / ".hidden").mkdir()
    (night.folder / "folder.mp4").mkdir()
    names = (
        ".film.mp4", "film.mp4.part", "film.mp4.crdownload", "film.mp4.tmp", "film.mp4.download", "film.mp4!qB", "film",
        "notes.txt", ".hidden/film.mp4", "film.srt",
    )  # fmt: skip
    for name in names:
        shutil.copy(film, night.folder / name)
    (night.folder / "link.mp4").symlink_to(film)
    (night.folder / "empty.mp4").touch()
    os.mkfifo(night.folder / "pipe.mp4")

    taken = [await night.looks(), await night.looks(2 * SETTLE)]

    assert taken == [0, 0]
    assert await front.bed.sql("select path from watched") == []


async def test_folders_inside_are_looked_through(front: Front, night: Night, film: Path) -> None:
    await ready(front)
    deep = night.folder / "2026" / "May"
    deep.mkdir(parents=True)
    shutil.copy(film, deep / "film.MP4")
    await night.looks()

    assert await night.looks(SETTLE) == 1


async def test_what_is_no_film_inside_is_refused_once(
    front: Front, night: Night, caplog: pytest.LogCaptureFixture
) -> None:
    await ready(front)
    (night.folder / "film.mp4").write_bytes(b"these are notes\n" * 1000)
    with caplog.at_level(logging.WARNING):
        await night.looks()
        await night.looks(SETTLE)
        await night.looks(SETTLE)
        again = Night(front, night.folder)
        await again.looks()
        await again.looks(SETTLE)

    [row] = await front.bed.sql("select job_id, error from watched")
    assert [line.message for line in caplog.records if "is not taken" in line.message] != []
    assert len([line for line in caplog.records if "is not taken" in line.message]) == 1
    assert row["job_id"] is None
    assert row["error"]
    assert await jobs_of(front) == []


async def test_a_restart_takes_nothing_twice_and_what_has_ended_badly_is_not_tried_again(
    front: Front, night: Night, film: Path
) -> None:
    await ready(front)
    shutil.copy(film, night.folder / "film.mp4")
    await night.looks()
    await night.looks(SETTLE)
    [job] = await jobs_of(front)
    await front.parts.engine.jobs.cancel(job["id"])

    again = Night(front, night.folder)
    taken = [await again.looks(), await again.looks(SETTLE), await again.looks(SETTLE)]

    assert taken == [0, 0, 0]
    assert (await front.parts.engine.queries.job(job["id"])).status == "cancelled"
    assert len(await jobs_of(front)) == 1


async def test_another_film_under_the_same_name_is_another_film(front: Front, night: Night, film: Path) -> None:
    await ready(front)
    path = night.folder / "film.mp4"
    shutil.copy(film, path)
    await night.looks()
    await night.looks(SETTLE)
    path.write_bytes(film.read_bytes() + (16).to_bytes(4, "big") + b"free" + b"another!")

    await night.looks()
    taken = await night.looks(SETTLE)

    assert taken == 1
    assert len({job["subject_id"] for job in await jobs_of(front)}) == 2


async def test_two_servers_that_see_the_same_film_begin_one_job(front: Front, night: Night, film: Path) -> None:
    await ready(front)
    shutil.copy(film, night.folder / "film.mp4")
    other = Night(front, night.folder)
    await asyncio.gather(night.looks(), other.looks())

    await asyncio.gather(night.looks(SETTLE), other.looks(SETTLE))

    assert len(await jobs_of(front)) == 1


async def test_a_folder_that_is_not_there_is_said_once_and_looked_for(
    front: Front, night: Night, film: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await ready(front)
    night.folder.rmdir()
    with caplog.at_level(logging.WARNING):
        await night.looks()
        await night.looks()
    night.folder.mkdir()
    shutil.copy(film, night.folder / "film.mp4")
    await night.looks()

    assert await night.looks(SETTLE) == 1
    assert len([line for line in caplog.records if "is not there" in line.message]) == 1


async def test_the_duty_looks_by_itself(front: Front, tmp_path: Path, film: Path) -> None:
    await ready(front)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    shutil.copy(film, inbox / "film.mp4")
    settings: Settings = front.settings.model_copy(update={"watch": (str(inbox),), "watch_settle_seconds": 0.01})
    parts = Parts(settings, front.parts.store, front.parts.bell, front.parts.engine, front.parts.world)

    async def begun() -> Any:
        return await jobs_of(front)

    async with watching(parts), watching(parts):
        jobs = await until(begun, "the film was taken")

    assert len(jobs) == 1


def test_a_server_takes_what_is_put_into_its_folder(tmp_path: Path, sqlite_url: str, film: Path) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with outpost(tmp_path, sqlite_url, watch=str(inbox), watch_settle_seconds=0.5) as post:
        post.serve()
        shutil.copy(film, inbox / "film.mp4")

        wait_for(lambda: "became job" in post.logs(), "the film was taken")
