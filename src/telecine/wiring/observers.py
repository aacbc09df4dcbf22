"""Who watches a server: metrics, health, counters, access lines, traces."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prometheus_client import CollectorRegistry

from telecine.engine.events.counters import AT_ONCE
from telecine.engine.queries.gauges import FleetGauges
from telecine.errors import BadSpec
from telecine.facts import SECOND
from telecine.observe.health import PATIENCE, HealthProbes, ServerHealth
from telecine.observe.logs import name_traces
from telecine.observe.metrics import Metrics, Snapshot, or_nothing
from telecine.observe.requests import AccessLines, RequestMetrics
from telecine.observe.shared_result import SharedResult
from telecine.settings import Settings
from telecine.wiring.bells import redis_of

if TYPE_CHECKING:
    from telecine.artifacts import Artifacts
    from telecine.observe.tracing import Tracing
    from telecine.wiring import Parts

log = logging.getLogger(__name__)

FIGURES_SECONDS = 3.0
COUNT_SECONDS = 3.0


def observers(parts: Parts, artifacts: Artifacts) -> dict[str, Any]:
    """What watches, as fields of the house."""
    from telecine.wiring import schema_of  # noqa: PLC0415 - it imports us

    world, settings, queries = parts.world, parts.settings, parts.engine.queries

    async def read() -> FleetGauges:
        async with asyncio.timeout(PATIENCE):
            return await queries.fleet_gauges(stale=round(settings.stale_seconds * SECOND))

    figures = SharedResult(read, FIGURES_SECONDS, world.mono)

    redis = redis_of(parts.bell)

    async def redis_answers() -> bool:
        return redis is not None and await redis.ping() is not None

    async def look() -> Snapshot:
        told = {} if redis is None else asdict(redis.vitals())
        snapshot = await or_nothing(figures.get, world.mono, told)
        return replace(snapshot, health=await vitals.full())

    probes = HealthProbes(
        ping=queries.ping,
        schema=lambda: schema_of(parts),
        figures=figures.get,
        redis=None if redis is None else redis_answers,
        needs_redis=settings.queue_mode == "redis",
        rooms=_rooms(settings, artifacts),
        reserve=settings.upload_reserve_bytes,
        mono=world.mono,
    )
    vitals, registry = ServerHealth(probes), CollectorRegistry()
    requests = RequestMetrics(registry)
    return {
        "vitals": vitals,
        "metrics": Metrics(registry, look).text,
        "expect_responses": requests.expect,
        "watchers": (requests, AccessLines(), *((parts.tracing,) if parts.tracing else ())),
        "trace_seed": parts.tracing.seed if parts.tracing else None,
    }


def _rooms(settings: Settings, artifacts: Artifacts) -> dict[str, Path | None]:
    return {"artifacts": artifacts.folder, "uploads": settings.uploads, "scratch": settings.scratch}


@asynccontextmanager
async def traced(parts: Parts, role: str) -> AsyncIterator[Parts]:
    """The same parts with traces, if the settings ask for them."""
    if parts.settings.trace_endpoint is None:
        yield parts
        return
    seed = str(await parts.engine.counters.identity())
    async with open_tracing(parts.settings, seed, role) as tracing:
        yield replace(parts, tracing=tracing)


@asynccontextmanager
async def open_tracing(settings: Settings, seed: str | None, role: str) -> AsyncIterator[Tracing | None]:
    """Traces to `trace_endpoint`; without one, or without the installation's seed, none."""
    if settings.trace_endpoint is None or seed is None:
        yield None
        return
    try:
        from telecine.observe.tracing import Tracing  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise BadSpec(f"trace_endpoint needs the extra `tracing`: pip install 'telecine[tracing]' ({error})") from error
    tracing = Tracing(settings.trace_endpoint, seed, role)
    name_traces(tracing.trace_of)
    try:
        yield tracing
    finally:
        name_traces(None)
        await tracing.close()


@asynccontextmanager
async def counting(parts: Parts) -> AsyncIterator[None]:
    """Count events while the body runs."""
    duty = asyncio.create_task(_count_on(parts), name="counting")
    try:
        yield
    finally:
        duty.cancel()
        await asyncio.gather(duty, return_exceptions=True)


async def _count_on(parts: Parts) -> None:
    heard = parts.tracing.heard if parts.tracing else None
    while True:
        with parts.engine.outages.at("counting of events"):
            while await parts.engine.counters.count(heard) == AT_ONCE:
                pass
        await asyncio.sleep(COUNT_SECONDS * (0.75 + 0.5 * parts.world.dice.random()))
