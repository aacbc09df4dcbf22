"""A proxy before PostgreSQL that loses replies: the request is carried out, and nobody hears of it.

The moment of the loss is chosen exactly: the next request that contains a given text is passed on, the server's
answer is read to its end ("ready for query") and thrown away, and the client's connection is cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urlsplit

SOCKET = ".s.PGSQL.5432"
READY = b"Z\x00\x00\x00\x05"  # ReadyForQuery; one byte of state follows


class LossyProxy:
    """`lose(text)` loses the answer to the next request that contains `text`; `lost` counts them."""

    def __init__(self, url: str, folder: Path) -> None:
        self._upstream = urlsplit(url)
        self._folder = folder
        self._wanted: bytes | None = None
        self.lost = 0

    @property
    def url(self) -> str:
        query = {key: values[0] for key, values in parse_qs(self._upstream.query).items() if key != "host"}
        return f"postgresql://postgres@/postgres?host={quote(str(self._folder))}&{urlencode(query)}".rstrip("&")

    def lose(self, text: bytes) -> None:
        self._wanted = text

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await self._connect()
        cut = asyncio.Event()
        try:
            await asyncio.gather(
                self._to_server(reader, server_writer, cut), self._to_client(server_reader, writer, cut)
            )
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            for end in (writer, server_writer):
                end.close()
                with contextlib.suppress(ConnectionError):
                    await end.wait_closed()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host = parse_qs(self._upstream.query).get("host", [self._upstream.hostname or "localhost"])[0]
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/{SOCKET}")
        return await asyncio.open_connection(host, self._upstream.port or 5432)

    async def _to_server(self, reader: asyncio.StreamReader, server: asyncio.StreamWriter, cut: asyncio.Event) -> None:
        while data := await reader.read(65_536):
            if self._wanted is not None and self._wanted in data:
                self._wanted = None
                cut.set()
            server.write(data)
            await server.drain()
        server.close()

    async def _to_client(self, server: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event) -> None:
        swallowed = b""
        while data := await server.read(65_536):
            if not cut.is_set():
                writer.write(data)
                await writer.drain()
                continue
            swallowed += data
            if READY in swallowed:
                self.lost += 1
                writer.transport.abort()
                raise ConnectionError("the answer is lost")
        writer.close()


@asynccontextmanager
async def lossy_proxy(url: str) -> AsyncIterator[LossyProxy]:
    # Not in pytest's folder: the path of a socket may have about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="telecine-proxy-") as folder:
        proxy = LossyProxy(url, Path(folder))
        server = await asyncio.start_unix_server(proxy.serve, f"{folder}/{SOCKET}")
        try:
            yield proxy
        finally:
            server.close()
