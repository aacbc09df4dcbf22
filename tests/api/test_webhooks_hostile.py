"""Receivers that behave badly cost their own letters some tries, and nobody else anything."""

import asyncio
import json
import logging
import resource
import ssl
import time
from collections.abc import Sequence

import pytest

from telecine.addresses import Resolve, resolve
from telecine.observe.webhook_request import DeliveryNotSent, WebhookRequestSender
from tests.api.in_process_server import Front
from tests.api.webhook_server import a_job, at_work, brisk, deliveries, hook, is_genuine, settled, until
from tests.support import webhook_receiver as manners
from tests.support.webhook_receiver import CERTIFICATE, Manner, listen

HOSTILE = [
    manners.broken, manners.elsewhere, manners.silent, manners.hanging_up, manners.rambling, manners.endless,
    manners.trickling, manners.bomb, manners.noise,
]  # fmt: skip


def answers(*addresses: str) -> Resolve:
    """A name server that knows every name."""

    async def answer(host: str, port: int) -> Sequence[str]:
        return list(addresses) or await resolve(host, port)

    return answer


async def test_a_receiver_that_behaves_badly_in_turns_gets_the_same_letter_again_and_again(front: Front) -> None:
    """And jobs, and other receivers, notice nothing of it."""
    brisk(front)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with listen() as receiver:
        receiver.turns["/hook"] = list(HOSTILE)
        bad = await hook(front, receiver.url())
        await hook(front, receiver.url("/good"))
        async with at_work(front, webhook_attempts=50, webhook_backoff_seconds=0.001, webhook_timeout_seconds=1.0):
            await a_job(front)
            began = time.monotonic()
            for _ in range(3):
                await a_job(front)
            took = time.monotonic() - began
            found = await settled(front, 8)
        heard = receiver.at("/hook")
        good = receiver.at("/good")

    assert {one["state"] for one in found} == {"done"}
    assert took < 30
    assert len({one.id for one in good}) == 4
    assert receiver.at("/other") == [], "no redirect is followed"
    assert len({one.id for one in heard}) == 4
    assert len(heard) >= 4 + len(HOSTILE)
    assert all(is_genuine(one, bad["key"]) for one in heard)
    bodies = {one.id: one.body for one in heard}
    assert all(bodies[one.id] == one.body for one in heard), "each try says the same"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 300_000, f"{grown} KB: a bomb was unpacked, or an endless answer kept"


@pytest.mark.parametrize("manner", HOSTILE)
async def test_whatever_a_receiver_does_ends_in_time_and_is_told_in_words_of_ours(manner: Manner) -> None:
    sender = WebhookRequestSender(timeout=1.0, private=["127.0.0.1"])
    with listen() as receiver:
        receiver.manners["/hook/its-secret"] = manner
        began = time.monotonic()
        try:
            said = f"status {(await sender.send(receiver.url('/hook/its-secret'), b'{}', {})).status}"
        except DeliveryNotSent as error:
            said = str(error)
        took = time.monotonic() - began
        await sender.close()

    assert took < 20, "the time limit, on a busy machine"
    assert said in {
        "status 500", "status 302", "no answer within 1 seconds", "no answer came in time",
        "it hung up, or answered with something that is not HTTP", "the connection broke",
    }  # fmt: skip


async def test_a_letter_that_was_taken_is_taken_whatever_follows_the_status() -> None:
    def endless(request: manners.Request) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        manners.without_end(request, b"10000\r\n" + b"x" * 0x10000 + b"\r\n")

    def breaking_off(request: manners.Request) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
        request.close_connection = True

    sender = WebhookRequestSender(timeout=5.0, private=["127.0.0.1"])
    with listen() as receiver:
        receiver.turns["/hook"] = [endless, breaking_off]
        statuses = [(await sender.send(receiver.url(), b"{}", {})).status for _ in range(2)]
        await sender.close()

    assert statuses == [200, 200]


async def test_a_receiver_that_asks_for_a_pause_gets_it(front: Front) -> None:
    brisk(front)
    with listen() as receiver:
        receiver.manners["/hook"] = manners.busy
        await hook(front, receiver.url())
        async with at_work(front):
            await a_job(front)

            async def tried() -> bool:
                return any(one["last_status"] == 503 for one in await deliveries(front))

            await until(tried)
            [delivery] = await deliveries(front)

    assert delivery["next_at"] - delivery["created_at"] > 100_000


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]"]
)
async def test_an_address_inside_is_never_asked_however_it_is_written(host: str) -> None:
    sender = WebhookRequestSender(timeout=5.0)
    with listen() as receiver:
        with pytest.raises(DeliveryNotSent, match=r"not on the public internet|is not known"):
            await sender.send(receiver.url("/hook", host), b"{}", {})
        await sender.close()

        assert receiver.heard == []


@pytest.mark.parametrize(
    "addresses", [["127.0.0.1"], ["93.184.215.14", "127.0.0.1"], ["169.254.169.254"], ["::1"], ["64:ff9b::7f00:1"]]
)
async def test_one_address_inside_spoils_a_name(addresses: list[str]) -> None:
    sender = WebhookRequestSender(timeout=5.0, resolve=answers(*addresses))
    with listen() as receiver:
        with pytest.raises(DeliveryNotSent, match=r"hook\.example is at .* list it in allow_private_webhooks"):
            await sender.send(receiver.url("/hook", "hook.example"), b"{}", {})
        await sender.close()

        assert receiver.heard == []


async def test_a_name_is_asked_for_once_and_the_checked_address_is_the_one_that_is_told() -> None:
    asked = []

    async def lying(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.66.66.66"]

    sender = WebhookRequestSender(timeout=5.0, private=["127.0.0.1"], resolve=lying)
    with listen() as receiver:
        answer = await sender.send(receiver.url("/hook", "hook.example"), b"{}", {})
        await sender.close()
        [heard] = receiver.heard

    assert (answer.status, asked) == (204, ["hook.example"])
    assert heard.headers["host"] == f"hook.example:{receiver.port}"


async def test_a_certificate_must_be_the_names_although_the_address_is_what_is_asked() -> None:
    trust = ssl.create_default_context(cafile=CERTIFICATE)
    more = {"timeout": 10.0, "private": ["127.0.0.1"], "resolve": answers("127.0.0.1")}
    knowing, plain = WebhookRequestSender(**more, trust=trust), WebhookRequestSender(**more)
    with listen(secure=True) as receiver:
        good = await knowing.send(receiver.url("/hook", "hook.example"), b"{}", {})
        for sender, host in ((knowing, "other.example"), (plain, "hook.example")):
            with pytest.raises(DeliveryNotSent, match="its certificate is not valid"):
                await sender.send(receiver.url("/hook", host), b"{}", {})
        await knowing.close()
        await plain.close()

    assert (good.status, len(receiver.heard)) == (204, 1)


async def test_the_environments_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with listen() as proxy, listen() as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url(""))
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        sender = WebhookRequestSender(timeout=5.0, private=["127.0.0.1"])
        answer = await sender.send(receiver.url(), b"{}", {})
        await sender.close()

        assert (answer.status, len(receiver.heard), proxy.heard) == (204, 1, [])


async def test_a_dead_receiver_is_asked_by_few_at_once(front: Front) -> None:
    """Its letters wait; those of others do not wait for them."""
    more = {"allow_private_webhooks": ("localhost", "127.0.0.1"), "webhook_timeout_seconds": 50.0}
    brisk(front, **more)
    with listen() as receiver, listen() as dead:
        dead.manners["/hook"] = manners.silent
        for _ in range(6):
            await hook(front, dead.url("/hook", "localhost"))
        await hook(front, receiver.url())
        async with at_work(front, **more):
            await a_job(front)
            await asyncio.to_thread(dead.wait_for, 4)
            await a_job(front)
            await asyncio.to_thread(receiver.wait_for, 2)
            at_once = len(dead.heard)
            dead.ended.set()

    assert at_once == 4, "four at once go to one host"


async def test_alerts_reach_the_operator_in_their_shape_and_signed(front: Front) -> None:
    with listen() as receiver:
        more = {"alert_webhook_url": receiver.url("/ops"), "alert_format": "slack"}
        brisk(front, **more)
        await front.house.keys.list()
        async with at_work(front, **more):
            await front.admin.get("/api/v1/webhooks/alert-key")
            for _ in range(3):
                await a_job(front, fails=True)
            [heard] = await asyncio.to_thread(receiver.wait_for, 1, "/ops")
        key = (await front.admin.get("/api/v1/webhooks/alert-key")).json()["key"]

    assert is_genuine(heard, key)
    assert heard.json["text"].startswith("Failing again and again: film job ")
    assert "<https://films.example/api/v1/jobs/" in heard.json["text"]


async def test_no_address_no_key_and_nothing_that_a_receiver_said_gets_into_the_log(
    front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    brisk(front)
    with listen() as receiver:
        receiver.manners["/services/T0/B0/its-secret"] = manners.broken
        made = await hook(front, receiver.url("/services/T0/B0/its-secret?token=another-secret"))
        receiver.manners["/services/T0/B0/its-secret?token=another-secret"] = manners.broken
        async with at_work(front):
            await a_job(front)
            [delivery] = await settled(front)

    said = caplog.text + json.dumps(delivery)
    assert "given up after 3 attempts: it answered 500" in said
    for secret in ("its-secret", "another-secret", made["key"], made["key"].removeprefix("whsec_"), "stack trace"):
        assert secret not in said
