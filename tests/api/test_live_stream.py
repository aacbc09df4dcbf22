"""Server-sent events: in order, to whom they belong, from where the reader was, with what stands between them."""

import asyncio
import json
from typing import Any

import pytest

from telecine.api.live import hub_of
from telecine.engine.accounts.keys import Scope
from telecine.facts import Failed, HeldLease
from tests.api.in_process_server import Front
from tests.api.sse_client import PATIENCE, Ear, gather, listening
from tests.support.builders import a_flow, a_stage

FILM = a_flow(a_stage("cut"), a_stage("publish", "cut"))
STORY = ["job.created", "task.started", "task.done", "stage.ready", "task.started", "task.done", "job.completed"]


async def told(client: Any, query: str = "", **headers: str) -> list[dict[str, str]]:
    """What has happened, without waiting for more."""
    answer = await client.get(f"/api/v1/events?follow=false&{query}", headers=headers)
    assert answer.status_code == 200, answer.text
    blocks = [block for block in answer.text.split("\n\n") if "event: " in block]
    return [dict(line.split(": ", 1) for line in block.split("\n")) for block in blocks]


async def kinds(client: Any, query: str = "", **headers: str) -> list[str]:
    return [block["event"] for block in await told(client, query, **headers)]


async def test_a_stream_begins_with_its_place_and_tells_what_happens_then(front: Front) -> None:
    await front.bed.enact(FILM)
    before = await front.house.engine.events.newest()
    async with listening(front.app) as port:
        ear = await Ear.open(port, key=await front.key(Scope.OWNER, owner="ada"))
        blocks = ear.blocks()
        first, second = await anext(blocks), await anext(blocks)
        job = await front.bed.submit(owner="ada", subject=("video", "holiday"))
        event = await anext(blocks)
        ear.cut()

    assert (ear.status, ear.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert (first.retry, second.id) == (3000, str(before))
    assert (event.id, event.kind) == (str(before + 1), "job.created")
    assert event.data["job"] == job
    assert (event.data["owner"], event.data["subject"], event.data["flow"]) == ("ada", ["video", "holiday"], "film")


async def test_events_come_in_their_order_with_numbers_without_gaps(front: Front) -> None:
    await front.bed.enact(FILM)
    job = await front.bed.submit(owner="ada")
    await front.bed.run_all()

    found = await told(front.ada, f"job={job}")

    assert [block["event"] for block in found] == STORY
    ids = [int(block["id"]) for block in found]
    assert ids == list(range(ids[0], ids[0] + len(STORY)))


async def test_an_owner_hears_of_his_own_things_and_of_nothing_else(front: Front) -> None:
    await front.bed.enact(FILM)
    for owner in ("ada", "bob"):
        await front.bed.submit(owner=owner, subject=("video", owner))
    await front.bed.run_all()
    await front.house.engine.jobs.pause("film")
    job = (
        "job_ids) select 1, 'audit.finding', array[min(id)]"
        if front.bed.is_postgres
        else "job_id) select 1, 'audit.finding', min(id)"
    )
    await front.bed.sql(f"insert into {front.bed.new_events} (at, kind, {job} from job")
    say = '{"kind": "video", "id": "bob", "number": 1}'
    await front.bed.sql(
        f"insert into {front.bed.new_events} (at, kind, data) values (1, 'subject.version_kept', '{say}')"
    )

    hers, his, all_ = [await told(client) for client in (front.ada, front.bob, front.admin)]

    assert [block["event"] for block in hers] == STORY
    assert [block["event"] for block in his] == [*STORY, "subject.version_kept"]
    assert "bob" not in str(hers)
    assert {block["event"] for block in all_} >= {"worker.registered", "flow.paused", "audit.finding"}
    assert len(all_) == await front.bed.count("event")


async def test_a_foreign_job_is_as_absent_as_an_unknown_one(front: Front) -> None:
    await front.bed.enact(FILM)
    job = await front.bed.submit(owner="ada")

    foreign = await front.bob.get(f"/api/v1/events?job={job}&follow=false")
    unknown = await front.bob.get("/api/v1/events?job=999999&follow=false")

    assert (foreign.status_code, unknown.status_code) == (404, 404)
    assert foreign.json()["detail"].replace(str(job), "N") == unknown.json()["detail"].replace("999999", "N")
    assert await kinds(front.bob, "subject=video:ada") == []


async def test_who_has_no_right_to_listen_is_told_why(front: Front) -> None:
    assert (await front.nobody.get("/api/v1/events")).status_code == 401
    assert (await front.worker.get("/api/v1/events")).status_code == 403
    assert (await front.ada.get("/api/v1/events?worker=1")).status_code == 403


@pytest.mark.parametrize("query", ["after=x", "after=-1", "after=1.2.3", "subject=video", "job=0", "kinds=a%20b"])
async def test_a_question_that_makes_no_sense_is_refused(front: Front, query: str) -> None:
    answer = await front.ada.get(f"/api/v1/events?follow=false&{query}")

    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


async def test_filters_leave_out_the_rest(front: Front) -> None:
    await front.bed.enact(FILM)
    one, two = [await front.bed.submit(owner="ada", subject=("video", name)) for name in ("one", "two")]
    await front.bed.run_all()
    worker = front.bed.worker

    assert {block["data"].count(f'"job":{one}') for block in await told(front.ada, f"job={one}")} == {1}
    assert "job.created" in await kinds(front.ada, "subject=video:two")
    assert f'"job":{two}' not in str(await told(front.ada, "subject=video:one"))
    assert set(await kinds(front.ada, "kinds=job.*")) == {"job.created", "job.completed"}
    by_worker = await kinds(front.admin, f"worker={worker}")
    assert set(by_worker) == {"worker.registered", "task.started", "task.done"}


async def test_a_subjects_end_is_told_under_its_own_name_and_resumed_after_exactly(front: Front) -> None:
    await front.bed.enact(FILM)
    job = await front.bed.submit(owner="ada", subject=("video", "holiday"))
    await front.bed.run_all()

    *_, both, named = await told(front.ada, "subject=video:holiday")
    assert (both["event"], named["event"]) == ("job.completed", "video.completed")
    number = int(named["id"])
    assert both["id"] == f"{number - 1}.1"
    assert await kinds(front.ada, "subject=video:holiday", **{"Last-Event-ID": both["id"]}) == ["video.completed"]
    assert await kinds(front.ada, "subject=video:holiday", **{"Last-Event-ID": named["id"]}) == []
    assert await kinds(front.ada, "kinds=video.*") == ["video.completed"]
    assert "video.completed" not in await kinds(front.ada, f"job={job}")


async def test_what_was_pruned_is_a_reset_and_a_snapshot(front: Front) -> None:
    await front.bed.enact(FILM)
    done, job = [await front.bed.submit(owner="ada") for _ in range(2)]
    await front.bed.sql("update event_counter set pruned = 2")
    newest = await front.house.engine.events.newest()
    await front.bed.sql("delete from event where seq <= 2")

    pruned = await told(front.ada, "after=1")
    restored = await told(front.ada, f"after={newest + 5}")

    assert [block["event"] for block in pruned] == ["reset", "snapshot"]
    assert [block["id"] for block in pruned] == [str(newest)] * 2
    assert f'"id":{job}' in pruned[1]["data"]
    assert f'"id":{done}' in pruned[1]["data"]
    assert [block["event"] for block in restored] == ["reset", "snapshot"]


async def test_a_quiet_stream_shows_life_and_moves_its_place_on(front: Front) -> None:
    await front.bed.enact(FILM)
    async with listening(front.app) as port:
        hub_of(front.house).alive_after = 0.1
        ear = await Ear.open(port, "kinds=worker.*", key=await front.key(Scope.OWNER, owner="ada"))
        await front.bed.submit(owner="bob")
        newest = str(await front.house.engine.events.newest())
        async with asyncio.timeout(PATIENCE):
            async for heard in ear.blocks():
                if heard.id == newest:
                    break

    assert (heard.comment, heard.kind, heard.data) == ("alive", None, None)


async def test_a_snapshot_comes_first_and_shows_only_what_the_reader_may_see(front: Front) -> None:
    await front.bed.enact(FILM)
    await front.bed.submit(owner="ada")
    await front.bed.submit(owner="bob")

    [hers, *_] = await told(front.ada, "snapshot=1&after=1")
    [all_, *_] = await told(front.admin, "snapshot=1&after=1")

    assert (hers["event"], all_["event"]) == ("snapshot", "snapshot")
    assert '"owner":"ada"' in hers["data"]
    assert "bob" not in hers["data"]
    assert "workers" in all_["data"]
    assert '"pending":1' in hers["data"]
    assert '"pending":2' in all_["data"]


async def test_progress_comes_between_events_and_moves_no_reader_on(front: Front) -> None:
    await front.bed.enact(FILM)
    async with listening(front.app) as port:
        ear = await Ear.open(port, "subject=video:holiday", key=await front.key(Scope.OWNER, owner="ada"))
        await front.bed.submit(owner="ada", subject=("video", "holiday"))
        await gather(ear, 1)
        lease = await front.bed.take()
        await front.house.engine.beat(
            front.bed.worker, [HeldLease(task_id=lease.task_id, token=lease.token, progress=0.5, note="half")]
        )
        heard = await ear.until(lambda heard: heard.kind == "video.progress" and heard.data["progress"] > 0)
        ear.cut()

    progress = heard[-1]
    assert (progress.id, progress.data["id"], progress.data["note"]) == (None, "holiday", "half")
    assert progress.data["progress"] == 0.25
    assert ear.last_id is not None
    assert ear.last_id.isdigit()


async def test_administrators_hear_whether_workers_are_there_and_busy(front: Front) -> None:
    await front.bed.enact(FILM)
    async with listening(front.app) as port:
        ear = await Ear.open(port, "kinds=worker.*", key=await front.key(Scope.ADMIN))
        hers = await Ear.open(port, key=await front.key(Scope.OWNER, owner="ada"))
        await anext(ear.blocks())
        await anext(hers.blocks())
        bea = await front.bed.enlist("bea")
        await front.bed.submit(owner="ada")
        [lease] = await front.bed.claim(1, bea)
        busy = await ear.until(lambda heard: heard.kind == "worker.busy")
        await front.bed.done(lease)
        idle = await ear.until(lambda heard: heard.kind == "worker.idle")
        await front.house.engine.retire(bea)
        gone = await ear.until(lambda heard: heard.kind == "worker.offline")
        await front.bed.submit(owner="ada")
        owned = await gather(hers, 5)
        ear.cut()
        hers.cut()

    found = [heard for heard in (*busy, *idle, *gone) if heard.data["worker"] == bea]
    states = [heard.kind for heard in found if heard.id is None]
    assert states == ["worker.online", "worker.busy", "worker.idle", "worker.offline"]
    assert [heard.kind for heard in found if heard.id is not None] == ["worker.registered", "worker.left"]
    assert not [heard for heard in owned if heard.kind and heard.kind.startswith("worker")]


async def test_a_key_may_have_only_so_many_streams(front: Front) -> None:
    front.house.settings = front.settings.model_copy(update={"max_streams_per_key": 2})
    key = await front.key(Scope.OWNER, owner="ada")
    async with listening(front.app) as port:
        ears = [await Ear.open(port, key=key) for _ in range(3)]
        other = await Ear.open(port, key=await front.key(Scope.OWNER, owner="ada"))
        refusal = await ears[2].body()
        ears[0].cut()
        async with asyncio.timeout(PATIENCE):
            while (again := await Ear.open(port, key=key)).status != 200:
                await asyncio.sleep(0.05)
        for ear in (*ears, other, again):
            ear.cut()

    assert [ear.status for ear in ears] == [200, 200, 429]
    assert other.status == 200
    assert b"limit" in refusal


async def test_a_revoked_key_hears_no_more_within_a_bound(front: Front) -> None:
    client = await front.key(Scope.OWNER, owner="eve")
    [key] = await front.house.keys.list(owner="eve")
    async with listening(front.app) as port:
        hub_of(front.house).key_check = 0.1
        ear = await Ear.open(port, key=client)
        await front.house.keys.revoke(key.id)
        heard = await ear.rest()
        again = await Ear.open(port, key=client)

    assert [(one.kind, one.data) for one in heard] == [("end", {"reason": "key_invalid"})]
    assert again.status == 401


async def test_streams_end_when_the_server_is_about_to_stop(front: Front) -> None:
    async with listening(front.app) as port:
        ear = await Ear.open(port, key=await front.key(Scope.OWNER, owner="ada"))
        await anext(ear.blocks())

        front.house.closing.set()

        assert await ear.rest() == []


async def test_failures_carry_what_the_reader_needs(front: Front) -> None:
    await front.bed.enact(FILM)
    await front.bed.submit(owner="ada")
    await front.bed.say(await front.bed.take(), Failed("no room", code="disk_full"))

    [block] = await told(front.ada, "kinds=task.retrying")

    data = json.loads(block["data"])["data"]
    assert (data["message"], data["code"], data["attempt"], data["of"]) == ("no room", "disk_full", 1, 3)
