"""Sources on the server's disk: lent to whoever holds a task of that very job, and nothing else of the disk."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from telecine.errors import MediaRefused
from telecine.facts import Lease
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, Hand, a_file, a_hand, held, nowhere
from tests.support.builders import a_flow

TRANSCODE = a_flow("validate", name="transcode")
LANE = {TRANSCODE.graph.lane(0): "transcode"}


async def lent(front: Front, source: str, **how: Any) -> tuple[Hand, Lease]:
    await front.parts.engine.jobs.register(TRANSCODE)
    await front.parts.engine.jobs.submit("transcode", {"source": source}, **how)
    hand = await a_hand(front)
    return hand, await hand.take(lanes=LANE)


async def test_a_source_on_the_servers_disk_is_read_through_it(front: Front, tmp_path: Path) -> None:
    data = os.urandom(100_000)
    film = a_file(tmp_path, data, "film.mp4")
    hand, lease = await lent(front, str(film))
    source = hand.words.place.lend(held(lease))
    assert source is not None

    about = film.stat()
    assert await source.stat() == (len(data), about.st_mtime_ns, about.st_ino)
    assert await source.digest(nowhere) == hashlib.sha256(data).hexdigest()  # type: ignore[arg-type]
    assert await source.read(10, 20) == data[10:30]
    assert await source.read(99_990, 100) == data[99_990:]
    assert await source.read(100_000, 100) == b""


async def test_a_source_that_is_gone_is_refused_in_the_words_of_the_flow(front: Front, tmp_path: Path) -> None:
    hand, lease = await lent(front, str(tmp_path / "none.mp4"))
    source = hand.words.place.lend(held(lease))
    assert source is not None

    with pytest.raises(MediaRefused) as refused:
        await source.stat()

    assert refused.value.code == "source_missing"


async def test_a_source_that_moved_is_found_where_it_was_seen_last(front: Front, tmp_path: Path) -> None:
    moved = a_file(tmp_path, b"film", "moved.mp4")
    hand, lease = await lent(front, str(tmp_path / "film.mp4"), subject=("video", "bees"))
    await front.parts.engine.subjects.learn(("video", "bees"), "", {"moved_to": str(moved)})
    source = hand.words.place.lend(held(lease))
    assert source is not None

    assert await source.read(0, 10) == b"film"


@pytest.mark.parametrize("source", ["https://example.org/film.mp4", "s3://films/film.mp4", "relative.mp4"])
async def test_nothing_but_the_jobs_own_file_is_lent(front: Front, source: str) -> None:
    hand, lease = await lent(front, source)

    answer = await hand.client.get(f"/api/worker/source/{lease.task_id}/{lease.token}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_a_flow_that_lends_nothing_lends_nothing(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film", {"source": "/etc/passwd"})
    hand = await a_hand(front)
    lease = await hand.take()

    answer = await hand.client.get(f"/api/worker/source/{lease.task_id}/{lease.token}/bytes")

    assert answer.status_code == 404
