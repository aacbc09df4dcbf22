"""The line to Redis: a pool of connections, one short time limit for everything, a circuit breaker.

Whoever asks gets an answer, or `RedisUnavailable` after at most the time limit; while the circuit is open, at once. One
probe in the background finds out when Redis is back, so no caller pays for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from telecine.dispatch.circuit import CircuitBreaker
from telecine.dispatch.task_end import end
from telecine.retry import Dice
from telecine.triage import Verdict, triage_driver

log = logging.getLogger(__name__)

T = TypeVar("T")


class RedisUnavailable(Exception):
    """Redis did not answer, or not with what was asked for. Whoever asks must be able to do without."""


@dataclass(frozen=True, slots=True)
class RedisPing:
    """Redis is there: how long it took to say so, and which release it is."""

    milliseconds: float
    version: str


@dataclass(slots=True)
class RedisErrorCounts:
    """What went over the line, for metrics."""

    errors: int = 0
    refusals: int = 0
    last_error: str | None = None


def connect(url: str, *, size: int, timeout: float) -> Redis:
    """A client that never repeats a command by itself: the circuit decides about that."""
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=size,
        timeout=timeout,
        socket_timeout=timeout,
        socket_connect_timeout=timeout,
        retry=Retry(NoBackoff(), 0),
        protocol=2,
        decode_responses=True,
        encoding_errors="replace",
        client_name="telecine",
    )
    return Redis(connection_pool=pool)


class RedisPool:
    """`returned` is called when an outage has ended."""

    def __init__(self, url: str, *, size: int, timeout: float, dice: Dice, mono: Callable[[], float]) -> None:
        self.timeout = timeout
        self.circuit = CircuitBreaker(dice)
        self.count = RedisErrorCounts()
        self.returned: Callable[[], None] | None = None
        self._mono = mono
        self._redis = connect(url, size=size, timeout=timeout)
        self._recovery: asyncio.Task[None] | None = None

    @property
    def is_open(self) -> bool:
        """May one ask at all? While Redis is away, one need not try."""
        return self.circuit.is_closed

    async def do(self, call: Callable[[Redis], Awaitable[T]]) -> T:
        """Ask Redis something; `RedisUnavailable` if it does not answer in time."""
        if not self.is_open:
            raise RedisUnavailable
        try:
            async with asyncio.timeout(self.timeout):
                answer = await call(self._redis)
        except Exception as error:
            self.note(error)
            raise RedisUnavailable from error
        self.circuit.ok()
        return answer

    async def script(self, text: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """Run a script by its hash, and by its text where it is not known (a Redis that was restarted)."""
        return await self.do(lambda redis: redis.register_script(text)(keys=list(keys), args=list(arguments)))

    async def try_script(self, text: str, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        """The same; None if Redis is away."""
        try:
            return await self.script(text, keys, arguments)
        except RedisUnavailable:
            return None

    def note(self, error: Exception) -> None:
        """Count an error. A refusal of one command (out of memory, a foreign key) is an answer all the same."""
        self.count.last_error = f"{type(error).__name__}: {error}"[:200]
        if triage_driver(error) is Verdict.REFUSED:
            self.count.refusals += 1
            return
        self.count.errors += 1
        if self.circuit.failed():
            log.warning("Redis does not answer (%s); the database carries the wake-ups until it does", error)
            self._recovery = asyncio.get_running_loop().create_task(self._recover(), name="redis recovery")

    async def ping(self) -> RedisPing:
        """Ask whatever the circuit says; raises what went wrong."""
        began = self._mono()
        async with asyncio.timeout(self.timeout):
            await self._redis.ping()
            took = self._mono() - began
            info: dict[str, Any] = await self._redis.info("server")
        return RedisPing(took * 1_000, str(info.get("redis_version", "?")))

    async def _recover(self) -> None:
        while not self.is_open:
            await asyncio.sleep(self.circuit.pause())
            self.circuit.probe()
            try:
                await self.ping()
            except Exception as error:
                self.count.last_error = f"{type(error).__name__}: {error}"[:200]
                self.circuit.failed()
            else:
                self.circuit.ok()
        log.info("Redis answers again")
        if self.returned is not None:
            self.returned()

    async def close(self) -> None:
        if self._recovery is not None:
            await end(self._recovery)
        with suppress(Exception):
            async with asyncio.timeout(self.timeout):
                await self._redis.aclose()
        with suppress(Exception):
            await self._redis.connection_pool.disconnect()
