"""Bounds on connections from one address, over real sockets. Slow clients: tests/fault/test_slow_clients.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest
import uvicorn

from telecine.wiring.connections import ConnectionBounds, ConnectionLimits, bounds_for, counted_as, protocols

HELLO = b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Hall:
    """An application whose answer to /wait comes when the test says so."""

    def __init__(self, bounds: ConnectionBounds) -> None:
        self.limits = ConnectionLimits(bounds)
        self.go = asyncio.Event()
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/wait":
            await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async def connect(self, sent: bytes) -> Streams:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        writer.write(sent)
        return reader, writer


@asynccontextmanager
async def opened(**bounds: Any) -> AsyncIterator[Hall]:
    hall = Hall(ConnectionBounds(**bounds))
    config = uvicorn.Config(hall, port=0, log_config=None, lifespan="off", **protocols(hall.limits))
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    hall.port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield hall
    finally:
        hall.go.set()
        for writer in hall.writers:
            writer.close()
        server.should_exit = server.force_exit = True
        await task


async def test_an_address_with_too_many_connections_loses_those_that_wait() -> None:
    async with opened(total=100, per_address=3, exempt=()) as hall:
        idle = [await hall.connect(b"") for _ in range(10)]
        reader, _ = await hall.connect(HELLO)

        answer = await reader.read(4_096)
        lost = [one for one in idle if await _is_closed(one)]

    assert answer.startswith(b"HTTP/1.1 200")
    assert len(lost) == 8


async def test_an_address_whose_connections_all_work_hears_why_it_gets_no_more() -> None:
    async with opened(total=100, per_address=3, exempt=()) as hall:
        busy = [await hall.connect(b"GET /wait HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(3)]
        while len(hall.limits) < 3 or hall.limits.waiting:
            await asyncio.sleep(0.01)
        reader, _ = await hall.connect(HELLO)

        refused = await reader.read(4_096)
        hall.go.set()
        served = [await one.readuntil(b"ok") for one, _ in busy]

    assert refused.startswith(b"HTTP/1.1 503")
    assert b"this address has 3 connections open already" in refused
    assert all(one.startswith(b"HTTP/1.1 200") for one in served)


async def test_a_proxy_may_have_as_many_as_there_are() -> None:
    async with opened(total=100, per_address=3) as hall:
        idle = [await hall.connect(HELLO) for _ in range(20)]

        answers = [await reader.readuntil(b"ok") for reader, _ in idle]

    assert len(answers) == 20


@pytest.mark.parametrize(
    ("host", "counted"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8:1:2:3::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::/64"),
        ("127.0.0.1", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("10.1.2.3", ""),
        ("fe80::1%eth0", "fe80::/64"),
        (None, ""),
    ],
)
def test_clients_are_counted_by_address_but_for_proxies(host: str | None, counted: str) -> None:
    exempt = bounds_for(10, 10, 1_000, ("10.0.0.0/8", "proxy.internal")).exempt

    assert ip_network("10.0.0.0/8") in exempt
    assert counted_as(host, exempt) == counted


def test_there_are_never_more_connections_than_descriptors() -> None:
    few, many = bounds_for(4_096, 1_024, 1_024), bounds_for(4_096, 1_024, 65_536)

    assert (few.total, few.per_address) == (384, 384)
    assert (many.total, many.per_address) == (4_096, 1_024)


async def _is_closed(streams: Streams) -> bool:
    try:
        return await asyncio.wait_for(streams[0].read(1), 0.05) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
