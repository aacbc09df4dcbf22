"""What a worker over HTTP, or somebody who is none, must not be able to do to the server."""

import asyncio
import hashlib
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from telecine.engine.accounts.keys import Scope
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, a_file, a_hand, of
from tests.support.builders import a_flow

TRANSCODE = a_flow("validate", "plan", name="transcode")
LANES = {TRANSCODE.graph.lane(number): "transcode" for number in range(2)}
KIND = {"Content-Type": "application/json"}


@pytest.mark.parametrize("word", ["complete", "settle"])
async def test_a_worker_cannot_say_where_on_the_servers_disk_a_source_lies(
    front: Front, tmp_path: Path, word: str
) -> None:
    """Else it would be lent any file: the source of the job is missing, and the fact says where it is now."""
    secret = a_file(tmp_path, b"key of the server", "secret")
    await front.parts.engine.jobs.register(TRANSCODE)
    spec = {"source": str(tmp_path / "none.mp4")}
    await front.parts.engine.jobs.submit("transcode", spec, owner="ada", subject=("video", "bees"))
    hand = await a_hand(front)
    lease = await hand.take(lanes=LANES)
    lie = {"facts": {"moved_to": str(secret)}}

    refused = await hand.refusal(word, **(of(lease, **lie) if word == "complete" else {"words": [of(lease, done=lie)]}))
    honest = await hand.post("complete", **of(lease, facts={"width": 1280}))
    later = await hand.take("request-2", LANES)
    answer = await hand.client.get(f"/api/worker/source/{later.task_id}/{later.token}/bytes")

    assert refused == (422, "bad_fact")
    assert honest.status_code == 200
    assert (answer.status_code, answer.json()["code"]) == (422, "source_missing")


async def test_facts_about_a_subject_are_bounded(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film", subject=("video", "bees"))
    hand = await a_hand(front)
    lease = await hand.take()

    assert (await hand.post("complete", **of(lease, facts={"x": "x" * 70_000}))).status_code == 422


@pytest.mark.parametrize("who", ["nobody", "ada"])
async def test_much_is_read_only_of_somebody_with_the_key_of_a_worker(front: Front, who: str) -> None:
    """A route asks for the key after it has parsed the body: 32 MB of brackets are a gigabyte of lists."""
    read = 0
    size = 8 << 20

    async def much() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(size >> 16):
            read += 1 << 16
            yield b"[" * (1 << 16)

    headers = {**KIND, "Content-Length": str(size)}
    answer = await getattr(front, who).post("/api/worker/complete", content=much(), headers=headers)

    assert answer.status_code == (401 if who == "nobody" else 403)
    assert read <= 1 << 17


async def test_a_worker_may_say_much_if_it_says_how_much(front: Front) -> None:
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film")
    hand = await a_hand(front)
    lease = await hand.take()
    body = json.dumps(of(lease, result="x" * (2 * front.settings.max_body_bytes))).encode()

    async def unsaid() -> AsyncIterator[bytes]:
        yield body

    small = await hand.client.post("/api/worker/complete", content=unsaid(), headers=KIND)
    large = await hand.client.post("/api/worker/complete", content=body, headers=KIND)

    assert (small.status_code, small.json()["code"]) == (413, "too_large")
    assert (large.status_code, large.json()["accepted"]) == (200, True)


async def test_a_line_that_was_cut_without_a_word_keeps_nobody_waiting(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["telecine.api.worker.artifact_bytes"], "STALL_SECONDS", 0.5)
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film")
    hand = await a_hand(front)
    lease = await hand.take()
    data = b"0123456789"
    where = f"/api/worker/artifacts/{lease.task_id}/{lease.token}/film"
    headers = {"X-SHA256": hashlib.sha256(data).hexdigest()}

    silent = asyncio.Event()

    async def ghost() -> AsyncIterator[bytes]:
        yield data[:4]
        silent.set()
        await asyncio.Event().wait()

    lost = asyncio.create_task(
        hand.client.put(where, content=ghost(), headers={**headers, "Content-Length": str(len(data))})
    )
    await asyncio.wait_for(silent.wait(), 20)
    again = await asyncio.wait_for(hand.client.put(where, content=data, headers=headers), 20)

    assert (again.status_code, again.json()["size"]) == (200, len(data))
    assert (await lost).status_code == 503


async def test_two_who_come_first_find_the_same_room(front: Front) -> None:
    client = await front.client(Scope.WORKER, name="ann")

    await asyncio.gather(*(client.get("/api/worker/terms") for _ in range(8)))
    room = front.house.rooms["workers"]
    await client.get("/api/worker/terms")

    assert front.house.rooms["workers"] is room


async def test_a_worker_learns_how_traces_are_named(front: Front) -> None:
    front.house.trace_seed = "seed"

    assert (await front.worker.get("/api/worker/terms")).json()["trace"] == "seed"
