"""Whoever errs is told so in one sentence, in our words, with what to do."""

from typing import Any

import pytest

from tests.api.in_process_server import ANY_DATABASE, Front

pytestmark = ANY_DATABASE

JSON = {"Content-Type": "application/json"}


async def told(front: Front, method: str, path: str, body: Any = None) -> str:
    answer = await front.ada.request(method, path, json=body)
    assert 400 <= answer.status_code < 500, answer.text
    return str(answer.json()["detail"])


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b'{"flow": }', "the body is not JSON: expecting value at character 9"),
        (b"", "a body is missing: send a JSON object, with Content-Type: application/json"),
        (b"[1]", "the body must be a JSON object"),
        (b'{"flow": "\xff"}', "the body cannot be read: send JSON in UTF-8"),
    ],
)
async def test_a_body_that_is_none_is_told_in_one_sentence(front: Front, body: bytes, sentence: str) -> None:
    answer = await front.ada.post("/api/v1/jobs", content=body, headers=JSON)

    assert answer.json()["detail"] == sentence


async def test_a_body_of_another_type_is_told_which_it_needs(front: Front) -> None:
    answer = await front.ada.post("/api/v1/jobs", content=b'{"flow": "echo"}', headers={"Content-Type": "text/plain"})

    assert answer.json()["detail"] == "the body is not read as JSON: send it with Content-Type: application/json"


@pytest.mark.parametrize(
    ("path", "body", "sentence"),
    [
        ("jobs", {"flow": "echo", "priority": 11}, "priority: at most 10 is taken"),
        ("jobs", {"flow": "echo", "priority": "urgent"}, "priority: use 0 to 10 or critical, high, normal, low, backg"),
        ("jobs", {"flow": "echo", "after": [1, "x"]}, "after.1: a whole number is wanted"),
        ("jobs", {}, "flow: it is missing"),
        ("jobs", {"flwo": "echo"}, "there is no `flwo`; did you mean `flow`?"),
        ("bulk/submit", {"jobs": [{"flow": "echo", "skp": []}]}, "jobs.0: there is no `skp`; did you mean `skip`?"),
        ("videos", {"source": "/film", "laddr": "web"}, "there is no `laddr`; did you mean `ladder`?"),
        ("videos", {"source": "/film", "preset": "x"}, "preset: there is no preset 'x'; use one of ultrafast"),
        ("webhooks", {"url": "ftp:x"}, "a webhook's address begins with https:// or http:// and a host"),
        ("bulk/cancel", {}, "give `ids` or a `filter`, one of them"),
        ("bulk/cancel", {"ids": [1], "filter": {}}, "give `ids` or a `filter`, one of them"),
        ("bulk/cancel", {"filter": {"statsu": 1}}, "filter: there is no `statsu`; did you mean `status`?"),
        ("bulk/prioritise", {"ids": [0], "priority": 1}, "ids.0: at least 1 is wanted"),
        ("bulk/prioritise", {"ids": [7], "prio": 1}, "there is no `prio`; did you mean `priority`?"),
    ],
)
async def test_a_wrong_field_is_named_as_its_sender_knows_it(front: Front, path: str, body: Any, sentence: str) -> None:
    detail = await told(front, "POST", f"/api/v1/{path}", body)

    assert detail.startswith(sentence)


async def test_an_id_that_is_no_number_is_told_so(front: Front) -> None:
    word = await told(front, "GET", "/api/v1/jobs/abc")
    nought = await told(front, "GET", "/api/v1/jobs/0")

    assert word == "a job's id is a number, not 'abc'"
    assert nought == "a job's id is a number from 1 on, not '0'"


async def test_unknown_routes_and_methods_are_told_which_there_are(front: Front) -> None:
    nowhere = await told(front, "GET", "/api/v1/jobz")
    method = await told(front, "PUT", "/api/v1/jobs")

    assert nowhere == "there is no route /api/v1/jobz; /openapi.json lists all of them"
    assert method == "/api/v1/jobs takes GET, HEAD, POST, not PUT"


async def test_a_problem_with_an_upload_names_its_request(front: Front) -> None:
    words = {"Tus-Resumable": "1.0.0", "X-Request-Id": "r7"}

    answer = await front.ada.post("/api/v1/uploads", headers=words)

    assert (answer.status_code, answer.json()["instance"]) == (400, "r7")


@pytest.mark.parametrize("version", ["1", True, 1.5])
async def test_a_version_to_roll_back_to_is_a_number(front: Front, version: object) -> None:
    answer = await front.ada.post("/api/v1/videos/film-1/rollback", json={"version": version})

    assert (answer.status_code, answer.json()["detail"]) == (422, "version: a whole number is wanted")
