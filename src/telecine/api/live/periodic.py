"""What happens by the clock: signs of life, progress, the fleet, statistics, and a second look at keys."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from telecine.api.live.chain_events import CHAIN
from telecine.api.live.snapshot import CAP, standing
from telecine.api.live.sse_events import PLAIN

if TYPE_CHECKING:
    from telecine.api.live.hub import Hub

log = logging.getLogger(__name__)

TICK = 1.0
# The last tick before so many seconds have passed.
ALIVE = 30.0
# Every so many seconds.
PROGRESS, STATS, FLEET, KEYS = 1.0, 3.0, 5.0, 15.0
# Owners whose statistics are counted in one go.
MAX_OWNERS = 50

Duty = Callable[[], Awaitable[None]]


class PeriodicUpdates:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._mono = hub.house.world.mono
        self._progress: dict[int, tuple[object, ...]] = {}
        self._stats: dict[str | None, dict[str, Any]] = {}
        self._turn = 0

    async def run(self, ready: asyncio.Event) -> None:
        await ready.wait()
        hub = self._hub
        duties: tuple[tuple[float, Duty], ...] = (
            (PROGRESS, self._tell_progress),
            (STATS, self._tell_stats),
            (FLEET, self._look_at_fleet),
            (hub.key_check, self._check_keys),
        )
        due = {duty: self._mono() + every for every, duty in duties}
        while True:
            await asyncio.sleep(min(TICK, hub.key_check, hub.alive_after))
            now = self._mono()
            self._show_life(now)
            for every, duty in duties:
                if now >= due[duty]:
                    due[duty] = now + every
                    await self._do(duty)

    async def _do(self, duty: Duty) -> None:
        with self._hub.house.engine.outages.at(f"live events, {duty.__name__.strip('_').replace('_', ' ')}"):
            await duty()

    def _show_life(self, now: float) -> None:
        for reader in self._hub.readers:
            if now - reader.said_at >= self._hub.alive_after - TICK:
                reader.is_due = True
                reader.wake()

    async def _tell_progress(self) -> None:
        """How far running jobs are, where that has changed."""
        hub = self._hub
        if not any(_wants_progress(reader.wanted.kinds) for reader in hub.readers):
            return
        seen: dict[int, tuple[object, ...]] = {}
        for moving in await hub.announcer.moving():
            job = moving.job
            seen[job.id] = now = (round(job.progress, 4), job.status, moving.stage, moving.note)
            if self._progress.get(job.id) != now and not hub.has_ended(job.id):
                lines = {voice.name: voice.progress(moving) for voice in (PLAIN, CHAIN)}
                hub.tell_job(job.id, job.owner, job.subject, lines)
        self._progress = seen

    async def _tell_stats(self) -> None:
        """Counts of the queue to those who speak of chains, when they have changed; owners take turns."""
        hub = self._hub
        readers = [reader for reader in hub.readers if reader.voice is CHAIN]
        if not readers:
            return
        stats = await hub.house.engine.queries.stats(CAP)
        owners = sorted({reader.wanted.sees for reader in readers}, key=str)
        first = self._turn if self._turn < len(owners) else 0
        self._turn = first + MAX_OWNERS
        for owner in owners[first : first + MAX_OWNERS]:
            counts = await standing(hub.house.engine, hub.announcer, owner, stats)
            if self._stats.get(owner) == counts:
                continue
            self._stats[owner] = counts
            for reader in readers:
                if reader.wanted.sees == owner:
                    hub.tell(reader, "stats", CHAIN.about("queue:stats", counts))
        self._stats = {owner: self._stats[owner] for owner in owners if owner in self._stats}

    async def _look_at_fleet(self) -> None:
        hub = self._hub
        if any(reader.wanted.sees is None for reader in hub.readers):
            for change in hub.fleet.look(await hub.house.engine.queries.workers()):
                hub.tell_worker(change.state, change.worker, change.name)

    async def _check_keys(self) -> None:
        """Whoever's key was revoked, or has expired, hears no more."""
        keys = {reader.caller.key_id for reader in self._hub.readers}
        invalid = keys - await self._hub.announcer.valid_keys(keys) if keys else set()
        for reader in self._hub.readers:
            if reader.caller.key_id in invalid:
                reader.end("key_invalid")


def _wants_progress(kinds: tuple[str, ...]) -> bool:
    return not kinds or any(kind.endswith(("progress", "*")) for kind in kinds)
