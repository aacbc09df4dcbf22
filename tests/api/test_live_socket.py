"""The WebSocket: job chains in their own words, once for each stage, from where the reader was."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from telecine.api.live import hub_of
from telecine.engine.accounts.keys import Scope
from telecine.facts import Done, Failed, HeldLease
from tests.api.chain_words import ANY
from tests.api.in_process_server import Front
from tests.api.sse_client import PATIENCE, listening
from tests.support.builders import a_flow, a_stage

FILM = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("publish", "cut"))
Message = dict[str, Any]


@asynccontextmanager
async def talking(
    port: int, query: str = "", *, key: str | None = None, **more: Any
) -> AsyncIterator[ClientConnection]:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    how = {"additional_headers": headers, "proxy": None, **more}
    async with connect(f"ws://127.0.0.1:{port}/api/v1/ws?{query}", **how) as socket:
        yield socket


async def hear(socket: ClientConnection, last: str, count: int = 1) -> list[Message]:
    """All messages up to the so-manieth of this type, each checked by its type."""
    found: list[Message] = []
    async with asyncio.timeout(PATIENCE):
        while sum(one["type"] == last for one in found) < count:
            found.append(json.loads(await socket.recv()))
            ANY.validate_python(found[-1])
    return found


def jobs_of(messages: list[Message]) -> list[tuple[str, str | None]]:
    """Whatever is resumed after: no progress, no statistics."""
    return [
        (one["type"], one.get("jobType"))
        for one in messages
        if one["type"].startswith("job:") and one["type"] != "job:progress"
    ]


async def play(front: Front, pieces: int = 3) -> int:
    """One job whose middle stage has many tasks, one of them lost on the way."""
    job = await front.bed.submit(owner="ada", subject=("movie", "12"), priority=8)
    await front.bed.say(await front.bed.take(), Done(plan={"cut": list(range(pieces))}))
    lost, *rest = await front.bed.claim(pieces)
    await front.bed.release(lost)
    await front.bed.settle(rest)
    await front.bed.run_all()
    return job


STORY = [
    ("job:queued", "plan"),
    ("job:started", "plan"),
    ("job:completed", "plan"),
    ("job:queued", "cut"),
    ("job:started", "cut"),
    ("job:completed", "cut"),
    ("job:queued", "publish"),
    ("job:started", "publish"),
    ("job:completed", "publish"),
    ("job:chain:completed", None),
]


async def test_each_stage_is_told_once_and_never_by_its_pieces(front: Front) -> None:
    await front.bed.enact(FILM)
    async with listening(front.app) as port, talking(port, key=await front.key(Scope.OWNER, owner="ada")) as socket:
        [_, snapshot] = await hear(socket, "snapshot")
        job = await play(front, pieces=5)
        heard = await hear(socket, "job:chain:completed")

    assert snapshot["jobs"] == []
    assert jobs_of(heard) == STORY
    queued, started, *_, end = [one for one in heard if one["type"].startswith("job:") and "id" in one]
    assert (queued["jobId"], queued["entityType"], queued["entityId"], queued["priority"]) == (job, "movie", "12", 8)
    assert started["workerId"] == str(front.bed.worker)
    assert (end["jobCount"], end["duration"] >= 0) == (3, True)


async def test_a_reader_that_comes_back_hears_the_rest_and_nothing_twice(front: Front) -> None:
    await front.bed.enact(FILM)
    await play(front)
    key = await front.key(Scope.OWNER, owner="ada")
    async with listening(front.app) as port:
        async with talking(port, "after=0&snapshot=0", key=key) as socket:
            whole = [one for one in await hear(socket, "job:chain:completed") if "id" in one]
        for place in range(0, len(whole) - 1, 2):
            async with talking(port, f"after={whole[place]['id']}&snapshot=0", key=key) as socket:
                rest = [one for one in await hear(socket, "job:chain:completed") if "id" in one]
            assert rest[1:] == whole[place + 1 :], "but for the sign of life in front"

    assert jobs_of(whole) == STORY


async def test_a_failure_says_whether_and_when_it_is_tried_again(front: Front) -> None:
    await front.bed.enact(a_flow(a_stage("only")))
    async with listening(front.app) as port, talking(port, key=await front.key(Scope.ADMIN)) as socket:
        await front.bed.submit(owner="ada")
        await front.bed.say(await front.bed.take(), Failed("no room", code="disk_full"))
        first = (await hear(socket, "job:failed"))[-1]
        await front.bed.sql("update task set parked = false, ready_at = 0")
        await front.bed.say(await front.bed.take(), Failed("no use", permanent=True))
        heard = await hear(socket, "job:chain:failed")

    row = await front.bed.attempts((await front.bed.sql("select id from task"))[0]["id"])
    assert (first["error"], first["willRetry"], first["nextRetryAt"]) == ("no room", True, row[0]["ready_at"])
    assert (first["attempt"], first["maxAttempts"]) == (1, 3)
    last = next(one for one in heard if one["type"] == "job:failed")
    assert (last["error"], last["willRetry"], last.get("nextRetryAt")) == ("no use", False, None)
    assert "job:started" not in [one["type"] for one in heard], "a stage begins once"


async def test_a_stage_of_many_pieces_fails_once_with_the_error_of_a_piece(front: Front) -> None:
    await front.bed.enact(FILM)
    async with listening(front.app) as port, talking(port, key=await front.key(Scope.OWNER, owner="ada")) as socket:
        await front.bed.submit(owner="ada")
        await front.bed.say(await front.bed.take(), Done(plan={"cut": [1, 2, 3]}))
        one, two, three = await front.bed.claim(3)
        await front.bed.say(one, Failed("try again"))
        await front.bed.say(two, Failed("no picture", code="no_picture", permanent=True))
        await front.bed.say(three, Failed("told to stop"))
        heard = await hear(socket, "job:chain:failed")

    failures = [one for one in heard if one["type"] == "job:failed"]
    assert [(one["jobType"], one["error"], one["willRetry"]) for one in failures] == [("cut", "no picture", False)]


async def test_a_persons_retry_begins_what_had_failed_anew(front: Front) -> None:
    await front.bed.enact(FILM)
    job = await front.bed.submit(owner="ada")
    await front.bed.say(await front.bed.take(), Done(plan={"cut": [1, 2]}))
    for lease in await front.bed.claim(2):
        await front.bed.fail_for_good(lease)
    key = await front.key(Scope.OWNER, owner="ada")
    async with listening(front.app) as port:
        async with talking(port, "after=0&snapshot=0", key=key) as socket:
            await hear(socket, "job:chain:failed")
            await front.house.engine.jobs.retry(job)
            await front.bed.run_all()
            live = jobs_of(await hear(socket, "job:chain:completed"))
        async with talking(port, "after=0&snapshot=0", key=key) as socket:
            again = jobs_of(await hear(socket, "job:chain:completed"))

    assert live == [("job:queued", "cut"), ("job:started", "cut"), ("job:completed", "cut"), *STORY[6:]]
    assert again[-len(live) :] == live
    assert again.count(("job:started", "cut")) == 2


async def test_a_job_that_comes_after_another_is_queued_when_its_turn_has_come(front: Front) -> None:
    await front.bed.enact(a_flow(a_stage("only")))
    first = await front.bed.submit(owner="ada")
    second = await front.bed.submit(owner="ada", after=(first,))
    await front.bed.run_all()
    async with listening(front.app) as port:
        key = await front.key(Scope.OWNER, owner="ada")
        async with talking(port, "after=0&snapshot=0", key=key) as socket:
            heard = await hear(socket, "job:chain:completed", 2)

    story = [(one["type"], one["jobId"]) for one in heard if one["type"] in ("job:queued", "job:chain:completed")]
    ended = ("job:chain:completed", first)
    assert story.count(("job:queued", second)) == 1
    assert story.index(("job:queued", second)) > story.index(("job:queued", first))
    assert story[-1] == ("job:chain:completed", second)
    assert ended in story


async def test_progress_and_statistics_come_between(front: Front) -> None:
    await front.bed.enact(a_flow(a_stage("only")))
    async with listening(front.app) as port, talking(port, key=await front.key(Scope.OWNER, owner="ada")) as socket:
        await hear(socket, "snapshot")
        await front.bed.submit(owner="bob")
        job = await front.bed.submit(owner="ada", priority=9)
        lease = await front.bed.take()
        held = HeldLease(task_id=lease.task_id, token=lease.token, progress=0.5, note="half")
        await front.house.engine.beat(front.bed.worker, [held])
        heard = [*await hear(socket, "job:progress"), *await hear(socket, "queue:stats")]

    progress = next(one for one in heard if one["type"] == "job:progress")
    assert (progress["jobId"], progress["progress"], progress["message"]) == (job, 50.0, "half")
    stats = heard[-1]
    assert (stats["pending"], stats["active"], stats["workers"]) == (0, 1, 1), "bob's job is not hers to count"


async def test_a_reader_may_change_its_mind(front: Front) -> None:
    await front.bed.enact(a_flow(a_stage("only")))
    one, two = [await front.bed.submit(owner="ada") for _ in range(2)]
    foreign = await front.bed.submit(owner="bob")
    async with listening(front.app) as port, talking(port, key=await front.key(Scope.OWNER, owner="ada")) as socket:
        await hear(socket, "snapshot")
        await socket.send(json.dumps({"subscribe": {"job": two}, "after": "0"}))
        snapshot = (await hear(socket, "snapshot"))[-1]
        heard = await hear(socket, "job:queued")
        await socket.send(json.dumps({"subscribe": {"job": foreign}}))
        refused = (await hear(socket, "error"))[-1]
        await socket.send("nonsense")
        confused = (await hear(socket, "error"))[-1]
        await socket.send(json.dumps({"subscribe": {"colour": "red"}}))
        unknown = (await hear(socket, "error"))[-1]

    assert [job["id"] for job in snapshot["jobs"]] == [two]
    assert [one_["jobId"] for one_ in heard if one_["type"] == "job:queued"] == [two]
    assert one != two
    assert (refused["code"], confused["code"], unknown["code"]) == ("not_found", "bad_spec", "bad_spec")


async def test_what_was_pruned_is_a_reset_and_a_snapshot(front: Front) -> None:
    await front.bed.enact(a_flow(a_stage("only")))
    await front.bed.submit(owner="ada")
    newest = await front.house.engine.events.newest()
    async with listening(front.app) as port:
        key = await front.key(Scope.OWNER, owner="ada")
        async with talking(port, f"after={newest + 7}&snapshot=0", key=key) as socket:
            heard = await hear(socket, "snapshot")

    assert [(one["type"], one["id"]) for one in heard[1:]] == [("reset", str(newest)), ("snapshot", str(newest))]


async def test_whoever_says_too_much_is_shut_out(front: Front) -> None:
    async with listening(front.app) as port:
        key = await front.key(Scope.OWNER, owner="ada")
        async with talking(port, key=key) as socket:
            for _ in range(25):
                await socket.send(json.dumps({"snapshot": False}))
            with pytest.raises(ConnectionClosed) as closed:
                await hear(socket, "never")
        async with talking(port, key=key) as socket:
            await socket.send("x" * (70 << 10))
            with pytest.raises(ConnectionClosed) as large:
                await hear(socket, "never")

    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1008
    assert large.value.rcvd is not None
    assert large.value.rcvd.code == 1009


async def test_a_revoked_key_is_shut_out_within_a_bound(front: Front) -> None:
    text = await front.key(Scope.OWNER, owner="eve")
    [key] = await front.house.keys.list(owner="eve")
    async with listening(front.app) as port:
        hub_of(front.house).key_check = 0.1
        async with talking(port, key=text) as socket:
            await hear(socket, "snapshot")
            await front.house.keys.revoke(key.id)
            with pytest.raises(ConnectionClosed) as closed:
                await hear(socket, "never")

    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4401, "key_invalid")


async def test_who_has_no_right_to_listen_gets_no_connection(front: Front) -> None:
    keys = {"worker": await front.key(Scope.WORKER, name="w"), "nobody": None}
    codes = {}
    async with listening(front.app) as port:
        for name, key in keys.items():
            with pytest.raises(InvalidStatus) as refused:
                await talking(port, key=key).__aenter__()
            codes[name] = refused.value.response.status_code
            assert refused.value.response.headers["content-type"] == "application/problem+json"

    assert codes == {"worker": 403, "nobody": 401}
