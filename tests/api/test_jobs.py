"""Jobs over HTTP: submitted once, listed by page, changed by whoever saw them last, ended, deleted."""

from typing import Any

import httpx
import pytest

from telecine.engine.accounts.keys import Caller
from telecine.errors import BadSpec
from telecine.facts import Json, LogEntry
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

JOBS = "/api/v1/jobs"


async def submitted(front: Front, client: httpx.AsyncClient | None = None, **wanted: Any) -> int:
    answer = await (client or front.ada).post(JOBS, json={"flow": "film", **wanted})
    assert answer.status_code == 201, answer.text
    return int(answer.json()["id"])


async def work(front: Front, outcome: Any = None) -> None:
    """Do all that can be claimed."""
    await front.bed.enact(a_flow())
    await front.bed.run_all(outcome)


async def test_a_submitted_job_is_there_and_belongs_to_its_submitter(front: Front) -> None:
    await front.flow()

    made = await front.ada.post(
        JOBS, json={"flow": "film", "spec": {"x": 1}, "priority": "high", "subject": ["video", "v"]}
    )

    assert (made.status_code, made.headers["location"]) == (201, f"{JOBS}/{made.json()['id']}")
    job = await front.ada.get(made.headers["location"])
    shown = job.json()
    assert (shown["owner"], shown["spec"], shown["priority"], shown["subject"]) == ("ada", {"x": 1}, 8, ["video", "v"])
    assert (job.headers["etag"], job.headers["cache-control"]) == ('"1"', "no-store")


async def test_a_repeat_with_the_same_key_is_the_same_job(front: Front) -> None:
    await front.flow()
    key = {"Idempotency-Key": "k-1"}

    first = await front.ada.post(JOBS, json={"flow": "film"}, headers=key)
    again = await front.ada.post(JOBS, json={"flow": "film"}, headers=key)
    other = await front.ada.post(JOBS, json={"flow": "film", "spec": 2}, headers=key)
    somebody = await front.bob.post(JOBS, json={"flow": "film"}, headers=key)

    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {"id": first.json()["id"], "created": False, "webhook": None}
    assert (other.status_code, other.json()["code"]) == (409, "key_reused")
    assert somebody.status_code == 201


async def test_an_unfinished_twin_is_the_answer(front: Front) -> None:
    await front.flow()
    first = await submitted(front, dedupe_key="d")

    twin = await front.ada.post(JOBS, json={"flow": "film", "dedupe_key": "d"})

    assert (twin.status_code, twin.json()) == (200, {"id": first, "created": False, "webhook": None})


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 422, "bad_request"),
        ({"flow": "nosuch"}, 404, "not_found"),
        ({"flow": "film", "priority": 11}, 422, "bad_request"),
        ({"flow": "film", "priority": "urgent"}, 422, "bad_spec"),
        ({"flow": "film", "priority": True}, 422, "bad_request"),
        ({"flow": "film", "skip": ["nosuch"]}, 422, "bad_spec"),
        ({"flow": "film", "after": [999]}, 404, "not_found"),
        ({"flow": "film", "run_at": -1}, 422, "bad_request"),
        ({"flow": "film", "colour": "red"}, 422, "bad_request"),
        ({"flow": "film", "dedupe_key": "a\0b"}, 422, "bad_request"),
        ({"flow": "film", "spec": "a\0b"}, 422, "bad_spec"),
        ({"flow": "film", "owner": "bob"}, 403, "not_allowed"),
    ],
)
async def test_a_submit_that_makes_no_sense_is_refused(front: Front, body: Json, status: int, code: str) -> None:
    await front.flow()

    answer = await front.ada.post(JOBS, json=body)

    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"
    assert await front.bed.count("job") == 0


async def test_half_a_surrogate_pair_is_refused_and_quoted_without_harm(front: Front) -> None:
    await front.flow()
    kind = {"Content-Type": "application/json"}

    answers = [
        await front.ada.post(JOBS, content=text, headers=kind)
        for text in (b'{"flow": "\\ud800"}', b'{"flow": "film", "\\ud800": 1}', b'{"flow": "film", "spec": "\\udfff"}')
    ]

    assert [answer.status_code for answer in answers] == [422, 422, 422]


async def test_an_administrator_submits_for_others(front: Front) -> None:
    await front.flow()

    job = await submitted(front, front.admin, owner="ada")

    assert (await front.ada.get(f"{JOBS}/{job}")).status_code == 200
    assert (await front.bob.get(f"{JOBS}/{job}")).status_code == 404


async def test_nobody_waits_for_a_job_of_somebody_else(front: Front) -> None:
    await front.flow()
    hers = await submitted(front)

    same = {"X-Request-Id": "one"}
    foreign = await front.bob.post(JOBS, json={"flow": "film", "after": [hers]}, headers=same)
    unknown = await front.bob.post(JOBS, json={"flow": "film", "after": [hers + 1]}, headers=same)

    assert foreign.status_code == unknown.status_code == 404
    assert foreign.text.replace(f"job {hers}", "N") == unknown.text.replace(f"job {hers + 1}", "N")
    assert await submitted(front, after=[hers])


async def test_nobody_works_on_a_subject_of_somebody_else(front: Front) -> None:
    await front.flow()
    await submitted(front, subject=["video", "v"])

    answer = await front.bob.post(JOBS, json={"flow": "film", "subject": ["video", "v"]})

    assert (answer.status_code, answer.json()["code"]) == (403, "not_allowed")
    assert await front.bed.count("job") == 1
    assert await submitted(front, subject=["video", "v"])
    assert await submitted(front, front.admin, subject=["video", "v"])


async def test_a_flow_may_refuse_what_a_caller_asks_of_it(front: Front) -> None:
    async def only_for_admins(spec: Json, caller: Caller) -> None:
        if not caller.is_admin:
            raise BadSpec("a path on this server is not yours to name")

    await front.flow()
    front.house.checks = {"film": only_for_admins}

    refused = await front.ada.post(JOBS, json={"flow": "film", "spec": {"source": "/etc/passwd"}})

    assert (refused.status_code, refused.json()["code"]) == (422, "bad_spec")
    assert await submitted(front, front.admin)


async def test_jobs_are_listed_page_by_page_and_by_what_is_asked(front: Front) -> None:
    await front.flow()
    ids = [await submitted(front, subject=["video", str(n)]) for n in range(3)]
    await submitted(front, front.bob)

    first = (await front.ada.get(JOBS, params={"limit": 2})).json()
    second = (await front.ada.get(JOBS, params={"limit": 2, "cursor": first["next"]})).json()

    assert [job["id"] for job in first["items"] + second["items"]] == ids[::-1]
    assert second["next"] is None
    assert len((await front.admin.get(JOBS)).json()["items"]) == 4
    assert await _count(front, owner="bob") == 0
    assert await _count(front, subject_kind="video", subject_id="1") == 1
    assert await _count(front, status="open", flow="film") == 3
    assert await _count(front, status="failed") == 0
    assert await _count(front, until=1) == 0
    assert await _count(front, since=1) == 3


async def _count(front: Front, **params: Any) -> int:
    answer = await front.ada.get(JOBS, params=params)
    assert answer.status_code == 200, answer.text
    return len(answer.json()["items"])


@pytest.mark.parametrize(
    "params",
    [
        {"limit": 0},
        {"limit": 501},
        {"status": "asleep"},
        {"cursor": "nonsense"},
        {"cursor": "9" * 30 + "-1"},
        {"since": -1},
        {"since": 2**63},
        {"subject_kind": "video"},
        {"flow": "a\0"},
    ],
)
async def test_a_list_that_makes_no_sense_is_refused(front: Front, params: dict[str, Any]) -> None:
    answer = await front.ada.get(JOBS, params=params)

    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"]


async def test_an_edit_moves_the_version_and_refuses_who_saw_an_older_one(front: Front) -> None:
    await front.flow()
    place = f"{JOBS}/{await submitted(front)}"

    first = await front.ada.patch(place, json={"priority": "critical"}, headers={"If-Match": '"1"'})
    late = await front.ada.patch(place, json={"priority": 0}, headers={"If-Match": '"1"'})
    odd = await front.ada.patch(place, json={"priority": 0}, headers={"If-Match": '"x"'})
    weak = await front.ada.patch(place, json={"priority": 0}, headers={"If-Match": 'W/"2"'})
    listed = await front.ada.patch(place, json={"priority": 10}, headers={"If-Match": '"1", W/"7", "2"'})
    none = await front.ada.patch(place, json={"priority": 0}, headers={"If-Match": '"7", "8"'})
    free = await front.ada.patch(place, json={"run_at": 4_000_000_000_000})

    assert (first.status_code, first.json()["priority"], first.headers["etag"]) == (200, 10, '"2"')
    assert [(answer.status_code, answer.json()["code"]) for answer in (late, odd, weak, none)] == [
        (412, "version_mismatch")
    ] * 4
    assert listed.status_code == 200
    assert (free.status_code, free.json()["run_at"]) == (200, 4_000_000_000_000)
    assert [(await front.ada.patch(place, json=body)).status_code for body in ({}, {"priority": None})] == [422, 422]


async def test_a_cancelled_job_can_be_retried_and_a_completed_one_not(front: Front) -> None:
    await front.flow()
    place = f"{JOBS}/{await submitted(front)}"

    cancelled = await front.ada.post(f"{place}/cancel", json={"reason": "wrong film"})
    again = await front.ada.post(f"{place}/cancel")
    retried = await front.ada.post(f"{place}/retry")
    await work(front)
    over = [(await front.ada.post(f"{place}/{word}")).json()["code"] for word in ("cancel", "retry")]

    assert cancelled.json()["status"] == again.json()["status"] == "cancelled"
    assert retried.json()["status"] == "pending"
    assert (await front.ada.get(place)).json()["status"] == "completed"
    assert over == ["wrong_state", "wrong_state"]
    assert (await front.ada.patch(place, json={"priority": 1})).json()["code"] == "wrong_state"


async def test_a_deleted_job_is_gone_for_everybody(front: Front) -> None:
    await front.flow()
    job = await submitted(front)
    after = await submitted(front, after=[job])

    gone = await front.ada.delete(f"{JOBS}/{job}")

    assert gone.status_code == 204
    for client in (front.ada, front.admin):
        assert (await client.get(f"{JOBS}/{job}")).json()["code"] == "not_found"
        assert (await client.get(f"{JOBS}/{job}/tasks")).json()["code"] == "not_found"
        assert (await client.delete(f"{JOBS}/{job}")).status_code == 404
    assert [line["id"] for line in (await front.ada.get(JOBS)).json()["items"]] == [after]
    assert (await front.ada.get(f"{JOBS}/{after}")).json()["status"] == "cancelled"
    assert await front.bed.count("archive") == 1
    await front.bed.audited()


async def test_what_a_job_consists_of_is_listed(front: Front) -> None:
    flow = a_flow("cut", "join")
    await front.bed.enact(flow)
    job = await submitted(front)
    [cut] = await front.bed.claim(1)
    await front.bed.fail(cut, "no disk")
    place = f"{JOBS}/{job}"

    tasks = (await front.ada.get(f"{place}/tasks")).json()["items"]
    attempts = (await front.ada.get(f"{place}/attempts")).json()["items"]
    only = (await front.ada.get(f"{place}/tasks", params={"stage": "join", "state": "new"})).json()["items"]
    page = (await front.ada.get(f"{place}/tasks", params={"limit": 1})).json()

    assert [(task["stage"], task["claim_state"]) for task in tasks] == [("cut", "retrying"), ("join", "unclaimed")]
    assert [(a["outcome"], a["error"]["message"]) for a in attempts] == [("failed", "no disk")]
    assert [task["stage"] for task in only] == ["join"]
    assert (len(page["items"]), page["next"]) == (1, "0-0")
    assert (await front.ada.get(f"{place}/outputs")).json() == {"items": [], "next": None}
    assert (await front.ada.get(f"{place}/tasks", params={"stage": "nosuch"})).status_code == 422


async def test_log_lines_go_on_where_the_last_page_ended(front: Front) -> None:
    await front.bed.enact(a_flow())
    job = await submitted(front)
    lease = await front.bed.take()
    await front.bed.engine.log(
        [LogEntry(task_id=lease.task_id, token=lease.token, message=f"line {n}") for n in range(3)]
    )

    first = (await front.ada.get(f"{JOBS}/{job}/logs", params={"limit": 2})).json()
    rest = (await front.ada.get(f"{JOBS}/{job}/logs", params={"limit": 2, "after": first["next"]})).json()

    assert [line["message"] for line in first["items"] + rest["items"]] == ["line 0", "line 1", "line 2"]
    assert rest["next"] is None
