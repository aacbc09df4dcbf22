"""Films that come from elsewhere, go elsewhere, and are made by workers that share nothing but the database."""

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.media.transcode_env import Theatre, faults_of, joined, numbers_of, play, renditions, seconds_in, small, until
from tests.support.s3 import BUCKET, KEY, SECRET, Bucket, serve_s3
from tests.support.web_server import Request, serve

Source = Callable[[str], Path]
PROGRAM = Path(sys.executable).parent / "telecine"
FRAMES = list(range(85))


async def check(house: Theatre, job_id: int) -> None:
    folder = await house.exported(job_id)
    assert numbers_of(folder) == {"h264-90p": FRAMES, "h264-180p": FRAMES}
    [sound] = [joined(folder, path) for path in renditions(folder).values() if path.startswith("audio/")]
    assert list(seconds_in(sound)) == [0, 1, 2, 3]
    assert await asyncio.to_thread(faults_of, folder, house.folder / "readers") == []


def in_bucket(bucket: Bucket) -> dict[str, Any]:
    """Settings that keep artifacts in the bucket."""
    return {
        "artifacts_url": bucket.url, "s3_endpoint": bucket.endpoint, "s3_access_key_id": KEY,
        "s3_secret_access_key": SECRET,
    }  # fmt: skip


def test_a_film_from_the_web_is_fetched_once_and_comes_out_whole(source: Source, tmp_path: Path) -> None:
    body = source("mp4-h264").read_bytes()

    def page(request: Request) -> None:
        request.say(200, body, ETag='"one"')

    async def story(house: Theatre) -> None:
        job = await house.completed(small(address))

        await check(house, job.id)
        again = await house.begun(small(address))
        assert again == job.id

    with serve() as site:
        site.pages["/film.mp4"] = page
        address = site.url("/film.mp4")
        play(story, tmp_path, allow_private_sources=("127.0.0.1",))
        # Once to see that it is there, once to have it.
        assert len(site.asked) == 2


def test_a_film_that_the_web_does_not_have_is_refused(tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.made(small(address))

        assert job.error is not None
        assert job.error["code"] == "source_missing"
        assert await house.attempts(job.id) == [("validate", "failed")]

    with serve() as site:
        site.pages["/film.mp4"] = lambda request: request.say(404)
        address = site.url("/film.mp4")
        play(story, tmp_path, allow_private_sources=("127.0.0.1",))


def test_a_film_goes_from_a_bucket_into_a_bucket(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.completed(small(f"s3://{BUCKET}/in/film.mp4", poster=True, sprites=True))

        await check(house, job.id)
        assert list((bucket.folder / "work" / str(job.id)).rglob("master.m3u8"))

    with serve_s3(tmp_path) as bucket:
        (bucket.folder / "in").mkdir()
        shutil.copy(source("mp4-h264"), bucket.folder / "in/film.mp4")
        play(story, tmp_path / "house", **in_bucket(bucket))


@pytest.fixture
def crew(tmp_path: Path) -> Any:
    """Start workers as processes of their own, each with its own folder to work in."""
    with ExitStack() as all_of_them:

        def start(name: str, settings: dict[str, Any]) -> None:
            home = tmp_path / name
            home.mkdir()
            own = {**settings, "worker_name": name, "scratch": home / "scratch", "slots": 1, "poll_seconds": 0.1}
            environ = {key: value for key, value in os.environ.items() if not key.startswith("TELECINE_")}
            environ |= {f"TELECINE_{key.upper()}": str(value) for key, value in own.items()}
            with (home / "log").open("wb") as log:
                worker = subprocess.Popen([PROGRAM, "worker"], cwd=home, env=environ, stdout=log, stderr=log)
            all_of_them.callback(worker.wait)
            all_of_them.callback(worker.kill)

        yield start


def test_two_workers_that_share_no_disk_make_one_film(source: Source, tmp_path: Path, crew: Any) -> None:
    async def story(house: Theatre) -> None:
        given = {"database_url": house.parts.settings.database_url, **in_bucket(bucket)}
        for name in ("ann", "bob"):
            crew(name, given)
        await until(lambda: both(house), "both are there")
        job = await house.completed(small(source("mp4-h264"), chunk_segments=1, preset="veryslow"))

        await check(house, job.id)
        assert {worker.name for worker in job.workers} == {"ann", "bob"}

    async def both(house: Theatre) -> bool:
        return len(await house.views.workers()) == 2

    with serve_s3(tmp_path) as bucket:
        play(story, tmp_path / "house", working=False, **in_bucket(bucket))
