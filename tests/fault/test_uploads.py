"""Uploads and real processes: a server killed before the video is there makes it once; workers far away read it."""

import asyncio
import hashlib
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from telecine.engine.accounts.keys import Keys, Scope
from telecine.wiring import open_engine
from tests.api.raw_requests import BYTES, TUS, a_film
from tests.fault.server_processes import Outpost, outpost, wait_for

# From right after the last byte until after the video was made, as far as one can tell from outside.
DELAYS = (0.0, 0.05, 0.15, 0.4)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return a_film(tmp_path_factory.mktemp("film"))


async def _key(post: Outpost) -> str:
    async with open_engine(post.settings) as parts:
        return (await Keys(parts.store, parts.world).issue(Scope.OWNER, owner="ada")).text


def kill_after(post: Outpost, seconds: float) -> threading.Timer:
    assert post.server is not None
    timer = threading.Timer(seconds, post.server.kill)
    timer.start()
    return timer


def test_a_server_that_is_killed_while_it_finishes_uploads_makes_each_a_video_once(
    tmp_path: Path, sqlite_url: str, film: bytes
) -> None:
    with outpost(tmp_path, sqlite_url, upload_reserve_bytes=0) as post:
        post.serve()
        key = asyncio.run(_key(post))
        with httpx.Client(headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
            places = [_sent_and_killed(post, client, film, number) for number in range(len(DELAYS))]

            def ended() -> list[dict[str, Any]] | None:
                shown = [client.get(f"{post.url}{place}").json() for place in places]
                return shown if all(one["state"] == "done" for one in shown) else None

            uploads = wait_for(ended, "all uploads are done")
            jobs = client.get(f"{post.url}/api/v1/jobs").json()["items"]

        assert sorted(one["job"] for one in uploads) == sorted(job["id"] for job in jobs), "one job each"
        assert len({one["job"] for one in uploads}) == len(DELAYS)
        for one in uploads:
            stored = tmp_path / "artifacts" / "uploads" / one["id"] / "source"
            assert hashlib.sha256(stored.read_bytes()).hexdigest() == one["sha256"] == hashlib.sha256(film).hexdigest()
        folder = tmp_path / "server" / "uploads"
        wait_for(lambda: not list(folder.iterdir()), "nothing is left of them")


def _sent_and_killed(post: Outpost, client: httpx.Client, film: bytes, number: int) -> str:
    """Upload a film with wishes of its own, so that it is no twin, and kill the server soon after the last byte."""
    url = f"{post.url}/api/v1/uploads"
    metadata = ("name ZmlsbQ==", "audio Zmlyc3Q=", "audio bm9uZQ==", "poster bm8=")[number]
    announced = client.post(url, headers={**TUS, "Upload-Length": str(len(film)), "Upload-Metadata": metadata})
    place: str = announced.headers["location"]
    headers = {**BYTES, "Upload-Offset": "0"}
    assert client.patch(f"{post.url}{place}", headers=headers, content=film[:100]).status_code == 204
    killer = kill_after(post, DELAYS[number])
    try:
        _last(client, f"{post.url}{place}", film)
    finally:
        killer.join()
        assert post.server is not None
        post.server.wait()
        post.serve()
    # What was not counted is sent again.
    _last(client, f"{post.url}{place}", film)
    return place


def _last(client: httpx.Client, address: str, film: bytes) -> None:
    try:
        offset = int(client.head(address, headers=TUS).headers["upload-offset"])
        client.patch(address, headers={**BYTES, "Upload-Offset": str(offset)}, content=film[offset:])
    except httpx.TransportError:
        return  # the server is gone


def test_an_uploaded_film_is_made_by_a_worker_far_away_and_goes_with_its_video(
    tmp_path: Path, sqlite_url: str, film: bytes
) -> None:
    with outpost(tmp_path, sqlite_url, upload_reserve_bytes=0) as post:
        post.serve()
        key = asyncio.run(_key(post))
        post.work("ann")
        with httpx.Client(base_url=post.url, headers={"Authorization": f"Bearer {key}"}, timeout=60) as client:
            upload = client.put("/api/v1/uploads/film.mp4?sprites=no&preset=ultrafast", content=film).json()
            stored = tmp_path / "artifacts" / "uploads" / upload["id"] / "source"

            def ended() -> dict[str, Any] | None:
                job: dict[str, Any] = client.get(f"/api/v1/jobs/{upload['job']}").json()
                return job if job["ended_at"] is not None else None

            job = wait_for(ended, "the film is made")
            kept = stored.exists()
            client.delete(f"/api/v1/videos/{upload['video']}")
            wait_for(lambda: not stored.exists(), "the film is gone")
            gone = client.get(f"/api/v1/uploads/{upload['id']}")

    assert job["status"] == "completed", job["error"]
    assert kept, "another version may be made of it"
    assert gone.status_code == 404
