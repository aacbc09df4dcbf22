"""Every request has an id and a line; lines say enough and never too much."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
from starlette.requests import Request
from starlette.responses import Response

from telecine.api.http.request_id import HEADER
from telecine.observe.logs import LogFormatter
from tests.api.in_process_server import ANY_DATABASE, Front

pytestmark = ANY_DATABASE


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the server logs, as JSON."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(LogFormatter("json"))
    ours = logging.getLogger("telecine")
    ours.addHandler(handler)
    level = ours.level
    ours.setLevel(logging.INFO)
    yield stream
    ours.removeHandler(handler)
    ours.setLevel(level)


def read(lines: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in lines.getvalue().splitlines()]


async def test_a_sane_id_is_taken_over_and_another_is_replaced(front: Front) -> None:
    given = await front.nobody.get("/health", headers={HEADER: "proxy-7:a.b"})
    odd = await front.nobody.get("/health", headers={HEADER: "a b\x01"})
    none = await front.nobody.get("/health")

    assert given.headers[HEADER] == "proxy-7:a.b"
    assert odd.headers[HEADER] != "a b\x01"
    assert len({odd.headers[HEADER], none.headers[HEADER]}) == 2


async def test_a_problem_names_its_request(front: Front) -> None:
    answer = await front.nobody.get("/api/v1/me", headers={HEADER: "r7"})
    nowhere = await front.nobody.get("/api/nowhere", headers={HEADER: "r8"})
    walled = await front.nobody.get("/api/v1/me?" + "x" * 9_000, headers={HEADER: "r9"})

    assert [one.json()["instance"] for one in (answer, nowhere, walled)] == ["r7", "r8", "r9"]
    assert [one.headers[HEADER] for one in (answer, nowhere, walled)] == ["r7", "r8", "r9"]


async def test_a_line_has_the_template_the_status_and_the_key(front: Front, lines: io.StringIO) -> None:
    [key] = await front.house.keys.list(owner="ada")

    await front.ada.get("/api/v1/me?token=very-secret", headers={HEADER: "r1"})

    [line] = [line for line in read(lines) if line["logger"] == "telecine.access"]
    told = {name: line[name] for name in ("method", "route", "status", "key", "request")}
    assert told == {"method": "GET", "route": "/api/v1/me", "status": 200, "key": key.id, "request": "r1"}
    assert line["message"] == f"GET /api/v1/me 200 {line['ms']} ms"
    assert "very-secret" not in lines.getvalue()


@pytest.mark.parametrize(("number", "status"), [("7", 404), ("0", 422), ("seven", 422)])
async def test_a_line_has_the_key_whatever_was_asked_for_by_it(
    front: Front, lines: io.StringIO, number: str, status: int
) -> None:
    [key] = await front.house.keys.list(owner="ada")

    await front.ada.get(f"/api/v1/jobs/{number}")

    [line] = [line for line in read(lines) if line["logger"] == "telecine.access"]
    assert (line["route"], line["status"], line["key"]) == ("/api/v1/jobs/{job_id}", status, key.id)


async def test_a_login_link_is_in_no_line(front: Front, lines: io.StringIO) -> None:
    link = await front.house.keys.link()

    await front.nobody.post(f"/login/{link}")
    front.nobody.cookies.clear()

    assert link not in lines.getvalue()
    assert '"route": "/login/{link}"' in lines.getvalue()


async def test_no_line_has_an_address_a_name_or_a_query(front: Front, lines: io.StringIO) -> None:
    names = ["Secret%20Film", "secret-film.mp4", "Secret Film", "secret"]
    await front.ada.get("/api/v1/jobs/4711?token=very-secret")
    await front.ada.get("/media/v/secret-film/master.m3u8")
    await front.ada.get("/api/v1/videos/Secret%20Film")
    await front.ada.put("/api/v1/uploads/secret-film.mp4?title=Secret+Film", content=b"x")
    await front.ada.get("/nowhere/Secret%20Film?secret=1")
    await front.ada.get("/api/v1/nowhere/secret-film")
    await front.ada.delete("/api/v1/videos/secret-film?keep=secret")

    told = [line for line in read(lines) if line["logger"] == "telecine.access"]
    assert [line["message"].split()[1] for line in told] == [line["route"] for line in told]
    assert len(told) == 7
    assert [name for name in names if name in lines.getvalue().lower() or name in lines.getvalue()] == []


async def test_a_signed_link_is_in_no_line(front: Front, lines: io.StringIO) -> None:
    await front.nobody.get("/media/t/signed-and-secret/film/master.m3u8")
    await front.nobody.get("/odd/media/t/signed-and-secret/film/master.m3u8")

    assert len(read(lines)) == 2
    assert "signed-and-secret" not in lines.getvalue()


async def test_probes_are_not_worth_a_line(front: Front, lines: io.StringIO) -> None:
    await front.nobody.get("/health")
    await front.nobody.get("/health/live")

    assert [line for line in read(lines) if line["logger"] == "telecine.access"] == []


async def test_our_own_bug_is_answered_logged_and_named_by_the_request(front: Front, lines: io.StringIO) -> None:
    async def broken(request: Request) -> Response:
        raise ZeroDivisionError("a bug")

    front.app.add_route("/api/broken", broken)

    answer = await front.nobody.get("/api/broken", headers={HEADER: "r5"})

    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert answer.headers[HEADER] == answer.json()["instance"] == "r5"
    [bug] = [line for line in read(lines) if line["level"] == "error"]
    assert bug["request"] == "r5"
    assert "ZeroDivisionError" in str(bug["error"])
