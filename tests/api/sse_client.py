"""Readers of live events, byte by byte: what they hear is what a server sent, not what a client made of it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import uvicorn
from fastapi import FastAPI

PATIENCE = 30.0


@dataclass(frozen=True)
class Heard:
    """One block of an event stream."""

    id: str | None = None
    kind: str | None = None
    text: str | None = None
    retry: int | None = None
    comment: str | None = None

    @property
    def data(self) -> Any:
        return None if self.text is None else json.loads(self.text)


class Ear:
    """A connection to `/api/v1/events`; `listening` cuts those that a test leaves open."""

    opened: ClassVar[set[Ear]] = set()

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self._text = b""
        self._whole: deque[bytes] = deque()
        self.last_id: str | None = None
        self.opened.add(self)

    @classmethod
    async def open(
        cls, port: int, query: str = "", *, key: str | None = None, last_id: str | None = None, **headers: str
    ) -> Ear:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        named = {"Host": f"127.0.0.1:{port}", **headers}
        if key is not None:
            named["Authorization"] = f"Bearer {key}"
        if last_id is not None:
            named["Last-Event-ID"] = last_id
        lines = [f"GET /api/v1/events?{query} HTTP/1.1", *(f"{name}: {value}" for name, value in named.items())]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        ear = cls(reader, writer)
        ear.last_id = last_id
        try:
            # Not `wait_for`: it may swallow that somebody else's time is over.
            async with asyncio.timeout(PATIENCE):
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        except BaseException:
            ear.cut()
            raise
        ear.status = int(head[0].split()[1])
        ear.headers = {n.lower(): v for n, _, v in (line.partition(": ") for line in head[1:] if line)}
        return ear

    async def blocks(self) -> AsyncIterator[Heard]:
        """All that comes, until the end."""
        while True:
            while self._whole:
                heard = _heard(self._whole.popleft().decode())
                self.last_id = heard.id or self.last_id
                yield heard
            size = await self._reader.readline()
            if not size.strip() or (count := int(size, 16)) == 0:
                return
            *whole, self._text = (self._text + (await self._reader.readexactly(count + 2))[:-2]).split(b"\n\n")
            self._whole.extend(whole)

    async def events(self) -> AsyncIterator[Heard]:
        async for heard in self.blocks():
            if heard.kind is not None:
                yield heard

    async def until(self, check: Callable[[Heard], bool], within: float = PATIENCE) -> list[Heard]:
        """Events up to the first that passes."""
        found: list[Heard] = []
        async with asyncio.timeout(within):
            async for heard in self.events():
                found.append(heard)
                if check(heard):
                    return found
        raise AssertionError(f"the stream ended after {found}")

    async def rest(self, within: float = PATIENCE) -> list[Heard]:
        async with asyncio.timeout(within):
            return [heard async for heard in self.events()]

    async def body(self) -> bytes:
        return await asyncio.wait_for(self._reader.readexactly(int(self.headers["content-length"])), PATIENCE)

    def cut(self) -> None:
        """As if the cable was pulled."""
        self._writer.transport.abort()
        self.opened.discard(self)


def _heard(block: str) -> Heard:
    fields: dict[str, str] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        fields[name or "comment"] = value.strip()
    return Heard(
        id=fields.get("id"),
        kind=fields.get("event"),
        text=fields.get("data"),
        retry=int(fields["retry"]) if "retry" in fields else None,
        comment=fields.get("comment"),
    )


@asynccontextmanager
async def listening(app: FastAPI) -> AsyncIterator[int]:
    """The application behind a real socket; the port."""
    own = socket.socket()
    own.bind(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, ws="websockets-sansio", ws_max_size=64 << 10, lifespan="off")
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server._serve(sockets=[own]))
    try:
        async with asyncio.timeout(PATIENCE):
            while not server.started:
                await asyncio.sleep(0.01)
        yield own.getsockname()[1]
    finally:
        app.state.house.closing.set()
        server.should_exit = True
        for ear in tuple(Ear.opened):
            ear.cut()
        await serving
        own.close()


async def gather(ear: Ear, count: int, within: float = PATIENCE) -> list[Heard]:
    """The next so many events of the table: whatever has a number."""
    found: list[Heard] = []

    def enough(heard: Heard) -> bool:
        if heard.id is not None and heard.data.get("seq") is not None and heard.kind not in ("snapshot", "reset"):
            found.append(heard)
        return len(found) == count

    await ear.until(enough, within)
    return found
