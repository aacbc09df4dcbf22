"""Tasks over HTTP: one in full, the dead letters, what nobody takes."""

from telecine.engine import Submission
from telecine.facts import Failed
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

FAILED, STALE = "/api/v1/failed-tasks", "/api/v1/stale-tasks"
HOUR = 3_600_000


async def failed(front: Front, *owners: str) -> list[int]:
    """One failed job for each of these owners; the ids of the tasks."""
    await front.bed.enact(a_flow())
    for owner in owners:
        await front.bed.submit(owner=owner)
    await front.bed.run_all(Failed("no disk", code="disk", permanent=True))
    return [row["id"] for row in await front.bed.sql("select id from task order by id")]


async def test_a_task_says_why_it_waits_and_in_which_of_six_states_its_claim_is(front: Front) -> None:
    await front.flow()
    job = (await front.ada.post("/api/v1/jobs", json={"flow": "film"})).json()["id"]
    [task] = (await front.ada.get(f"/api/v1/jobs/{job}/tasks")).json()["items"]

    shown = (await front.ada.get(f"/api/v1/tasks/{task['id']}")).json()

    assert (shown["claim_state"], shown["waiting"]["reason"], shown["attempts"]) == ("unclaimed", "no_worker", [])
    assert (await front.bob.get(f"/api/v1/tasks/{task['id']}")).status_code == 404


async def test_dead_letters_are_listed_for_their_owner(front: Front) -> None:
    hers, his, hers_too = await failed(front, "ada", "bob", "ada")

    mine = (await front.ada.get(FAILED)).json()["items"]
    everything = (await front.admin.get(FAILED)).json()["items"]
    of_bob = (await front.admin.get(FAILED, params={"owner": "bob"})).json()["items"]

    assert [(task["id"], task["error"]["code"]) for task in mine] == [(hers_too, "disk"), (hers, "disk")]
    assert {task["id"] for task in everything} == {hers, his, hers_too}
    assert [task["id"] for task in of_bob] == [his]
    assert (await front.ada.get(FAILED, params={"owner": "bob"})).json()["items"] == []
    assert (await front.ada.get(FAILED, params={"flow": "other"})).json()["items"] == []


async def test_dead_letters_come_page_by_page(front: Front) -> None:
    await failed(front, "ada", "ada", "ada")

    for client in (front.ada, front.admin):
        seen, cursor = [], None
        for _ in range(4):
            page = (await client.get(FAILED, params={"limit": 1} | ({"cursor": cursor} if cursor else {}))).json()
            seen += [task["id"] for task in page["items"]]
            cursor = page["next"]
        assert (len(seen), len(set(seen)), cursor) == (3, 3, None)


async def test_a_dead_letter_is_retried_or_discarded(front: Front) -> None:
    first, second = await failed(front, "ada", "ada")

    retried = await front.ada.post(f"{FAILED}/{first}/retry")
    again = await front.ada.post(f"{FAILED}/{first}/retry")
    discarded = await front.ada.delete(f"{FAILED}/{second}")

    assert (retried.status_code, retried.json()["status"]) == (200, "pending")
    assert (again.status_code, again.json()["code"]) == (409, "wrong_state")
    assert discarded.status_code == 204
    assert (await front.ada.get(FAILED)).json()["items"] == []
    assert (await front.ada.get(f"/api/v1/tasks/{second}")).status_code == 404
    assert await front.bed.status((await front.bed.task(first))["job_id"]) == "pending"


async def test_a_dead_letter_of_somebody_else_is_none(front: Front) -> None:
    [hers] = await failed(front, "ada")

    answers = [await front.bob.post(f"{FAILED}/{hers}/retry"), await front.bob.delete(f"{FAILED}/{hers}")]

    assert [answer.status_code for answer in answers] == [404, 404]
    assert len((await front.ada.get(FAILED)).json()["items"]) == 1


async def test_what_nobody_takes_for_an_hour_is_stale(front: Front) -> None:
    await front.flow()
    for client in (front.ada, front.ada, front.bob):
        await client.post("/api/v1/jobs", json={"flow": "film"})
    fresh = (await front.ada.get(STALE)).json()["items"]
    await front.bed.sql(f"update task set ready_at = ready_at - {HOUR + 1000}, rank = rank - {HOUR + 1000}")
    await front.ada.post("/api/v1/jobs", json={"flow": "film"})

    mine = (await front.ada.get(STALE)).json()
    page = (await front.ada.get(STALE, params={"limit": 1})).json()
    rest = (await front.ada.get(STALE, params={"limit": 1, "cursor": page["next"]})).json()

    assert fresh == []
    assert (len(mine["items"]), mine["next"]) == (2, None)
    assert [task["id"] for task in page["items"] + rest["items"]] == [task["id"] for task in mine["items"]]
    assert rest["next"] is None
    assert len((await front.admin.get(STALE)).json()["items"]) == 3
    assert len((await front.admin.get(STALE, params={"owner": "bob"})).json()["items"]) == 1
    assert (await front.ada.get(STALE, params={"cursor": "zz.1.1"})).status_code == 422


async def test_a_long_queue_is_looked_through_page_by_page(front: Front) -> None:
    """Thousands of fresh tasks stand before the stale one: a page may be empty and go on."""
    await front.flow()
    await front.parts.engine.jobs.submit_many([Submission(flow="film", owner="ada")] * 6_000)
    await front.bed.sql(f"update task set ready_at = ready_at - {HOUR + 1000} where id = (select max(id) from task)")

    first = (await front.admin.get(STALE)).json()
    second = (await front.admin.get(STALE, params={"cursor": first["next"]})).json()

    assert (first["items"], first["next"] is None) == ([], False)
    assert (len(second["items"]), second["next"]) == (1, None)
