"""A client as lean as can be: one connection, one request at a time, so that the server is what is measured."""

from __future__ import annotations

import asyncio
import json
from typing import Any

PATIENCE = 30.0


class Line:
    """A kept-alive connection to a server on this machine."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter

    async def open(self) -> Line:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=1 << 22)
        return self

    async def close(self) -> None:
        self._writer.close()

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Status and body of the answer."""
        content = b"" if body is None else json.dumps(body).encode()
        kind = "Content-Type: application/json\r\n" if content else ""
        head = f"{method} {path} HTTP/1.1\r\n{self._head}{kind}Content-Length: {len(content)}\r\n\r\n"
        self._writer.write(head.encode() + content)
        said = await asyncio.wait_for(self._reader.readuntil(b"\r\n\r\n"), PATIENCE)
        status = int(said[9:12])
        low = said.lower()
        at = low.find(b"content-length:")
        if at < 0:
            return status, b""
        length = int(low[at + 15 : low.index(b"\r\n", at)])
        return status, await self._reader.readexactly(length) if length else b""

    async def told(self, method: str, path: str, body: Any = None) -> Any:
        """The answer as JSON; anything but success ends the run."""
        status, content = await self.ask(method, path, body)
        if status >= 300:
            raise SystemExit(f"{method} {path} was answered with {status}: {content[:500]!r}")
        return json.loads(content) if content else None
