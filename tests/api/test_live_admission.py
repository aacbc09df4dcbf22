"""Who gets into a stream: from which pages, with which ticket, and that no secret is left behind."""

import logging

import pytest
from websockets.exceptions import InvalidStatus

from telecine.api.live.admission import may_listen
from telecine.engine.accounts.keys import Scope
from telecine.settings import Settings
from tests.api.in_process_server import Front
from tests.api.sse_client import Ear, listening
from tests.api.test_live_socket import hear, talking

ORIGINS = [
    # origin, host, allowed
    (None, "telecine.test", True),
    ("http://telecine.test", "telecine.test", True),
    ("https://telecine.test", "telecine.test", True),
    ("HTTP://Telecine.Test", "telecine.test", True),
    ("http://127.0.0.1:8484", "127.0.0.1:8484", True),
    ("https://films.example.org", "127.0.0.1:8484", True),
    ("https://other.example.org", "127.0.0.1:8484", True),
    ("https://other.example.org/", "127.0.0.1:8484", True),
    ("http://other.example.org", "127.0.0.1:8484", False),
    ("http://127.0.0.1:8485", "127.0.0.1:8484", False),
    ("http://telecine.test.evil.example", "telecine.test", False),
    ("http://evil.example", "telecine.test", False),
    ("null", "telecine.test", False),
    ("", "telecine.test", False),
    ("file://", "telecine.test", False),
    ("javascript:telecine.test", "telecine.test", False),
    ("http://telecine.test@evil.example", "telecine.test", False),
]


@pytest.mark.parametrize(("origin", "host", "allowed"), ORIGINS)
def test_only_our_own_pages_and_those_that_are_named_may_listen(origin: str | None, host: str, allowed: bool) -> None:
    settings = Settings(public_url="https://films.example.org", allowed_origins=("https://other.example.org",))

    assert may_listen(origin, host, settings) is allowed


async def test_a_handshake_from_another_page_is_refused_whatever_cookie_comes_along(front: Front) -> None:
    session = await front.house.keys.log_in(await front.house.keys.link())
    cookie = {"Cookie": f"telecine_session={session.text}"}
    async with listening(front.app) as port:
        async with talking(port, additional_headers=cookie, origin=f"http://127.0.0.1:{port}") as socket:
            await hear(socket, "snapshot")
        with pytest.raises(InvalidStatus) as refused:
            await talking(port, additional_headers=cookie, origin="http://evil.example").__aenter__()
        stream = await Ear.open(port, Cookie=cookie["Cookie"], Origin="http://evil.example")

    assert refused.value.response.status_code == 403
    assert stream.status == 403


async def test_a_ticket_opens_one_stream_and_nothing_else(front: Front) -> None:
    made = await front.ada.post("/api/v1/events/ticket")
    ticket = made.json()["ticket"]

    first = await front.nobody.get(f"/api/v1/events?follow=false&ticket={ticket}")
    again = await front.nobody.get(f"/api/v1/events?follow=false&ticket={ticket}")

    assert (made.status_code, made.json()["expires_in"]) == (201, 30)
    assert (first.status_code, again.status_code) == (200, 401)
    assert "another one" in again.json()["detail"]


async def test_a_ticket_is_neither_a_key_nor_a_login(front: Front) -> None:
    ticket = (await front.admin.post("/api/v1/events/ticket")).json()["ticket"]

    as_key = await front.nobody.get("/api/v1/me", headers={"Authorization": f"Bearer {ticket}"})
    as_login = await front.nobody.post(f"/login/{ticket}")
    as_itself = await front.nobody.get(f"/api/v1/events?follow=false&ticket={ticket}")

    assert (as_key.status_code, as_login.status_code, as_itself.status_code) == (401, 401, 200)


async def test_neither_a_key_nor_a_login_link_is_a_ticket(front: Front) -> None:
    key, link = await front.key(Scope.OWNER, owner="ada"), await front.house.keys.link()

    codes = [
        (await front.nobody.get(f"/api/v1/events?follow=false&ticket={text}")).status_code for text in (key, link, "x")
    ]

    assert codes == [401, 401, 401]


async def test_a_ticket_ends_with_its_time_and_with_its_key(front: Front) -> None:
    late = (await front.ada.post("/api/v1/events/ticket")).json()["ticket"]
    await front.bed.sql("update api_key set expires_at = 1 where kind = 'link'")
    eve = await front.client(Scope.OWNER, owner="eve")
    orphan = (await eve.post("/api/v1/events/ticket")).json()["ticket"]
    [key] = await front.house.keys.list(owner="eve")
    await front.house.keys.revoke(key.id)

    codes = [
        (await front.nobody.get(f"/api/v1/events?follow=false&ticket={text}")).status_code for text in (late, orphan)
    ]

    assert codes == [401, 401]


async def test_tickets_show_what_their_key_shows(front: Front) -> None:
    await front.flow()
    for owner in ("ada", "bob"):
        await front.parts.engine.jobs.submit("film", owner=owner)
    ticket = (await front.bob.post("/api/v1/events/ticket")).json()["ticket"]

    heard = (await front.nobody.get(f"/api/v1/events?follow=false&ticket={ticket}")).text

    assert '"owner":"bob"' in heard
    assert "ada" not in heard


async def test_a_worker_gets_no_ticket(front: Front) -> None:
    assert (await front.worker.post("/api/v1/events/ticket")).status_code == 403
    assert (await front.nobody.post("/api/v1/events/ticket")).status_code == 401


async def test_no_ticket_is_in_the_log(front: Front, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="uvicorn.error")
    async with listening(front.app) as port:
        ticket = (await front.ada.post("/api/v1/events/ticket")).json()["ticket"]
        async with talking(port, f"ticket={ticket}") as socket:
            await hear(socket, "snapshot")
        with pytest.raises(InvalidStatus):
            await talking(port, f"ticket={ticket}").__aenter__()

    assert "WebSocket" in caplog.text
    assert ticket not in "\n".join(record.getMessage() for record in caplog.records if "WebSocket" in record.msg)
