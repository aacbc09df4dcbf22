"""One job over HTTP: key and job come in one round trip, and nobody can tell that from what he is told."""

from typing import Any

import pytest
from pydantic import TypeAdapter

from telecine.api.http.rate_limits import RateLimits
from telecine.engine.accounts.keys import Scope, written
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.queries.query_operations import Queries
from telecine.engine.queries.view_models import JobView
from tests.api.call_counter import counted_reads
from tests.api.in_process_server import ANY_DATABASE, Front
from tests.api.test_jobs import JOBS, submitted, work


async def as_the_engine_tells(front: Front, job_id: int) -> Any:
    """The job as the statement tells it that knows no keys."""
    return TypeAdapter(JobView).dump_python(await front.parts.engine.queries.job(job_id), mode="json")


async def test_a_job_that_waits_is_told_in_full(front: Front) -> None:
    await front.flow()
    first = await submitted(front)
    wanted = {"spec": {"x": [1, None]}, "subject": ["video", "v"], "dedupe_key": "d", "run_at": 4_000_000_000_000}

    job = await submitted(front, after=[first], priority=3, **wanted)

    told = (await front.ada.get(f"{JOBS}/{job}")).json()
    assert told == await as_the_engine_tells(front, job)
    assert (told["waits_for"], told["priority"], told["output_count"]) == ([first], 3, 0)
    assert told["stages"]


async def test_a_job_that_waits_comes_in_one_round_trip(front: Front) -> None:
    await front.flow()
    job = await submitted(front)

    with counted_reads(front.parts.store) as reads:
        answer = await front.ada.get(f"{JOBS}/{job}")

    assert (answer.status_code, len(reads)) == (200, 1)


async def test_a_job_that_has_begun_ended_or_was_opened_again_is_told_in_full(front: Front) -> None:
    await front.flow()
    cancelled, done = await submitted(front), await submitted(front)
    await front.ada.post(f"{JOBS}/{cancelled}/cancel")
    await work(front)

    told = [(await front.ada.get(f"{JOBS}/{job}")).json() for job in (cancelled, done)]
    await front.ada.post(f"{JOBS}/{cancelled}/retry")
    again = (await front.ada.get(f"{JOBS}/{cancelled}")).json()

    assert [job["status"] for job in (*told, again)] == ["cancelled", "completed", "pending"]
    assert told[1]["results"] or told[1]["workers"]
    assert told[1] == await as_the_engine_tells(front, done)
    assert again == await as_the_engine_tells(front, cancelled)


async def test_a_job_of_somebody_else_is_as_absent_as_one_that_never_was(front: Front) -> None:
    await front.flow()
    hers = await submitted(front)

    foreign, none = await front.bob.get(f"{JOBS}/{hers}"), await front.bob.get(f"{JOBS}/{hers + 999}")

    assert (foreign.status_code, none.status_code) == (404, 404)
    assert foreign.json()["detail"] == f"there is no job {hers}"
    assert none.json()["detail"] == f"there is no job {hers + 999}"
    assert (await front.admin.get(f"{JOBS}/{hers}")).status_code == 200


@pytest.mark.parametrize("there", [True, False])
async def test_a_key_that_is_not_valid_is_refused_whether_there_is_a_job_or_not(front: Front, there: bool) -> None:
    await front.flow()
    job = await submitted(front) + (0 if there else 999)
    client = await front.client(Scope.OWNER, owner="eve")
    [key] = await front.house.keys.list(owner="eve")
    forged = {"Authorization": f"Bearer {written('owner', key.id, '0' * 64)}"}

    guessed = await front.nobody.get(f"{JOBS}/{job}", headers=forged)
    valid = await client.get(f"{JOBS}/{job}")
    await front.house.keys.revoke(key.id)
    revoked = await client.get(f"{JOBS}/{job}")

    assert [answer.status_code for answer in (guessed, valid, revoked)] == [401, 404, 401]
    assert (guessed.json()["code"], revoked.json()["detail"]) == ("key_invalid", "this key was revoked")
    assert (await front.nobody.get(f"{JOBS}/{job}")).status_code == 401
    assert (await front.worker.get(f"{JOBS}/{job}")).status_code == 403


async def test_what_is_wrong_with_a_job_is_told_only_to_whoever_may_see_it(front: Front) -> None:
    await front.flow()
    job = await submitted(front)
    [key] = await front.house.keys.list(owner="ada")
    forged = {"Authorization": f"Bearer {written('owner', key.id, '0' * 64)}"}
    front.house.rates = RateLimits(front.parts.world.mono, per_key=2, per_stranger=1)
    await front.bed.sql("delete from flow")
    front.parts.engine.queries = Queries(front.parts.store, GraphCache())  # as in a server that starts now

    guessed = [await front.nobody.get(f"{JOBS}/{job}", headers=forged) for _ in range(2)]
    told = [await client.get(f"{JOBS}/{job}") for client in (front.worker, front.bob, front.ada)]

    assert [answer.status_code for answer in guessed] == [401, 429]
    assert [answer.status_code for answer in told] == [403, 404, 404]
    assert told[1].json()["detail"] == f"there is no job {job}"
    assert "flow row" in told[2].json()["detail"]


async def test_whoever_asks_too_often_is_told_so_before_he_is_told_anything_else(front: Front) -> None:
    front.house.rates = RateLimits(front.parts.world.mono, per_key=1, per_stranger=100)

    first, second = await front.ada.get(f"{JOBS}/9"), await front.ada.get(f"{JOBS}/9")

    assert (first.status_code, second.status_code) == (404, 429)


@pytest.mark.parametrize("form", ["{}", "00{}", "+{}", "{}.0"])
async def test_a_number_is_a_number_however_it_is_written(front: Front, form: str) -> None:
    await front.flow()
    job = await submitted(front)

    answer = await front.ada.get(f"{JOBS}/{form.format(job)}")

    assert (answer.status_code, answer.json().get("id")) == (200, job)


@pytest.mark.parametrize("odd", ["0", "-7", "seven", "٧", "9007199254740993", "9" * 400, "7%00"])
async def test_what_is_no_number_of_a_job_is_refused_with_a_sentence(front: Front, odd: str) -> None:
    answer = await front.ada.get(f"{JOBS}/{odd}")

    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert "a job's id is a number" in answer.json()["detail"]


@ANY_DATABASE
@pytest.mark.parametrize("odd", ["0", "seven", "9007199254740993", "7"])
async def test_who_asks_is_asked_before_what_he_asks_for(front: Front, odd: str) -> None:
    answers = [await client.get(f"{JOBS}/{odd}") for client in (front.nobody, front.worker, front.ada)]

    assert [answer.status_code for answer in answers] == [401, 403, 404 if odd == "7" else 422]


@ANY_DATABASE
@pytest.mark.parametrize("odd", ["0", "seven", "7"])
async def test_what_is_no_number_of_a_job_is_asked_no_more_often_than_what_is_one(front: Front, odd: str) -> None:
    front.house.rates = RateLimits(front.parts.world.mono, per_key=1, per_stranger=1, per_worker=1)
    clients = (front.nobody, front.worker, front.ada)

    for client in clients:
        await client.get(f"{JOBS}/{odd}")
    again = [await client.get(f"{JOBS}/{odd}") for client in clients]

    assert [answer.status_code for answer in again] == [429, 429, 429]


async def test_only_what_a_job_can_do_is_asked_of_it(front: Front) -> None:
    answer = await front.ada.put(f"{JOBS}/7")

    assert (answer.status_code, answer.headers["allow"]) == (405, "DELETE, GET, HEAD, PATCH")
