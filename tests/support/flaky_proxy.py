"""A proxy before an HTTP server: slow if told so, and answers get lost at moments that are chosen exactly.

The request is passed on; as soon as its answer begins to come, the client's connection is cut. So the server has done
what it was asked for, and nobody has heard of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

BLOCK = 16_384


class CuttingProxy:
    """`lose(b"POST /api/worker/claim")` loses the answer to the next such request; `every` = 7 each seventh."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.port = 0
        self.lost = 0
        self.every = 0  # 0: none
        self.pause = 0.0  # seconds for each block, in either direction
        self._wanted: bytes | None = None
        self._answers = 0
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lose(self, text: bytes) -> None:
        self._wanted = text

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._serving.add(me)
        me.add_done_callback(self._serving.discard)
        with suppress(asyncio.CancelledError):
            await self._pass_on(reader, writer)
        await _closed(writer)

    async def end(self) -> None:
        for one in (some := tuple(self._serving)):
            one.cancel()
        await asyncio.gather(*some, return_exceptions=True)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            return
        doomed = asyncio.Event()
        ways = [
            asyncio.ensure_future(self._up(reader, back, doomed)),
            asyncio.ensure_future(self._down(there, writer, doomed)),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            await _closed(back)

    async def _up(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        while data := await reader.read(BLOCK):
            if self._wanted is not None and self._wanted in data:
                self._wanted = None
                doomed.set()
            await asyncio.sleep(self.pause)
            back.write(data)
            await back.drain()
        raise ConnectionError("the client has gone")

    async def _down(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, doomed: asyncio.Event) -> None:
        while data := await there.read(BLOCK):
            if data.startswith(b"HTTP/1.1 "):
                self._answers += 1
                if self.every and self._answers % self.every == 0:
                    doomed.set()
            if doomed.is_set():
                self.lost += 1
                raise ConnectionError("the answer is lost")
            await asyncio.sleep(self.pause)
            writer.write(data)
            await writer.drain()
        raise ConnectionError("the server has gone")


@asynccontextmanager
async def cutting_proxy(port: int) -> AsyncIterator[CuttingProxy]:
    """Before the server at this port of this machine."""
    proxy = CuttingProxy(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()
    with suppress(ConnectionError, OSError):
        await writer.wait_closed()
