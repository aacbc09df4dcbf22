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
TURNS = 5  # of the loop: more than it needs to accept a connection, or to close one


class DelayedClose:
    """`url` leads to the same database; `delay` is how many seconds the end of a connection is held back."""

    def __init__(self, url: str, delay: float) -> None:
        self._query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
        self._socket = f"{self._query.pop('host')}/.s.PGSQL.5432"
        self.delay = delay
        self.port = 0
        self._serving: dict[asyncio.Future[None], asyncio.StreamWriter] = {}

    @property
    def url(self) -> str:
        query = f"?{urlencode(self._query)}" if self._query else ""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres{query}"

    def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """At once, so that also a connection that nobody has served yet is known at the end."""
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._serving[task] = writer
        task.add_done_callback(self._left)

    def _left(self, task: asyncio.Future[None]) -> None:
        self._serving.pop(task).close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server = await asyncio.open_unix_connection(self._socket)
        except OSError:
            writer.transport.abort()
            return
        there = asyncio.ensure_future(_copy(reader, server[1]))
        back = asyncio.ensure_future(_copy(server[0], writer))
        try:
            await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
            if not there.done():
                await asyncio.wait({there}, timeout=self.delay)
        finally:
            for task in (there, back):
                task.cancel()
            server[1].close()

    async def end(self) -> None:
        some = dict(self._serving)
        for task in some:
            task.cancel()
        await asyncio.gather(*some, return_exceptions=True)
        for writer in some.values():
            writer.transport.abort()
        await _turns()  # sockets are closed in the next one


async def _turns() -> None:
    for _ in range(TURNS):
        await asyncio.sleep(0)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(BLOCK):
            writer.write(data)
            await writer.drain()


@asynccontextmanager
async def delayed_close(url: str, delay: float = 0.05) -> AsyncIterator[DelayedClose]:
    proxy = DelayedClose(url, delay)
    server = await asyncio.start_server(proxy.meet, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        await _turns()  # whoever was let in is met: of a server that is closed meanwhile, asyncio forgets him
        server.close()
        await proxy.end()
