"""Can this server serve? Asked often, by machines, hence cheap: looked at once a second at most, in bounded time."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from telecine.engine.queries.gauges import FleetGauges
from telecine.engine.queries.health import DatabaseHealth, FreeSpace, FullHealth, Health, Processing, Word
from telecine.errors import SchemaMissing, SchemaTooNew, StoreError
from telecine.observe.shared_result import SharedResult

log = logging.getLogger(__name__)

KEPT_SECONDS = 1.0
PATIENCE = 3.0

NO_DATABASE = "the database does not answer"
WRONG_SCHEMA = "the schema of the database is not the one of this release"
NO_REDIS = "Redis does not answer, and queue_mode is redis"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthProbes:
    """How to look at each part. `redis` is None where there is none; `rooms` are folders by what lies there, or None
    for a bucket; `reserve` is how much of a disk must stay free."""

    ping: Callable[[], Awaitable[None]]
    schema: Callable[[], Awaitable[int]]
    figures: Callable[[], Awaitable[FleetGauges]]
    redis: Callable[[], Awaitable[bool]] | None
    needs_redis: bool
    rooms: Mapping[str, Path | None]
    reserve: int
    mono: Callable[[], float]


class ServerHealth:
    """How this server is, at most a second old."""

    def __init__(self, probes: HealthProbes) -> None:
        self._probes = probes
        self._full = SharedResult(self._look, KEPT_SECONDS, probes.mono)
        self._said: tuple[str, ...] = ()

    async def full(self) -> FullHealth:
        return await self._full.get()

    async def health(self) -> Health:
        full = await self.full()
        work = full.processing
        return Health(
            status=full.status,
            reasons=full.reasons,
            database=full.database.status,
            redis=full.redis,
            active_workers=work.workers_active if work else None,
            pending_jobs=work.jobs_pending if work else None,
        )

    async def _look(self) -> FullHealth:
        (database, why), redis, storage = await asyncio.gather(self._database(), self._redis(), self._storage())
        work = await self._processing() if database.status == "ok" else None
        reasons = [why] if why else []
        if redis == "unable" and self._probes.needs_redis:
            reasons.append(NO_REDIS)
        reasons += [f"the disk of the {what} is full" for what, room in storage.items() if room.status == "unable"]
        self._say(tuple(reasons))
        return FullHealth(
            status="unable" if reasons else "ok",
            reasons=tuple(reasons),
            storage=storage,
            database=database,
            redis=redis,
            processing=work,
        )

    def _say(self, reasons: tuple[str, ...]) -> None:
        """When it changes, not at every probe."""
        if reasons == self._said:
            return
        self._said = reasons
        if reasons:
            log.warning("not able to serve: %s", "; ".join(reasons))
        else:
            log.info("able to serve again")

    async def _database(self) -> tuple[DatabaseHealth, str | None]:
        began = self._probes.mono()
        try:
            async with asyncio.timeout(PATIENCE):
                await self._probes.ping()
                latency = round((self._probes.mono() - began) * 1000, 2)
                version = await self._probes.schema()
        except (SchemaMissing, SchemaTooNew):
            return DatabaseHealth(status="unable"), WRONG_SCHEMA
        except (StoreError, TimeoutError, OSError) as error:
            log.debug("the database does not answer: %r", error)
            return DatabaseHealth(status="unable"), NO_DATABASE
        return DatabaseHealth(status="ok", latency_ms=latency, schema_version=version), None

    async def _redis(self) -> Word:
        if self._probes.redis is None:
            return "off"
        try:
            async with asyncio.timeout(PATIENCE):
                return "ok" if await self._probes.redis() else "unable"
        except Exception as error:  # whatever its driver raises, Redis is only a helper
            log.debug("Redis does not answer: %r", error)
            return "unable"

    async def _storage(self) -> dict[str, FreeSpace]:
        rooms = self._probes.rooms
        looks = [_room(folder, self._probes.reserve) for folder in rooms.values()]
        return dict(zip(rooms, await asyncio.gather(*looks), strict=True))

    async def _processing(self) -> Processing | None:
        try:
            async with asyncio.timeout(PATIENCE):
                return processing(await self._probes.figures())
        except (StoreError, TimeoutError, OSError):
            return None


def processing(figures: FleetGauges) -> Processing:
    active = [worker for worker in figures.workers if worker.mode == "active"]
    ended = sum(one.ended for one in figures.recent)
    return Processing(
        jobs_pending=figures.pending,
        jobs_in_progress=figures.in_progress,
        tasks_ready=sum(lane.ready for lane in figures.lanes),
        tasks_running=sum(lane.running for lane in figures.lanes),
        tasks_stale=sum(lane.stale for lane in figures.lanes),
        workers_active=len(active),
        slots=sum(worker.slots for worker in active),
        retry_rate=round(sum(one.again for one in figures.recent) / ended, 4) if ended else 0.0,
        uploads_open=figures.uploads,
    )


async def _room(folder: Path | None, reserve: int) -> FreeSpace:
    if folder is None:
        return FreeSpace(status="ok")
    try:
        # A network file system may never answer; then its thread waits, and we do not.
        async with asyncio.timeout(PATIENCE):
            usage = await asyncio.to_thread(_usage, folder)
    except (OSError, TimeoutError):
        return FreeSpace(status="unable")
    return FreeSpace(
        status="ok" if usage.free >= reserve and usage.free > 0 else "unable",
        total_bytes=usage.total,
        free_bytes=usage.free,
    )


def _usage(folder: Path) -> shutil._ntuple_diskusage:
    """Of the folder, or of the nearest one above it that is there."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    return shutil.disk_usage(place)
