"""The same for many jobs: by ids or by a filter, bounded, counted; what fails for one does not stop the others."""

from typing import Any

import httpx
import pytest

from telecine.facts import Failed, Json
from tests.api.in_process_server import ANY_DATABASE, Front
from tests.support.builders import a_flow

BULK = "/api/v1/bulk"


async def several(front: Front, client: httpx.AsyncClient, count: int = 3) -> list[int]:
    answer = await client.post(f"{BULK}/submit", json={"jobs": [{"flow": "film"}] * count})
    assert answer.status_code == 201, answer.text
    return [job["id"] for job in answer.json()["jobs"]]


async def said(client: httpx.AsyncClient, word: str, body: Json) -> dict[str, Any]:
    answer = await client.post(f"{BULK}/{word}", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def statuses(front: Front) -> list[str]:
    return [row["status"] for row in await front.bed.sql("select status from job order by id")]


async def test_many_jobs_are_submitted_together_or_not_at_all(front: Front) -> None:
    await front.flow()

    ids = await several(front, front.ada, 3)
    bad = await front.ada.post(f"{BULK}/submit", json={"jobs": [{"flow": "film"}, {"flow": "film", "after": [999]}]})

    assert len(set(ids)) == 3
    assert bad.status_code == 404
    assert await front.bed.count("job") == 3


async def test_a_repeated_bulk_submit_is_the_same_jobs_and_a_part_of_it_is_refused(front: Front) -> None:
    await front.flow()
    key, jobs = {"Idempotency-Key": "k"}, [{"flow": "film", "spec": n} for n in range(3)]

    first = await front.ada.post(f"{BULK}/submit", json={"jobs": jobs}, headers=key)
    again = await front.ada.post(f"{BULK}/submit", json={"jobs": jobs}, headers=key)
    part = await front.ada.post(f"{BULK}/submit", json={"jobs": jobs[:2]}, headers=key)
    more = await front.ada.post(f"{BULK}/submit", json={"jobs": [*jobs, *jobs]}, headers=key)

    assert [answer.status_code for answer in (first, again, part, more)] == [201, 200, 409, 409]
    assert [job["id"] for job in first.json()["jobs"]] == [job["id"] for job in again.json()["jobs"]]
    assert await front.bed.count("job") == 3


async def test_many_jobs_are_cancelled_by_their_ids(front: Front) -> None:
    await front.flow()
    mine, his = await several(front, front.ada), await several(front, front.bob, 1)

    done = await said(front.ada, "cancel", {"ids": [*mine, mine[0], his[0], 999_999]})
    again = await said(front.ada, "cancel", {"ids": mine})

    assert (done["matched"], done["changed"], done["next"]) == (3, 3, None)
    assert [(one["id"], one["code"]) for one in done["refused"]] == [(his[0], "not_found"), (999_999, "not_found")]
    assert {one["detail"].rstrip("0123456789") for one in done["refused"]} == {"there is no job "}
    assert (again["matched"], again["changed"], again["refused"]) == (3, 0, [])
    assert await statuses(front) == ["cancelled"] * 3 + ["pending"]


async def test_a_filter_goes_on_by_its_cursor_and_stays_with_its_owner(front: Front) -> None:
    await front.flow()
    await several(front, front.ada, 5)
    await several(front, front.bob, 2)

    first = await said(front.ada, "cancel", {"filter": {"status": "open"}, "limit": 3})
    second = await said(front.ada, "cancel", {"filter": {"status": "open"}, "limit": 3, "cursor": first["next"]})
    foreign = await said(front.ada, "cancel", {"filter": {"owner": "bob"}})

    assert [(page["matched"], page["changed"]) for page in (first, second, foreign)] == [(3, 3), (2, 2), (0, 0)]
    assert second["next"] is None
    assert sorted(await statuses(front)) == ["cancelled"] * 5 + ["pending"] * 2


async def test_what_failed_is_retried_and_what_completed_is_told(front: Front) -> None:
    await front.bed.enact(a_flow())
    failed = await several(front, front.ada, 2)
    await front.bed.run_all(Failed("no", permanent=True))
    done = await several(front, front.ada, 1)
    await front.bed.run_all()

    by_filter = await said(front.ada, "retry", {"filter": {"status": "failed"}})
    by_ids = await said(front.admin, "retry", {"ids": done})

    assert (by_filter["matched"], by_filter["changed"]) == (2, 2)
    assert [(one["id"], one["code"]) for one in by_ids["refused"]] == [(done[0], "wrong_state")]
    assert [row["status"] for row in await front.bed.sql("select status from job order by id")] == [
        "pending", "pending", "completed",
    ]  # fmt: skip
    assert len(failed) == 2


async def test_many_jobs_get_another_priority(front: Front) -> None:
    await front.flow()
    ids = await several(front, front.ada)

    done = await said(front.ada, "prioritise", {"ids": ids[:2], "priority": "critical"})
    rest = await said(front.ada, "prioritise", {"filter": {"flow": "film"}, "priority": 1, "limit": 1})

    assert (done["changed"], rest["changed"], rest["next"] is None) == (2, 1, False)
    assert [row["priority"] for row in await front.bed.sql("select priority from job order by id")] == [10, 10, 1]
    await front.bed.audited()


async def test_many_jobs_are_deleted_and_those_that_run_go_when_they_have_ended(front: Front) -> None:
    await front.bed.enact(a_flow())
    ids = await several(front, front.ada)
    lease = await front.bed.take()

    done = await said(front.ada, "delete", {"filter": {}})
    again = await said(front.ada, "delete", {"filter": {}})

    assert (done["matched"], done["changed"], done["refused"]) == (3, 3, [])
    assert [one["code"] for one in again["refused"]] == ["wrong_state"]
    assert (await front.ada.get(f"/api/v1/jobs/{lease.job_id}")).json()["cancel_asked"] is True
    assert [await front.bed.count("job", f"id = {job}") for job in ids].count(1) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"ids": []},
        {"ids": [0]},
        {"ids": ["7"]},
        {"ids": [True]},
        {"ids": list(range(1, 502))},
        {"filter": {"colour": "red"}},
        {"filter": {}, "ids": [1]},
        {"filter": {}, "limit": 0},
        {"filter": {}, "limit": 501},
        {"filter": {}, "cursor": "nonsense"},
        {"filter": {"status": "asleep"}},
    ],
)
@ANY_DATABASE
async def test_a_bulk_request_that_makes_no_sense_is_refused(front: Front, body: Json) -> None:
    answers = [await front.ada.post(f"{BULK}/{word}", json=body) for word in ("cancel", "retry", "delete")]

    assert [answer.status_code for answer in answers] == [422, 422, 422]
