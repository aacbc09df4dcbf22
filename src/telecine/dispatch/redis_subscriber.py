"""Listens to channels of Redis on a connection of its own, for as long as it may take.

A message says only "look": how often it comes, and in which order, makes no difference. When the connection was lost
and is there again, everybody looks, since something may have been missed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from telecine.dispatch.redis_pool import connect
from telecine.dispatch.task_end import BugLog, end
from telecine.retry import Dice

CHECK_SECONDS = 5.0
MAX_BACKOFF = 5.0


class RedisSubscriber:
    """`heard`: what to do about each channel. `me`: words of our own were heard before they went out."""

    def __init__(
        self, url: str, heard: Mapping[str, Callable[[], None]], *, me: str, timeout: float, dice: Dice
    ) -> None:
        self.wakeups = 0
        self.hears = False
        self._url, self._heard, self._me = url, heard, me
        self._timeout, self._dice = timeout, dice
        self._listening: asyncio.Task[None] | None = None
        self._bugs = BugLog()

    def listen(self) -> None:
        """Begin to listen, if that has not begun; needs a running loop."""
        if self._listening is None:
            self._listening = asyncio.get_running_loop().create_task(self._listen_on(), name="redis ear")

    async def _listen_on(self) -> None:
        broken = 0
        while True:
            redis = connect(self._url, size=1, timeout=self._timeout)
            pubsub = redis.pubsub()
            try:
                async with asyncio.timeout(self._timeout):
                    await pubsub.subscribe(*self._heard)
                await self._stay(pubsub)
            except Exception as error:  # whatever it is, a process that no longer listens would be deaf until it ends
                broken = 0 if self.hears else broken + 1
                self._bugs.tell(error)
            finally:
                self.hears = False
                await self._hang_up(pubsub, redis)
            await asyncio.sleep(min(MAX_BACKOFF, 0.05 * 2 ** min(broken, 10)) * (0.5 + self._dice.random()))

    async def _stay(self, pubsub: Any) -> None:
        """Raise when the connection is gone. A peer that vanished without a word is found by asking."""
        asked = False
        while True:
            message = await pubsub.get_message(timeout=CHECK_SECONDS)
            if message is not None:
                asked = False
                self._take(message["type"], message["channel"], message["data"])
            elif asked:
                raise TimeoutError("Redis has gone silent")
            else:
                asked = True
                async with asyncio.timeout(self._timeout):
                    await pubsub.ping()

    def _take(self, kind: str, channel: str | None, data: object) -> None:
        if kind == "subscribe":
            self.hears = True
        elif kind != "message" or data == self._me:
            return
        else:
            self.wakeups += 1
        if (wake := self._heard.get(str(channel))) is not None:
            wake()

    async def _hang_up(self, pubsub: Any, redis: Any) -> None:
        for leave in (pubsub.aclose, redis.aclose, redis.connection_pool.disconnect):
            with suppress(Exception):
                async with asyncio.timeout(self._timeout):
                    await leave()

    async def close(self) -> None:
        if self._listening is not None:
            await end(self._listening)
