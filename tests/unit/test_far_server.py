"""What a remote worker makes of errors of its HTTP client: no database has spoken, so nothing is called refused."""

import asyncio

import httpx
import pytest

from telecine.errors import StoreBroken, TelecineError, Unreachable
from telecine.triage import Verdict, triage
from telecine.worker.http.connection import KINDS, Server, ShutOutSignal

CLIENT_ERRORS = [
    httpx.LocalProtocolError,
    httpx.TooManyRedirects,
    httpx.RemoteProtocolError,
    httpx.ReadError,
    RuntimeError,
]


@pytest.mark.parametrize("kind", CLIENT_ERRORS)
def test_an_error_of_the_client_is_an_outage(kind: type[Exception]) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise kind("can't handle event type Request")

    async def ask() -> None:
        async with Server(
            "http://telecine.test", "key", ShutOutSignal(), transport=httpx.MockTransport(fail)
        ) as server:
            await server.ask("POST", "settle", content="{}")

    with pytest.raises(Unreachable):
        asyncio.run(ask())


@pytest.mark.parametrize("status", [400, 405, 411, 414, 431])
def test_a_refusal_of_the_request_is_not_about_the_value(status: int) -> None:
    kind: type[TelecineError] = KINDS[status]

    assert kind is StoreBroken
    assert triage(kind("it is refused")) is Verdict.BUG
