"""A film made by remote workers alone, while they and their server are killed: every frame is there, once."""

import asyncio
import signal
from pathlib import Path

from telecine.wiring import open_engine
from tests.fault.server_processes import Outpost, outpost
from tests.media.kills import lives, media_children
from tests.media.make_video import Film, Shot, shoot
from tests.media.transcode_env import Theatre, faults_of, numbers_of, small, until
from tests.support.s3 import KEY, SECRET, serve_s3

FRAMES = 180
SEGMENTS = 8  # of 24 frames, the last of 12


def slowly(film: Path) -> dict[str, object]:
    return small(film, preset="veryslow", chunk_segments=4, poster=True)


def test_a_film_survives_the_death_of_worker_server_and_both(tmp_path: Path) -> None:
    """The worker has neither the database nor the film nor the artifacts: all of it comes over HTTP."""
    film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=FRAMES),)))

    async def scene(post: Outpost) -> None:
        async with open_engine(post.settings) as parts:
            house = Theatre(parts, tmp_path)
            job = await house.begun(slowly(film))
            recorded = {}
            for number, whom in enumerate(("worker", "server", "both"), 1):
                await recorded_at_least(house, job, 2 * number)
                recorded |= {place: one.kept.key for place, one in (await house.pieces(job)).items()}
                await kill(post, whom)
            await check(house, job, recorded)

    with outpost(tmp_path, f"sqlite:///{tmp_path}/telecine.db") as post:
        post.serve()
        post.work("ann", slots=2)
        asyncio.run(asyncio.wait_for(scene(post), 150))


async def recorded_at_least(house: Theatre, job: int, count: int) -> None:
    async def there() -> bool:
        await house.hurry()
        assert (await house.views.job(job)).ended_at is None, "the film was done before all were killed"
        return len(await house.pieces(job)) >= count

    await until(there, f"{count} segments are recorded", within=60)


async def kill(post: Outpost, whom: str) -> None:
    """With -9; whoever died comes back."""
    worker, server = post.workers["ann"], post.server
    assert server is not None
    children = media_children(worker.pid)
    if whom != "worker":
        server.kill()
        server.wait()
    if whom != "server":
        worker.kill()
        worker.wait()

        async def childless() -> bool:
            return not any(lives(pid) for pid in children)

        await until(childless, "its children are gone", within=20)
        post.work("ann", slots=2)
    if whom != "worker":
        post.serve()


async def check(house: Theatre, job: int, recorded: dict[tuple[str, int], object]) -> None:
    """Verified output; what was recorded before a kill was not made again."""

    async def ended() -> bool:
        await house.hurry()
        return (await house.views.job(job)).ended_at is not None

    await until(ended, "the film has ended", within=90)
    view = await house.views.job(job)
    assert view.status == "completed", view.error
    pieces = await house.pieces(job)
    assert sorted(pieces) == sorted((name, n) for name in ("90p", "180p", "audio-1") for n in range(SEGMENTS))
    assert {place: pieces[place].kept.key for place in recorded} == recorded
    folder = await house.exported(job)
    assert numbers_of(folder) == {"h264-90p": list(range(FRAMES)), "h264-180p": list(range(FRAMES))}
    assert faults_of(folder, house.folder / "readers") == []
    homes = [path.name for path in house.folder.glob("home-ann/*")]
    assert homes == ["scratch"], "a remote worker needs nothing but a scratch folder"


def test_two_workers_share_a_film_and_one_is_stopped_longer_than_its_lease(tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=FRAMES),)))

    async def scene(post: Outpost) -> None:
        async with open_engine(post.settings) as parts:
            house = Theatre(parts, tmp_path)
            job = await house.begun(slowly(film))
            ann = post.work("ann")
            await recorded_at_least(house, job, 1)

            ann.send_signal(signal.SIGSTOP)
            post.work("bob")

            async def given_up() -> bool:
                return ("video", "lost") in await house.attempts(job) or ("audio", "lost") in await house.attempts(job)

            await until(given_up, "ann's lease has ended", within=60)
            ann.send_signal(signal.SIGCONT)
            await check(house, job, {})

    with outpost(tmp_path, f"sqlite:///{tmp_path}/telecine.db") as post:
        post.serve()
        asyncio.run(asyncio.wait_for(scene(post), 150))


def test_a_film_goes_through_a_bucket_that_only_the_server_has_the_key_of(tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=60),)))

    async def scene(post: Outpost) -> None:
        async with open_engine(post.settings) as parts:
            house = Theatre(parts, tmp_path)
            job = await house.completed(small(film))
            folder = await house.exported(job.id)
            assert numbers_of(folder) == {"h264-90p": list(range(60)), "h264-180p": list(range(60))}

    with serve_s3(tmp_path) as bucket:
        keys = {"s3_access_key_id": KEY, "s3_secret_access_key": SECRET}
        place = {"artifacts_url": bucket.url, "s3_endpoint": bucket.endpoint, **keys}
        with outpost(tmp_path, f"sqlite:///{tmp_path}/telecine.db", **place) as post:
            post.serve()
            post.work("ann")
            asyncio.run(asyncio.wait_for(scene(post), 90))
            assert "did not take" not in post.logs()
            assert not (tmp_path / "server" / "scratch" / "incoming").exists(), "all of it went by links"
