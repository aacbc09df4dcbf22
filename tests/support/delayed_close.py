"""A proxy before PostgreSQL that passes bytes on at once, and the end of a connection only after a while.

A client therefore reads "terminating connection due to administrator command" on a connection that still looks open:
what happens in any network in which the last bytes and the FIN do not arrive in the same read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlencode, urlsplit

BLOCK = 65_536


class DelayedClose:
    """`url` leads to the same database; `delay` is how many seconds the end of a connection is held back."""

    def __init__(self, url: str, delay: float) -> None:
        self._query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self._socket = f"{self._query.pop('host')}/.s.PGSQL.5432"
        self.delay = delay
        self.port = 0
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        query = f"?{urlencode(self._query)}" if self._query else ""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres{query}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._serving.add(me)
        me.add_done_callback(self._serving.discard)
        try:
            server = await asyncio.open_unix_connection(self._socket)
        except OSError:
            writer.transport.abort()
            return
        there = asyncio.ensure_future(_copy(reader, server[1]))
        back = asyncio.ensure_future(_copy(server[0], writer))
        with suppress(asyncio.CancelledError):
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            if not there.done():
                await asyncio.wait({there}, timeout=self.delay)
        for task in (there, back):
            task.cancel()
        await asyncio.gather(there, back, return_exceptions=True)
        for one in (writer, server[1]):
            one.close()

    async def end(self) -> None:
        for task in (some := tuple(self._serving)):
            task.cancel()
        await asyncio.gather(*some, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(BLOCK):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def delayed_close(url: str, delay: float = 0.05) -> AsyncIterator[DelayedClose]:
    proxy = DelayedClose(url, delay)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()
