"""Webhooks over HTTP: made, listed, tried, deleted; whose they are; what is told, and signed how."""

import pytest

from telecine.engine.webhooks.subscriptions import MAX_OF_JOB, MAX_OF_OWNER
from tests.api.in_process_server import Front
from tests.api.webhook_server import BRISK, a_job, at_work, brisk, deliveries, hook, is_genuine, settled
from tests.support.builders import a_flow
from tests.support.webhook_receiver import broken, gone, listen

URL = "https://example.org/hook"


async def test_a_webhook_is_made_shown_and_deleted(front: Front) -> None:
    made = await front.ada.post("/api/v1/webhooks", json={"url": URL, "format": "slack", "kinds": ["job.failed"]})
    webhook = made.json()["webhook"]
    listed = await front.ada.get("/api/v1/webhooks")
    one = await front.ada.get(f"/api/v1/webhooks/{webhook['id']}")
    gone = await front.ada.delete(f"/api/v1/webhooks/{webhook['id']}")

    assert made.status_code == 201
    assert (webhook["url"], webhook["format"], webhook["kinds"]) == (URL, "slack", ["job.failed"])
    assert made.json()["key"].startswith("whsec_")
    assert listed.json() == {"items": [webhook], "next": None}
    assert one.json() == webhook
    assert gone.status_code == 204
    assert (await front.ada.get("/api/v1/webhooks")).json()["items"] == []


async def test_a_key_is_shown_once_and_stored_nowhere(front: Front) -> None:
    made = await hook(front, URL)
    rows = [await front.bed.sql(f"select * from {table}") for table in ("webhook", "postman", "delivery", "event")]
    shown = [(await front.ada.get(path)).text for path in ("/api/v1/webhooks", "/api/v1/webhooks/1")]

    assert made["key"].removeprefix("whsec_") not in str(rows) + str(shown)
    assert made["key"] != (await hook(front, URL))["key"]


async def test_what_belongs_to_somebody_else_is_not_there(front: Front) -> None:
    number = (await hook(front, URL))["webhook"]["id"]
    job = await a_job(front)
    foreign = [
        await front.bob.get(f"/api/v1/webhooks/{number}"),
        await front.bob.delete(f"/api/v1/webhooks/{number}"),
        await front.bob.post(f"/api/v1/webhooks/{number}/test"),
        await front.bob.post("/api/v1/webhooks", json={"url": URL, "job_id": job}),
    ]
    unknown = await front.bob.get("/api/v1/webhooks/999999")

    assert [one.status_code for one in (*foreign, unknown)] == [404] * 5
    assert foreign[0].json()["detail"].replace(str(number), "N") == unknown.json()["detail"].replace("999999", "N")
    assert (await front.bob.get("/api/v1/webhooks")).json()["items"] == []
    assert len((await front.admin.get("/api/v1/webhooks")).json()["items"]) == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ""), ("GET", ""), ("GET", "/1"), ("DELETE", "/1"), ("POST", "/1/test"), ("GET", "/deliveries"),
        ("POST", "/deliveries/1/retry"), ("GET", "/alert-key"),
    ],
)  # fmt: skip
async def test_no_route_is_open_to_workers_or_to_nobody(front: Front, method: str, path: str) -> None:
    answers = [await who.request(method, f"/api/v1/webhooks{path}", json={}) for who in (front.nobody, front.worker)]

    assert [one.status_code for one in answers] == [401, 403]


async def test_the_key_of_alerts_is_for_administrators(front: Front) -> None:
    shown = await front.admin.get("/api/v1/webhooks/alert-key")

    assert shown.json()["key"].startswith("whsec_")
    assert (await front.ada.get("/api/v1/webhooks/alert-key")).status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://127.0.0.1/"},
        {"url": "http://[::1]:8080/"},
        {"url": "ftp://example.org/"},
        {"url": "https://me:secret@example.org/"},
        {"url": URL, "kinds": ["task.done"]},
        {"url": URL, "kinds": []},
        {"url": URL, "format": "carrier pigeon"},
        {"url": URL, "job_id": 0},
        {"url": URL, "extra": 1},
        {},
    ],
)
async def test_what_makes_no_sense_is_refused(front: Front, wrong: dict[str, object]) -> None:
    answer = await front.ada.post("/api/v1/webhooks", json=wrong)

    assert answer.status_code == 422
    assert answer.json()["detail"]


async def test_a_job_that_has_ended_has_nothing_left_to_tell(front: Front) -> None:
    job = await a_job(front)

    late = await front.ada.post("/api/v1/webhooks", json={"url": URL, "job_id": job})

    assert (late.status_code, late.json()["code"]) == (409, "wrong_state")
    assert "completed" in late.json()["detail"]


async def test_nobody_can_have_webhooks_without_end(front: Front) -> None:
    await front.bed.enact(a_flow())
    job = await front.bed.submit(owner="ada")
    for _ in range(MAX_OF_OWNER):
        await hook(front, URL)
    for _ in range(MAX_OF_JOB):
        await hook(front, URL, job_id=job)

    answers = [await front.ada.post("/api/v1/webhooks", json={"url": URL, **more}) for more in ({}, {"job_id": job})]

    assert [one.status_code for one in answers] == [409, 409]


async def test_a_list_goes_on_where_its_page_ended(front: Front) -> None:
    ids = [(await hook(front, URL))["webhook"]["id"] for _ in range(3)]

    first = (await front.ada.get("/api/v1/webhooks", params={"limit": 2})).json()
    rest = (await front.ada.get("/api/v1/webhooks", params={"limit": 2, "cursor": first["next"]})).json()

    assert [one["id"] for one in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None


async def test_the_end_of_a_job_is_told_once_and_signed(front: Front) -> None:
    brisk(front)
    with listen() as receiver:
        made = await hook(front, receiver.url())
        async with at_work(front):
            job = await a_job(front)
            [delivery] = await settled(front)
        [heard] = receiver.heard

    assert (delivery["state"], delivery["last_status"], delivery["tries"]) == ("done", 204, 1)
    assert (heard.json["type"], heard.json["data"]["job"]["id"]) == ("job.completed", job)
    assert heard.json["data"]["job"]["subject"] == {"kind": "video", "id": "v-1"}
    assert heard.json["data"]["link"] == f"https://films.example/api/v1/jobs/{job}"
    assert (await front.ada.get(heard.json["data"]["link"].removeprefix("https://films.example"))).json()["id"] == job
    assert heard.headers["content-type"] == "application/json"
    assert is_genuine(heard, made["key"])
    assert not is_genuine(heard, (await hook(front, receiver.url()))["key"])


async def test_a_test_shows_whether_a_webhook_works(front: Front) -> None:
    brisk(front)
    with listen() as receiver:
        number = (await hook(front, receiver.url()))["webhook"]["id"]
        sent = await front.ada.post(f"/api/v1/webhooks/{number}/test")
        at_once = await front.ada.post(f"/api/v1/webhooks/{number}/test")
        async with at_work(front):
            [delivery] = await settled(front)
            again = await front.ada.post(f"/api/v1/webhooks/{number}/test")
            await settled(front, 2)
        kinds = [heard.json["type"] for heard in receiver.heard]

    assert [sent.status_code, at_once.status_code, again.status_code] == [202, 409, 202]
    assert (delivery["id"], delivery["state"]) == (sent.json()["delivery_id"], "done")
    assert kinds == ["webhook.test"] * 2
    assert all(heard.json["timestamp"].endswith("Z") for heard in receiver.heard)


async def test_a_dead_letter_is_listed_and_can_be_tried_again_under_the_same_id(front: Front) -> None:
    brisk(front)
    with listen() as receiver:
        receiver.turns["/hook"] = [broken] * 3
        await hook(front, receiver.url())
        async with at_work(front):
            await a_job(front, fails=True)
            [dead] = await settled(front)
            listed = await deliveries(front, state="dead")
            foreign = await front.bob.post(f"/api/v1/webhooks/deliveries/{dead['id']}/retry")
            retried = await front.ada.post(f"/api/v1/webhooks/deliveries/{dead['id']}/retry")
            [done] = await settled(front)
        ids = {heard.id for heard in receiver.heard}

    assert (dead["state"], dead["tries"], dead["last_status"], dead["last_error"]) == (
        "dead",
        BRISK["webhook_attempts"],
        500,
        "it answered 500",
    )
    assert [one["id"] for one in listed] == [dead["id"]]
    assert [foreign.status_code, retried.status_code] == [404, 202]
    assert done["state"] == "done"
    assert len(ids) == 1


async def test_a_receiver_that_says_it_is_gone_is_told_nothing_more(front: Front) -> None:
    brisk(front)
    with listen() as receiver:
        receiver.manners["/hook"] = gone
        number = (await hook(front, receiver.url()))["webhook"]["id"]
        async with at_work(front):
            await a_job(front)
            [delivery] = await settled(front)
            await a_job(front)
            tried = await front.ada.post(f"/api/v1/webhooks/{number}/test")
        heard = len(receiver.heard)

    assert (delivery["state"], delivery["tries"], heard) == ("dead", 1, 1)
    assert (await front.ada.get(f"/api/v1/webhooks/{number}")).json()["disabled_at"] is not None
    assert tried.status_code == 409
