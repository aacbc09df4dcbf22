"""All metrics as Prometheus reads them. Facts of the fleet come from the database, so every server says the same;
requests, streams and Redis are this process's own. Label sets are bounded, and none has a user in it."""

from __future__ import annotations

import json
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest

from telecine.engine.events.counters import BOUNDS
from telecine.engine.queries.gauges import FleetGauges
from telecine.engine.queries.health import FullHealth
from telecine.errors import StoreError
from telecine.facts import SECOND

log = logging.getLogger(__name__)

MAX_WORKERS = 200
OTHER = "other"
NOTHING: Mapping[str, Any] = {}

# By the name in the tally: name of the metric, what it counts, its labels.
TOTALS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "jobs_created": ("telecine_jobs_created", "Jobs that were submitted", ("flow",)),
    "jobs_completed": ("telecine_jobs_completed", "Jobs that have ended, by how", ("flow", "outcome")),
    "jobs_retried": ("telecine_jobs_retried", "Jobs that a person opened again", ("flow",)),
    "attempts": ("telecine_task_attempts", "Attempts that have ended, by how", ("flow", "stage", "outcome")),
    "retries": ("telecine_task_retries", "Failed attempts after which another one follows", ("flow", "stage")),
    "retries_exhausted": (
        "telecine_task_retries_exhausted", "Tasks that failed in their last attempt", ("flow", "stage"),
    ),
    "recoveries": ("telecine_recoveries", "Leases of workers that vanished", ("flow",)),
    "quarantines": ("telecine_quarantines", "Tasks that lost too many workers in a row", ("flow",)),
    "workers_registered": ("telecine_workers_registered", "Workers that have come", ()),
    "audit_findings": ("telecine_audit_findings", "Contradictions that the audit has found", ()),
}  # fmt: skip
OUTCOMES = {
    "jobs_completed": ("completed", "failed", "cancelled"),
    "attempts": ("done", "failed", "lost", "released", "stalled", "timed_out", "cancelled"),
}
TIMES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "job_seconds": ("telecine_job_duration_seconds", "From the first claim to the end", ("flow", "outcome")),
    "task_seconds": ("telecine_task_duration_seconds", "Attempts that succeeded", ("flow", "stage")),
}

REDIS = {
    "errors": "Questions that Redis did not answer",
    "refusals": "Questions that Redis refused",
    "outages": "How often the circuit opened",
    "rings": "Wake-ups that were sent",
    "wakeups": "Wake-ups that were heard",
}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What one scrape tells: the fleet if the database answered, and how long that took; Redis if there is one; how
    this server is."""

    figures: FleetGauges | None
    seconds: float = 0.0
    redis: Mapping[str, Any] = field(default_factory=dict)
    health: FullHealth | None = None


class Metrics:
    """Renders a snapshot and what this process counts by itself."""

    def __init__(self, registry: CollectorRegistry, look: Callable[[], Awaitable[Snapshot]]) -> None:
        self._registry, self._look = registry, look

    async def text(self) -> bytes:
        snapshot = await self._look()
        fleet = CollectorRegistry()
        told = [*of_fleet(snapshot), *of_redis(snapshot.redis), *of_server(snapshot.health)]
        fleet.register(_Collected(told))
        return generate_latest(fleet) + generate_latest(self._registry)


class _Collected:
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def of_fleet(snapshot: Snapshot) -> Iterator[Metric]:
    figures = snapshot.figures
    yield _gauge("telecine_store_up", "Does the database answer?", figures is not None)
    if figures is None:
        return
    yield _gauge("telecine_store_seconds", "How long the database took for the figures of this page", snapshot.seconds)
    yield from _totals(figures.totals, figures.flows)
    yield from _jobs(figures)
    yield from _lanes(figures)
    yield from _workers(figures)
    yield from _recent(figures)
    yield _gauge("telecine_tasks_parked", "Tasks that wait for their time", figures.parked)
    yield _gauge("telecine_events_newest", "Number of the newest event", figures.newest_event)
    yield _gauge("telecine_events_counted", "Number of the newest event in these counters", figures.counted_event)
    yield _gauge("telecine_deliveries_waiting", "Webhook deliveries that are to be made", figures.waiting_deliveries)
    yield _gauge("telecine_deliveries_dead", "Webhook deliveries that were given up", figures.dead_deliveries)
    yield _gauge("telecine_uploads_open", "Uploads that have not come to their end", figures.uploads)
    yield _gauge("telecine_upload_bytes", "Bytes of open uploads that have arrived", figures.upload_bytes)
    yield _gauge("telecine_files_to_delete", "Stored files that nobody needs any more", figures.freed)
    yield _gauge("telecine_sweep_age_seconds", "How long ago somebody looked for lost leases", figures.pulse / SECOND)


def of_redis(told: Mapping[str, Any]) -> Iterator[Metric]:
    """What the line to Redis says of itself; nothing where there is none."""
    if not told:
        return
    open_now = told["circuit"] != "closed"
    yield _gauge("telecine_redis_circuit_open", "Redis is away, the database carries the wake-ups", open_now)
    yield _gauge("telecine_redis_listening", "Are wake-ups by Redis heard?", told["listening"])
    for name, meaning in REDIS.items():
        yield CounterMetricFamily(f"telecine_redis_{name}", meaning, value=told[name])
    hints = CounterMetricFamily("telecine_redis_hints", "Hints of what is most urgent, by use", labels=["use"])
    for use in ("offered", "taken", "stale"):
        hints.add_metric([use], told[f"hints_{use}"])
    yield hints


def of_server(health: FullHealth | None) -> Iterator[Metric]:
    if health is None:
        return
    yield _gauge("telecine_server_able", "Can this server serve? As /health tells", health.status == "ok")
    rooms = {(what,): room for what, room in health.storage.items() if room.free_bytes is not None}
    free = {what: float(room.free_bytes or 0) for what, room in rooms.items()}
    total = {what: float(room.total_bytes or 0) for what, room in rooms.items()}
    yield _by("telecine_storage_free_bytes", "Free on the disk, by what lies there", ("what",), free)
    yield _by("telecine_storage_total_bytes", "Size of the disk, by what lies there", ("what",), total)


def _gauge(name: str, meaning: str, value: float) -> Metric:
    return GaugeMetricFamily(name, meaning, value=float(value))


_Key = TypeVar("_Key", bound=tuple[str, ...])


def _by(name: str, meaning: str, labels: tuple[str, ...], values: Mapping[_Key, float]) -> Metric:
    family = GaugeMetricFamily(name, meaning, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(list(key), value)
    return family


def _totals(totals: Iterable[tuple[str, str, int]], flows: Mapping[str, Iterable[str]]) -> Iterator[Metric]:
    by_name: dict[str, dict[tuple[str, ...], int]] = defaultdict(dict)
    for name, (_, _, labels) in TOTALS.items():
        by_name[name] = dict.fromkeys(_possible(name, labels, flows), 0)
    for name, values, total in totals:
        by_name[name][tuple(json.loads(values))] = total
    for name, (metric, meaning, labels) in TOTALS.items():
        family = CounterMetricFamily(metric, meaning, labels=labels)
        for key, value in by_name[name].items():
            family.add_metric(list(key), value)
        yield family
    for name, (metric, meaning, labels) in TIMES.items():
        yield _times(by_name[name], by_name[f"{name}_sum"], BOUNDS[name], (metric, meaning, labels))


def _possible(name: str, labels: tuple[str, ...], flows: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """All values that its labels can have. A counter must be there with 0 before it counts: for Prometheus a series
    that begins with 1 has not increased."""
    if not labels:
        yield ()
        return
    for flow, stages in flows.items():
        for stage in stages if "stage" in labels else (None,):
            for outcome in OUTCOMES[name] if "outcome" in labels else (None,):
                yield tuple(one for one in (flow, stage, outcome) if one is not None)


def _times(
    buckets: Mapping[tuple[str, ...], int],
    sums: Mapping[tuple[str, ...], int],
    bounds: tuple[float, ...],
    named: tuple[str, str, tuple[str, ...]],
) -> Metric:
    metric, meaning, labels = named
    family = HistogramMetricFamily(metric, meaning, labels=labels)
    edges = [*(f"{bound:g}" if bound < 1 else str(float(bound)) for bound in bounds), "+Inf"]
    for key, milliseconds in sorted(sums.items()):
        seen, so_far = 0, []
        for number, edge in enumerate(edges):
            seen += buckets.get((*key, str(number)), 0)
            so_far.append((edge, float(seen)))
        family.add_metric(list(key), so_far, milliseconds / SECOND)
    return family


def _jobs(figures: FleetGauges) -> Iterator[Metric]:
    yield _gauge("telecine_jobs_pending", "Jobs that nobody has begun", figures.pending)
    yield _gauge("telecine_jobs_failed", "Failed jobs, until somebody opens them again", figures.failed_jobs)
    yield _gauge("telecine_jobs_in_progress", "Jobs that were begun and have not ended", figures.in_progress)
    yield _by("telecine_jobs_open", "Jobs that have not ended", ("flow", "status"), figures.jobs)


def _lanes(figures: FleetGauges) -> Iterator[Metric]:
    where = {(lane.lane.partition("/")[0], lane.lane): lane for lane in figures.lanes}
    of_lane, labels = list(where.items()), ("flow", "lane")
    yield _by("telecine_queue_size", "Tasks that can be claimed", labels, {key: lane.ready for key, lane in of_lane})
    yield _by("telecine_tasks_running", "Tasks under a lease", labels, {key: lane.running for key, lane in of_lane})
    oldest = {key: lane.oldest / SECOND for key, lane in of_lane}
    yield _by("telecine_queue_oldest_seconds", "How long the oldest of them has waited", labels, oldest)
    yield _gauge(
        "telecine_tasks_stale", "Tasks that could be claimed for too long", sum(x.stale for x in figures.lanes)
    )


def _workers(figures: FleetGauges) -> Iterator[Metric]:
    active = [worker for worker in figures.workers if worker.mode == "active"]
    yield _gauge("telecine_workers_active", "Workers that have beaten lately and take work", len(active))
    yield _gauge("telecine_worker_slots", "Tasks that they can run at once", sum(worker.slots for worker in active))
    by_mode = Counter((worker.kind, worker.mode) for worker in figures.workers)
    yield _by("telecine_workers", "Workers that have beaten lately", ("kind", "mode"), by_mode)
    load: Counter[tuple[str, ...]] = Counter()
    for number, worker in enumerate(figures.workers):
        load[worker.name if number < MAX_WORKERS else OTHER,] += worker.load
    yield _by("telecine_worker_load", "Tasks under a lease, by the name of the worker", ("worker",), load)


def _recent(figures: FleetGauges) -> Iterator[Metric]:
    p95 = {(one.flow, one.stage): one.p95 / SECOND for one in figures.recent if one.p95 is not None}
    meaning = "Time within which 95 of 100 of the latest successful attempts were done"
    yield _by("telecine_task_duration_p95_seconds", meaning, ("flow", "stage"), p95)
    ended, again = sum(one.ended for one in figures.recent), sum(one.again for one in figures.recent)
    rate = again / ended if ended else 0.0
    yield _gauge("telecine_task_retry_rate", "Share of the latest attempts that are to be tried again", rate)


async def or_nothing(
    read: Callable[[], Awaitable[FleetGauges]], seconds: Callable[[], float], redis: Mapping[str, Any] = NOTHING
) -> Snapshot:
    """The figures, or word that there are none: a scrape must not fail with the database."""
    began = seconds()
    try:
        figures = await read()
    except (StoreError, TimeoutError, OSError) as error:
        log.warning("no figures: %r", error)
        return Snapshot(None, redis=redis)
    return Snapshot(figures, seconds() - began, redis)
