"""Limits before anything is parsed, and bounds of everything that is: no request makes the server work without end."""

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from telecine.api.http.rate_limits import RateLimits
from tests.api.in_process_server import ANY_DATABASE, Front
from tests.api.worker_client import FLOW, LANES, a_hand
from tests.support.builders import a_flow

JOBS = "/api/v1/jobs"
KIND = {"Content-Type": "application/json"}
PLAN = b'{"words":[{"task_id":1,"token":1,"done":{"plan":{"cut":[%s{}]}}}]}'


def refused(answer: httpx.Response) -> tuple[int, str]:
    found = answer.json()
    return found["status"], found["code"]


async def test_a_body_that_says_it_is_too_large_is_not_read(front: Front) -> None:
    answer = await front.ada.post(JOBS, content=b"x" * (front.settings.max_body_bytes + 1), headers=KIND)

    assert refused(answer) == (413, "too_large")


async def test_a_body_that_does_not_say_so_is_read_no_further(front: Front) -> None:
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(1_000):
            read += 1 << 16
            yield b" " * (1 << 16)

    answer = await front.ada.post(JOBS, content=endless(), headers=KIND)

    assert refused(answer) == (413, "too_large")
    assert read <= front.settings.max_body_bytes + (1 << 17)


async def test_an_address_that_is_too_long_is_not_read(front: Front) -> None:
    assert refused(await front.ada.get(JOBS, params={"cursor": "x" * 9_000})) == (414, "address_too_long")


async def test_headers_that_are_too_large_are_not_read(front: Front) -> None:
    assert refused(await front.ada.get(JOBS, headers={"X-Much": "x" * 40_000})) == (431, "headers_too_large")


async def test_whoever_asks_too_often_is_told_when_to_come_again(front: Front) -> None:
    front.house.rates = RateLimits(front.parts.world.mono, per_key=3, per_stranger=3)

    answers = [await front.ada.get("/api/v1/me") for _ in range(5)]
    other = await front.bob.get("/api/v1/me")

    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert refused(answers[-1]) == (429, "too_many_requests")
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
    assert other.status_code == 200


async def test_a_stranger_who_asks_too_often_is_told_so_too(front: Front) -> None:
    front.house.rates = RateLimits(front.parts.world.mono, per_key=100, per_stranger=2)

    answers = [await front.nobody.get(JOBS) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [401, 401, 429]
    assert answers[0].headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(("depth", "status"), [(60, 201), (65, 422), (400, 422), (5_000, 422), (200_000, 422)])
async def test_json_is_nested_only_so_deep(front: Front, depth: int, status: int) -> None:
    """And what is taken can be shown again."""
    await front.flow()
    body = f'{{"flow": "film", "spec": {"[" * depth}{"]" * depth}}}'

    answer = await front.ada.post(JOBS, content=body.encode(), headers=KIND)

    assert answer.status_code == status, answer.text
    if status == 201:
        assert (await front.ada.get(answer.headers["location"])).status_code == 200


async def test_what_a_handler_nested_too_deep_is_cut_and_the_job_can_be_read(front: Front) -> None:
    await front.bed.enact(a_flow())
    job = (await front.ada.post(JOBS, json={"flow": "film"})).json()["id"]
    deep: list[object] = []
    for _ in range(400):
        deep = [deep]
    await front.bed.done(await front.bed.take(), result=deep)

    answers = [await front.ada.get(f"{JOBS}/{job}{part}") for part in ("", "/tasks", "/attempts")]

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert "nested too deeply" in answers[0].text
    assert answers[0].json()["status"] == "completed"


async def test_brackets_in_words_are_no_depth(front: Front) -> None:
    await front.flow()

    answer = await front.ada.post(JOBS, json={"flow": "film", "spec": ["[{" * 500 + '"\\'] * 100})

    assert answer.status_code == 201


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b'"film"', b"\xff\xfe", b'{"flow": "film", "spec": ' + b"9" * 5_000 + b"}"],
)
@ANY_DATABASE
async def test_what_is_not_the_json_that_is_wanted_is_refused(front: Front, text: bytes) -> None:
    await front.flow()

    answer = await front.ada.post(JOBS, content=text, headers=KIND)

    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
@ANY_DATABASE
async def test_a_number_that_json_does_not_have_is_refused(front: Front, number: str) -> None:
    await front.flow()

    answer = await front.ada.post(JOBS, content=f'{{"flow": "film", "spec": {number}}}', headers=KIND)

    assert answer.status_code == 422
    assert answer.json()["code"] == "bad_spec"


async def test_a_body_of_another_kind_is_refused(front: Front) -> None:
    answer = await front.ada.post(JOBS, content=b'{"flow": "film"}', headers={"Content-Type": "text/plain"})

    assert answer.status_code == 422


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/failed-tasks", "/api/v1/stale-tasks"])
@pytest.mark.parametrize("limit", ["0", "501", "-1", "x", "9" * 40])
@ANY_DATABASE
async def test_a_page_has_a_bounded_size(front: Front, path: str, limit: str) -> None:
    assert (await front.ada.get(path, params={"limit": limit})).status_code == 422


@pytest.mark.parametrize("job", ["0", "-1", "x", "1.5", str(2**63), "9" * 400])
@ANY_DATABASE
async def test_a_number_that_no_job_can_have_is_refused(front: Front, job: str) -> None:
    answer = await front.ada.get(f"{JOBS}/{job}")

    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")


async def test_a_submit_takes_so_many_jobs_and_no_more(front: Front) -> None:
    await front.flow()
    most = await front.ada.post("/api/v1/bulk/submit", json={"jobs": [{"flow": "film"}] * 1_000})
    more = await front.ada.post("/api/v1/bulk/submit", json={"jobs": [{"flow": "film"}] * 1_001})

    assert (most.status_code, more.status_code) == (201, 422)
    assert len(json.loads(most.text)["jobs"]) == 1_000


async def test_a_wrong_method_is_told_which_ones_there_are(front: Front) -> None:
    answer = await front.ada.put(f"{JOBS}/7")

    assert refused(answer) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PATCH"


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (PLAN % (b"{}," * 400_000), "at most 50000 are"),
        (b'{"words":[' + b"[]," * 1_100_001 + b"[]]}", "holds too many values: at most 1,100,000 are taken"),
        (b'{"words":' + b"[" * 2_000_000 + b"}", "nested too deeply: at most 72 levels are taken"),
        (b'{"words":' + b"[" * 500 + b" " * 2_000_000 + b"}", "nested too deeply: at most 72 levels are taken"),
    ],
    ids=["pieces", "values", "brackets", "depth"],
)
@ANY_DATABASE
async def test_what_a_worker_says_has_bounds_too(front: Front, body: bytes, sentence: str) -> None:
    answer = await front.worker.post("/api/worker/settle", content=body, headers=KIND)

    assert answer.status_code == 422
    assert sentence in answer.json()["detail"]


async def test_a_small_body_of_a_worker_may_hold_as_many_values_as_a_large_one(front: Front) -> None:
    """A result that the worker itself takes must not be refused because it is short."""
    words = {"task": 1, "token": 1, "done": {"result": [7] * 150_000}}

    answer = await front.worker.post("/api/worker/settle", content=json.dumps({"words": [words]}), headers=KIND)

    assert "too many values" not in answer.text


async def test_a_claim_names_the_flow_that_each_lane_is_of(front: Front) -> None:
    """Else a paused flow would be handed out under the name of another one."""
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film")
    await front.parts.engine.jobs.pause("film")
    ann = await a_hand(front)
    asked = {"worker": ann.worker, "request": "request-1"}

    proper = await ann.client.post("/api/worker/claim", json={**asked, "lanes": LANES})
    sly = await ann.client.post("/api/worker/claim", json={**asked, "lanes": dict.fromkeys(LANES, "opera")})

    assert (proper.status_code, proper.json()) == (200, {"leases": []})
    assert refused(sly) == (422, "bad_spec")
    assert "is not of flow 'opera': name the flow that the lane begins with" in sly.json()["detail"]
