"""Requests to this process: how many, how long they took, which event streams are open; and a line for each."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from telecine.observe.request_events import RequestEvent

log = logging.getLogger("telecine.access")

SECONDS = (0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
# Asked every few seconds by machines: while it goes well, not worth a line, unless somebody wants to see everything.
CHATTER = frozenset(
    {"/health", "/health/live", "/api/health", "/metrics", "/api/worker/heartbeat", "/api/worker/claim"}
)
# What a worker says all day while it works; who joins, leaves or is refused has a line.
ROUTINE = "/api/worker/"
RARE = frozenset(f"{ROUTINE}{word}" for word in ("register", "enlist", "drain", "retire"))
# Bytes in pieces: a player asks for hundreds of these.
BYTES = ("/media/", "/api/worker/source/", "/api/worker/artifacts/", "/api/worker/kept/", "/api/worker/digest/")
BAD = 400

# When each series began is of no use to anybody, and would double their number.
disable_created_metrics()  # type: ignore[no-untyped-call]


class RequestMetrics:
    """Counts by template, method and status. Addresses that nobody serves are one, so strangers add no labels."""

    def __init__(self, registry: CollectorRegistry) -> None:
        labels = ("route", "method", "status")
        self._count = Counter("telecine_http_requests", "Requests answered", labels, registry=registry)
        self._seconds = Histogram(
            "telecine_http_request_seconds",
            "Time until the end of the answer, streams left out",
            ("route", "method"),
            buckets=SECONDS,
            registry=registry,
        )
        self._now = Gauge("telecine_http_requests_in_progress", "Requests that are being answered", registry=registry)
        self._streams = Gauge("telecine_event_streams", "Event streams that are open", ("kind",), registry=registry)
        for kind in ("http", "websocket"):
            self._streams.labels(kind)
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}  # looking them up is the dear part

    def expect(self, responses: Iterable[tuple[str, str, int]]) -> None:
        """Start these counters at 0: for Prometheus a series that begins with 1 has not increased."""
        for route, method, status in responses:
            self._count.labels(route, method, str(status))

    def came(self, visit: RequestEvent) -> None:
        self._now.inc()

    def answered(self, visit: RequestEvent) -> None:
        if visit.is_stream:
            self._streams.labels(visit.kind).inc()

    def over(self, visit: RequestEvent) -> None:
        self._now.dec()
        key = visit.route, visit.method if visit.method in METHODS else "other", visit.status
        if key not in self._known:
            route, method, status = key
            self._known[key] = self._count.labels(route, method, str(status)), self._seconds.labels(route, method)
        count, seconds = self._known[key]
        count.inc()
        if visit.is_stream:
            self._streams.labels(visit.kind).dec()
        else:
            seconds.observe(visit.seconds)


class AccessLines:
    """One line for each request: the template of its address, by which key, how it went.

    Never the address itself: it holds names of films, signed links and queries.
    """

    def came(self, visit: RequestEvent) -> None:
        return None

    def answered(self, visit: RequestEvent) -> None:
        return None

    def over(self, visit: RequestEvent) -> None:
        level = logging.DEBUG if is_chatter(visit) else logging.INFO
        if log.isEnabledFor(level):
            ms = round(visit.seconds * 1000, 1)
            told = {"method": visit.method, "route": visit.route, "status": visit.status, "ms": ms, "key": visit.key_id}
            log.log(level, "%s %s %s %s ms", visit.method, visit.route, visit.status, ms, extra=told)


def is_chatter(visit: RequestEvent) -> bool:
    """No line is worth it: machines, and workers at work, while all is well."""
    is_routine = visit.route.startswith(ROUTINE) and visit.route not in RARE
    return is_untraced(visit) or (visit.status < BAD and is_routine)


def is_untraced(visit: RequestEvent) -> bool:
    """No span is worth it. What a worker says about a task is: it belongs to the job's trace."""
    if visit.status >= BAD:
        return False
    return visit.route in CHATTER or (visit.method in ("GET", "HEAD") and visit.route.startswith(BYTES))
