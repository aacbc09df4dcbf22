"""A transaction pooler in the way: few connections to the server, lent to a client for one transaction at a time.

It behaves like PgBouncer in transaction mode where that matters: it refuses session settings at the start (or forgets
them, as with `ignore_startup_parameters`), and what a server says while nobody has it is lost. It is worse in one
thing: every transaction gets the connection that has been idle for longest, so two in a row hardly ever share one.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qs, urlsplit

_INT = struct.Struct("!I")
_SSL, _PROTOCOL = 80877103, 196608
# What a pooler keeps for its clients; everything else it refuses.
_KNOWN = {"user", "database", "application_name", "client_encoding", "datestyle", "timezone"}
# What is answered, and with what the answer ends: a query, a sync, and the description of a statement (flush).
_ASKING = {b"Q": b"Z", b"S": b"Z", b"H": b"TnE"}
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Pooler:
    """Lends `servers` connections to any number of clients."""

    def __init__(self, url: str, servers: int, *, refuses: bool) -> None:
        self._refuses = refuses
        asked = parse_qs(urlsplit(url).query)
        self._socket = f"{asked['host'][0]}/.s.PGSQL.{asked.get('port', ['5432'])[0]}"
        self._settings = {"search_path": asked["search_path"][0]}
        self._servers = servers
        self._idle: asyncio.Queue[Stream] = asyncio.Queue()
        self._all: list[Stream] = []
        self._clients: set[asyncio.Task[None]] = set()
        self._greeting = b""
        self.transactions: dict[int, int] = {}  # by server connection

    async def open(self) -> str:
        """Where to connect instead."""
        for _ in range(self._servers):
            server = await self._connected()
            self._all.append(server)
            self._idle.put_nowait(server)
        self._door = await asyncio.start_server(self._met, "127.0.0.1", 0)
        return f"postgresql://postgres@127.0.0.1:{self._door.sockets[0].getsockname()[1]}/postgres"

    async def close(self) -> None:
        self._door.close()
        for client in self._clients:
            client.cancel()
        await asyncio.gather(*self._clients, return_exceptions=True)
        for _, writer in self._all:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _connected(self) -> Stream:
        server = await asyncio.open_unix_connection(self._socket)
        words = {"user": "postgres", "database": "postgres", **self._settings}
        body = _INT.pack(_PROTOCOL) + b"".join(f"{k}\0{v}\0".encode() for k, v in words.items()) + b"\0"
        server[1].write(_INT.pack(len(body) + 4) + body)
        greeting = b""
        while not greeting.endswith(b"Z\0\0\0\5I"):
            greeting += await _message(server[0])
        self._greeting = greeting
        return server

    async def _met(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        me = asyncio.current_task()
        assert me is not None
        self._clients.add(me)
        try:
            with suppress(asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
                if await self._greeted(reader, writer):
                    await self._serve(reader, writer)
        finally:
            self._clients.discard(me)
            writer.close()

    async def _greeted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        words = await _first(reader, writer)
        if self._refuses and (unknown := [name for name in words if name.lower() not in _KNOWN]):
            said = f"SFATAL\0VFATAL\0C08P01\0Munsupported startup parameter: {unknown[0]}\0\0".encode()
            writer.write(b"E" + _INT.pack(len(said) + 4) + said)
            await writer.drain()
            return False
        writer.write(self._greeting)
        return True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server: Stream | None = None
        try:
            while (asked := await _message(reader))[:1] != b"X":
                server = server or await self._lent()
                server[1].write(asked)
                if asked[:1] not in _ASKING:
                    continue
                while (answer := await _message(server[0]))[:1] not in _ASKING[asked[:1]]:
                    writer.write(answer)
                writer.write(answer)
                await writer.drain()
                if answer[:1] == b"Z" and answer[5:6] == b"I":
                    self._give_back(server)
                    server = None
        finally:
            if server is not None:  # in the middle of a transaction: that server connection is of no use any more
                server[1].close()
                fresh = await self._connected()
                self._all.append(fresh)
                self._idle.put_nowait(fresh)

    async def _lent(self) -> Stream:
        server = await self._idle.get()
        while server[0]._buffer:  # type: ignore[attr-defined]
            await _message(server[0])
        return server

    def _give_back(self, server: Stream) -> None:
        self.transactions[id(server)] = self.transactions.get(id(server), 0) + 1
        self._idle.put_nowait(server)


async def _message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(_INT.unpack(head[1:])[0] - 4)


async def _first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Mapping[str, str]:
    """Names and values of the first message; whoever asks for encryption hears that there is none."""
    while True:
        length = _INT.unpack(await reader.readexactly(4))[0]
        body = await reader.readexactly(length - 4)
        if _INT.unpack(body[:4])[0] != _SSL:
            words = body[4:].decode().split("\0")
            return {name: value for name, value in zip(words[::2], words[1::2], strict=False) if name}
        writer.write(b"N")


@asynccontextmanager
async def pooled(url: str, servers: int = 2, *, refuses: bool = True) -> AsyncIterator[tuple[str, Pooler]]:
    """The same database, through a pooler."""
    pooler = Pooler(url, servers, refuses=refuses)
    address = await pooler.open()
    try:
        yield address, pooler
    finally:
        await pooler.close()
