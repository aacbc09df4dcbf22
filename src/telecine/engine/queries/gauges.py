"""Numbers about the fleet as it is now: read from indexes, each count exact up to a cap, so that a look costs little
however much there is. What has ever happened is counted in `events/counters.py`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from telecine.engine.leases.recovery import OFFLINE
from telecine.facts import HOUR, Instant, Millis
from telecine.graph import from_json
from telecine.store import Ask, Rows, Steps, Store

MAX_ROWS = 10_000
MAX_LANES = 200
MAX_WORKERS = 1_000
RECENT = 2_000
MAX_TALLIES = 20_000
MAX_FLOWS = 100
STALE: Millis = HOUR
# Kinds of events that end an attempt and mean that the work was not done.
_AGAIN = "task.retrying"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """What can be claimed in one lane: how much, how much of it for too long, and how long the oldest has waited."""

    lane: str
    ready: int = 0
    stale: int = 0
    oldest: Millis = 0
    running: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Staffed:
    """A worker that has beaten lately."""

    name: str
    kind: str
    mode: str
    slots: int
    load: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Recent:
    """The latest attempts of a stage: how many ended, how many of them are to be tried again, and the time within
    which 95 of 100 that succeeded were done."""

    flow: str
    stage: str
    ended: int
    again: int
    p95: Millis | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetGauges:
    """The fleet at one moment. `jobs` are open ones by flow and status; `totals` are counters by name and labels;
    `flows` are the registered ones with the names of their stages."""

    lanes: tuple[Lane, ...] = ()
    jobs: dict[tuple[str, str], int] = field(default_factory=dict)
    workers: tuple[Staffed, ...] = ()
    recent: tuple[Recent, ...] = ()
    totals: tuple[tuple[str, str, int], ...] = ()
    flows: dict[str, tuple[str, ...]] = field(default_factory=dict)
    parked: int = 0
    waiting_deliveries: int = 0
    dead_deliveries: int = 0
    freed: int = 0
    failed_jobs: int = 0
    uploads: int = 0
    upload_bytes: int = 0
    newest_event: int = 0
    counted_event: int = 0
    pulse: Millis = 0

    @property
    def pending(self) -> int:
        """Jobs that nobody has begun."""
        return sum(count for (_, status), count in self.jobs.items() if status == "pending")

    @property
    def in_progress(self) -> int:
        return sum(self.jobs.values()) - self.pending


async def read_figures(store: Store, *, stale: Millis = STALE, recent: int = RECENT) -> FleetGauges:
    """Everything at once, in one look."""
    return await store.read(lambda: figures(stale, recent))


async def ping(store: Store) -> None:
    """Does the database answer at all?"""

    def steps() -> Steps[None]:
        yield Ask("figure_ping", {})

    await store.read(steps)


class FleetPulse(NamedTuple):
    """The database's time, and when the fleet last swept (0: never)."""

    now: Instant
    swept_at: Instant


def pulse() -> Steps[FleetPulse]:
    [row] = yield Ask("pulse_get", {})
    return FleetPulse(int(row["now"]), int(row["at"]))


def figures(stale: Millis, recent: int) -> Steps[FleetGauges]:
    ready = yield Ask("figure_lanes", {"most": MAX_ROWS, "lanes": MAX_LANES, "stale": stale})
    running = yield Ask("figure_running", {"most": MAX_ROWS})
    jobs = yield Ask("figure_jobs", {"most": MAX_ROWS})
    workers = yield Ask("figure_workers", {"within": OFFLINE, "most": MAX_WORKERS})
    ended = yield Ask("figure_recent", {"most": recent})
    totals = yield Ask("tally_all", {"most": MAX_TALLIES})
    flows = yield Ask("flow_list", {})
    [rest] = yield Ask("figure_rest", {"most": MAX_ROWS})
    return FleetGauges(
        lanes=_lanes(ready, running),
        jobs={(row["flow"], row["status"]): row["count"] for row in jobs},
        workers=tuple(Staffed(**dict(row)) for row in workers),
        recent=_recent(ended),
        totals=tuple((row["name"], row["labels"], row["value"]) for row in totals),
        flows={row["name"]: _stages(row["graph"]) for row in flows[:MAX_FLOWS]},
        parked=rest["parked"],
        waiting_deliveries=rest["waiting"],
        dead_deliveries=rest["dead"],
        freed=rest["freed"],
        failed_jobs=rest["failed"],
        uploads=rest["uploads"],
        upload_bytes=rest["bytes"],
        newest_event=rest["newest"],
        counted_event=rest["counted"],
        pulse=max(0, rest["pulse"]),
    )


@lru_cache(maxsize=2 * MAX_FLOWS)  # room for the old graphs, too, while a release changes them
def _stages(graph: str) -> tuple[str, ...]:
    return tuple(stage.name for stage in from_json(graph).stages)


def _lanes(ready: Rows, running: Rows) -> tuple[Lane, ...]:
    busy = {row["lane"]: row["count"] for row in running[:MAX_LANES]}
    waiting = {row["lane"]: row for row in ready}
    return tuple(
        Lane(
            lane=lane,
            ready=row["count"] if (row := waiting.get(lane)) else 0,
            stale=row["stale"] if row else 0,
            oldest=max(0, row["oldest"]) if row else 0,
            running=busy.get(lane, 0),
        )
        for lane in sorted({*busy, *waiting})
    )


def _recent(rows: Rows) -> tuple[Recent, ...]:
    ended: Counter[tuple[str, str]] = Counter()
    again: Counter[tuple[str, str]] = Counter()
    took: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row in rows:
        stage = row["flow"], row["stage"]
        ended[stage] += 1
        again[stage] += row["kind"] == _AGAIN
        if row["kind"] == "task.done" and row["ms"] is not None:
            took[stage].append(row["ms"])
    return tuple(
        Recent(flow=flow, stage=stage, ended=count, again=again[flow, stage], p95=within(took[flow, stage], 0.95))
        for (flow, stage), count in sorted(ended.items())
    )


def within(times: Sequence[int], share: float) -> int | None:
    """The time within which this share of them was done."""
    if not times:
        return None
    in_order = sorted(times)
    return in_order[min(len(in_order) - 1, int(len(in_order) * share))]
