"""A bell between machines by way of Redis, and what it does when Redis is away.

        ring ──▶ local waiters, at once
             └─▶ sender ──▶ Redis: hints and one message ──▶ every other process that listens
                    └ away ──▶ the database's bell, as if there were no Redis

Whoever waits listens to both: to Redis, and to the database's bell, so a process that cannot reach Redis, or does not
know of it, is heard as well. Nothing here is needed for correctness, and nothing here blocks or raises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from telecine.dispatch import EVENTS, LocalRingBell
from telecine.dispatch.hints import Hints
from telecine.dispatch.local import LocalBell
from telecine.dispatch.redis_pool import RedisPing, RedisPool
from telecine.dispatch.redis_sender import Channels, Look, RedisSender
from telecine.dispatch.redis_subscriber import RedisSubscriber
from telecine.retry import Dice


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOptions:
    """Where Redis is and how long it may take. `namespace` keeps two Telecines on one Redis apart."""

    url: str
    namespace: str
    pool_size: int = 10
    timeout: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisHealth:
    """How the line to Redis is, for health checks and metrics; all counts are since the start of this process."""

    circuit: str
    listening: bool
    errors: int
    refusals: int
    outages: int
    last_error: str | None
    rings: int
    wakeups: int
    hints_offered: int
    hints_taken: int
    hints_stale: int


class RedisBell:
    """Rings by Redis, and by `fallback`, the database's bell, while that is away. `news` rings for events."""

    def __init__(
        self,
        options: RedisOptions,
        fallback: LocalRingBell,
        look: Look,
        *,
        me: str,
        dice: Dice,
        mono: Callable[[], float],
    ) -> None:
        self.namespace = options.namespace
        self.fallback = fallback
        self.vague = fallback.vague
        self.line = RedisPool(options.url, size=options.pool_size, timeout=options.timeout, dice=dice, mono=mono)
        self.hints = Hints(self.line, options.namespace)
        channels = Channels.of(options.namespace)
        self._sender = RedisSender(self.line, self.hints, look, fallback, me=me, channels=channels)
        self.news = RedisNews(self._sender, self.listen)
        heard = {channels.lanes: self._heard, channels.events: self.news.heard}
        self._ear = RedisSubscriber(options.url, heard, me=me, timeout=options.timeout, dice=dice)
        self.line.returned = self._returned

    def ring(self, lanes: Iterable[str]) -> None:
        named = list(lanes)
        if not named:
            return
        if self.line.is_open:
            self.fallback.nudge(named)
            self._sender.ring(named)
        else:
            self.fallback.ring(named)

    async def wait(self, timeout: float) -> None:
        self.listen()
        await self.fallback.wait(timeout)

    def listen(self) -> None:
        """Begin to listen, if that has not begun; needs a running loop."""
        self._ear.listen()

    async def ping(self) -> RedisPing | None:
        """Ask Redis for a sign of life, whatever the circuit says; None if there is none."""
        try:
            return await self.line.ping()
        except Exception as error:
            self.line.note(error)
            return None

    def vitals(self) -> RedisHealth:
        count, used = self.line.count, self.hints.used
        return RedisHealth(
            circuit=self.line.circuit.state,
            listening=self._ear.hears,
            errors=count.errors,
            refusals=count.refusals,
            outages=self.line.circuit.opened,
            last_error=count.last_error,
            rings=self._sender.sent,
            wakeups=self._ear.wakeups,
            hints_offered=used.offered,
            hints_taken=used.taken,
            hints_stale=used.stale,
        )

    async def close(self) -> None:
        await self._sender.close()
        await self._ear.close()
        await self.line.close()
        await self.news.close()
        await self.fallback.close()

    def _heard(self) -> None:
        self.fallback.nudge(("redis",))

    def _returned(self) -> None:
        """Every ring while Redis was away went by the database; look once more, for the seam between the two."""
        self._heard()
        self.news.heard()


class RedisNews:
    """A bell for events: it rings after they were written, heard by every server."""

    vague = True

    def __init__(self, sender: RedisSender, listen: Callable[[], Any]) -> None:
        self._sender, self._listen = sender, listen
        self._local = LocalBell()

    def ring(self, lanes: Iterable[str] = EVENTS) -> None:
        named = list(lanes)
        if named:
            self._local.ring(named)
            self._sender.tell()

    async def wait(self, timeout: float) -> None:
        self._listen()
        await self._local.wait(timeout)

    async def close(self) -> None:
        await self._local.close()

    def heard(self) -> None:
        self._local.ring(EVENTS)


__all__ = ["RedisBell", "RedisHealth", "RedisNews", "RedisOptions", "RedisPing"]
