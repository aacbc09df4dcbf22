"""A submit that names who shall be told of its job: both in one transaction, told like every other webhook."""

import asyncio
from typing import Any

import httpx
import pytest

from telecine.engine.jobs import registration
from telecine.engine.webhooks.subscriptions import MAX_OF_JOB, OF_JOB_KEPT, Webhooks
from telecine.facts import DAY
from tests.api.call_counter import counted_reads
from tests.api.in_process_server import Front
from tests.api.webhook_server import BRISK, at_work, brisk, deliveries, is_genuine, settled, until
from tests.support.builders import a_flow
from tests.support.webhook_receiver import broken, listen

URL = "https://example.org/hook"


async def submitted(
    front: Front, webhook: dict[str, Any] | None, *, key: str | None = None, **more: Any
) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    named = {} if webhook is None else {"webhook": webhook}
    return await front.ada.post("/api/v1/jobs", json={"flow": "film", **named, **more}, headers=headers)


async def test_who_is_named_at_the_submit_is_told_how_the_job_ends_and_of_no_other(front: Front) -> None:
    brisk(front)
    await front.bed.enact(a_flow())
    with listen() as receiver:
        made = await submitted(front, {"url": receiver.url()})
        other = await submitted(front, None)
        async with at_work(front):
            await front.bed.run_all()
            [delivery] = await settled(front)
            await until(lambda: _collected(front))
        [heard] = receiver.heard

    assert (made.status_code, made.headers["cache-control"]) == (201, "no-store")
    assert (heard.json["type"], heard.json["data"]["job"]["id"]) == ("job.completed", made.json()["id"])
    assert is_genuine(heard, made.json()["webhook"]["key"])
    assert (delivery["webhook_id"], delivery["state"]) == (made.json()["webhook"]["id"], "done")
    assert other.json() == {"id": other.json()["id"], "created": True, "webhook": None}


async def _collected(front: Front) -> bool:
    """Whether the postman has read all events: what he has not written by then he never will."""
    [row] = await front.bed.sql("select seq, (select max(seq) from event) as newest from postman")
    return bool(row["seq"] == row["newest"])


async def test_its_creation_and_its_retry_are_told_if_they_are_named(front: Front) -> None:
    brisk(front)
    await front.bed.enact(a_flow())
    with listen() as receiver:
        kinds = ["job.created", "job.cancelled", "job.retried"]
        job = (await submitted(front, {"url": receiver.url(), "kinds": kinds})).json()["id"]
        await front.ada.post(f"/api/v1/jobs/{job}/cancel")
        await front.ada.post(f"/api/v1/jobs/{job}/retry")
        async with at_work(front):
            await settled(front, 3)
        told = sorted(heard.json["type"] for heard in receiver.heard)

    assert told == sorted(kinds)


async def test_what_it_does_not_take_is_tried_again_and_then_a_dead_letter(front: Front) -> None:
    brisk(front)
    await front.bed.enact(a_flow())
    with listen() as receiver:
        receiver.manners["/hook"] = broken
        await submitted(front, {"url": receiver.url()})
        await front.bed.run_all()
        async with at_work(front):
            [dead] = await settled(front)

    assert (dead["state"], dead["tries"]) == ("dead", BRISK["webhook_attempts"])
    assert [one["id"] for one in await deliveries(front, state="dead")] == [dead["id"]]


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://127.0.0.1/"},
        {"url": "http://[::1]:8080/"},
        {"url": "http://169.254.169.254/latest"},
        {"url": "ftp://example.org/"},
        {"url": "https://me:secret@example.org/"},
        {"url": URL, "kinds": ["task.done"]},
        {"url": URL, "format": "carrier pigeon"},
        {"url": URL, "job_id": 7},
        {},
    ],
)
async def test_an_address_that_may_not_be_told_makes_no_job(front: Front, wrong: dict[str, object]) -> None:
    await front.bed.enact(a_flow())

    answers = [
        await submitted(front, wrong),
        await front.ada.post(
            "/api/v1/bulk/submit", json={"jobs": [{"flow": "film"}, {"flow": "film", "webhook": wrong}]}
        ),
    ]

    assert [one.status_code for one in answers] == [422, 422]
    assert (await front.ada.get("/api/v1/jobs")).json()["items"] == []


async def test_a_repeat_of_the_submit_has_the_same_webhook_and_the_same_key(front: Front) -> None:
    await front.bed.enact(a_flow())

    answers = await asyncio.gather(*[submitted(front, {"url": URL}, key="once") for _ in range(4)])
    await front.bed.run_all()
    late = await submitted(front, {"url": URL}, key="once")

    assert len({str(one.json()["webhook"]) for one in (*answers, late)}) == 1
    assert sorted(one.status_code for one in (*answers, late)) == [200, 200, 200, 200, 201]
    assert len((await front.ada.get("/api/v1/webhooks")).json()["items"]) == 1


@pytest.mark.parametrize("other", [None, {"url": "https://example.org/other"}, {"url": URL, "format": "slack"}])
async def test_the_same_key_with_another_receiver_is_refused(front: Front, other: dict[str, Any] | None) -> None:
    await front.bed.enact(a_flow())
    await submitted(front, {"url": URL}, key="once")

    again = await submitted(front, other, key="once")

    assert (again.status_code, again.json()["code"]) == (409, "key_reused")


async def test_a_twin_that_joins_a_job_is_told_of_it_too(front: Front) -> None:
    await front.bed.enact(a_flow())
    first = await submitted(front, {"url": URL}, dedupe_key="one")
    same = await submitted(front, {"url": URL}, dedupe_key="one")
    other = await submitted(front, {"url": "https://example.org/other"}, dedupe_key="one")
    listed = (await front.ada.get("/api/v1/webhooks")).json()["items"]

    assert {one.json()["id"] for one in (same, other)} == {first.json()["id"]}
    assert same.json()["webhook"] == first.json()["webhook"] != other.json()["webhook"]
    assert [one["job_id"] for one in listed] == [first.json()["id"]] * 2


async def test_a_job_that_others_have_filled_with_webhooks_takes_no_more(front: Front) -> None:
    await front.bed.enact(a_flow())
    urls = [f"https://example.org/{number}" for number in range(MAX_OF_JOB + 1)]

    answers = [await submitted(front, {"url": url}, dedupe_key="one") for url in urls]

    assert [one.status_code for one in answers] == [201, *[200] * (MAX_OF_JOB - 1), 409]
    assert "webhooks" in answers[-1].json()["detail"]


async def test_many_jobs_have_each_their_own_or_none(front: Front) -> None:
    await front.bed.enact(a_flow())
    wanted = [{"flow": "film", "webhook": {"url": URL}}, {"flow": "film"}, {"flow": "film", "webhook": {"url": URL}}]

    first = await front.ada.post("/api/v1/bulk/submit", json={"jobs": wanted}, headers={"Idempotency-Key": "all"})
    again = await front.ada.post("/api/v1/bulk/submit", json={"jobs": wanted}, headers={"Idempotency-Key": "all"})
    hooks = [one["webhook"] for one in first.json()["jobs"]]

    assert [one is None for one in hooks] == [False, True, False]
    assert len({one["key"] for one in hooks if one}) == 2
    assert [one["webhook"] for one in again.json()["jobs"]] == hooks


@pytest.mark.parametrize("more", [{}, {"webhook": {"url": URL}}])
async def test_of_many_jobs_each_flow_is_looked_up_once(front: Front, more: dict[str, Any]) -> None:
    await front.parts.store.run(lambda: registration.flow(a_flow().graph))  # by another server
    counts = []

    for jobs in (1, 20):
        with counted_reads(front.parts.store) as reads:
            answer = await front.ada.post("/api/v1/bulk/submit", json={"jobs": [{"flow": "film", **more}] * jobs})
        counts.append((answer.status_code, len(reads)))

    assert counts[0] == counts[1]
    assert counts[0][0] == 201


async def test_it_belongs_to_whoever_submitted(front: Front) -> None:
    await front.bed.enact(a_flow())
    number = (await submitted(front, {"url": URL})).json()["webhook"]["id"]

    assert (await front.bob.get(f"/api/v1/webhooks/{number}")).status_code == 404
    assert (await front.ada.get(f"/api/v1/webhooks/{number}")).json()["owner"] == "ada"
    assert (await front.ada.delete(f"/api/v1/webhooks/{number}")).status_code == 204


async def test_it_goes_when_its_job_has_ended_long_ago_and_not_before(front: Front) -> None:
    await front.bed.enact(a_flow())
    await submitted(front, {"url": URL})
    webhooks = Webhooks(front.parts.store, front.parts.world)
    [row] = await front.bed.sql("select created_at from webhook")

    front.parts.store.now = row["created_at"] + OF_JOB_KEPT + DAY
    waiting = await webhooks.prune()
    await front.bed.run_all()  # just now: the postman has not looked yet
    ended = await webhooks.prune()
    front.parts.store.now += OF_JOB_KEPT + DAY
    told = await webhooks.prune()

    assert (waiting, ended, told) == (0, 0, 1)
