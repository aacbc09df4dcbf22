"""Workers, flows and the state of the queues, as people see them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from telecine.engine.leases.recovery import OFFLINE
from telecine.facts import Instant, Json, Millis, Mode
from telecine.graph import from_json
from telecine.store import Ask, Row, Rows, Steps

CAP = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A lease as its worker's line shows it."""

    task_id: int
    job_id: int
    flow: str
    stage: str
    position: int
    token: int
    progress: float | None
    note: str | None
    claimed_at: Instant
    lease_until: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerView:
    """Three facts (mode, liveness, activity), and in `shown` the first that holds of disabled, offline, draining,
    busy, idle."""

    id: int
    name: str
    hostname: str
    kind: str
    release: str
    shown: str
    mode: str
    liveness: str
    activity: str
    slots: int
    load: int
    tasks: tuple[Running, ...]
    done: int
    failed: int
    labels: tuple[str, ...]
    lanes: tuple[str, ...]
    capabilities: dict[str, Json]
    metadata: dict[str, Json]
    registered_at: Instant
    beat_at: Instant
    revoked_at: Instant | None
    gone_at: Instant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStage:
    name: str
    title: str
    phase: str
    version: int
    needs: tuple[str, ...]
    labels: tuple[str, ...]
    optional: bool
    fan_out: bool
    lane: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowView:
    """The newest registered graph of a flow."""

    name: str
    version: int
    paused: bool
    registered_at: Instant
    stages: tuple[FlowStage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneStats:
    """What can be claimed in one lane; `oldest_ms` is how long the oldest of it has been ready."""

    lane: str
    ready: int
    oldest_ms: Millis


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Counts, each exact up to `cap`: a count that equals `cap` means "at least". Nothing counts a whole table.

    Open jobs and tasks are counted in the partial indexes that hold only them, ended jobs in the index by end,
    from the latest back.
    """

    cap: int
    jobs: dict[str, int]
    tasks: dict[str, int]
    lanes: tuple[LaneStats, ...]
    oldest_ready_ms: Millis
    ended_last_minute: dict[str, int]
    workers: int
    slots: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnStats:
    """The counts of one owner, each exact up to `cap`: his newest jobs by status, the tasks of those that are open."""

    cap: int
    jobs: dict[str, int]
    tasks: dict[str, int]


def workers(*, gone: bool = False, worker_id: int | None = None) -> Steps[tuple[WorkerView, ...]]:
    """The fleet; with `gone` also those who have left."""
    rows = yield Ask("worker_list", {"all": gone, "id": worker_id})
    running = yield Ask("view_running", {})
    return tuple(_worker(row, [task for task in running if task["worker"] == row["id"]]) for row in rows)


def _worker(row: Row, tasks: Rows) -> WorkerView:
    alive = row["gone_at"] is None and row["beat_at"] > row["now"] - OFFLINE
    facts: dict[str, Any] = {
        "mode": Mode.DISABLED.value if row["revoked_at"] is not None else row["mode"],
        "liveness": "online" if alive else "offline",
        "activity": "busy" if tasks else "idle",
    }
    plain = ("id", "name", "hostname", "kind", "release", "slots", "load", "done", "failed")
    times = ("registered_at", "beat_at", "revoked_at", "gone_at")
    return WorkerView(
        **{name: row[name] for name in (*plain, *times)},
        **facts,
        shown=shown_of(facts),
        tasks=tuple(_running(task) for task in tasks),
        labels=tuple(json.loads(row["labels"])),
        lanes=tuple(json.loads(row["lanes"])),
        capabilities=json.loads(row["capabilities"]),
        metadata=json.loads(row["metadata"]),
    )


def shown_of(facts: dict[str, Any]) -> str:
    """The one word: the first that holds of disabled, offline, draining, busy, idle."""
    held = set(facts.values())
    return next(word for word in ("disabled", "offline", "draining", "busy", "idle") if word in held)


def _running(row: Row) -> Running:
    same = ("job_id", "flow", "position", "token", "progress", "note", "claimed_at", "lease_until")
    return Running(task_id=row["id"], stage=row["stage_name"], **{name: row[name] for name in same})


def flows() -> Steps[tuple[FlowView, ...]]:
    rows = yield Ask("flow_list", {})
    return tuple(_flow(row) for row in rows)


def _flow(row: Row) -> FlowView:
    graph = from_json(row["graph"])
    same = ("name", "version", "needs", "labels", "optional", "fan_out")
    stages = tuple(
        FlowStage(
            title=stage.title or stage.name,
            phase=stage.phase.value,
            lane=graph.lane(number),
            **{name: getattr(stage, name) for name in same},
        )
        for number, stage in enumerate(graph.stages)
    )
    return FlowView(
        name=row["name"],
        version=row["version"],
        paused=bool(row["paused"]),
        registered_at=row["registered_at"],
        stages=stages,
    )


def stats(cap: int = CAP) -> Steps[Stats]:
    """How full the queues are; see `Stats` for how it is counted."""
    lanes = yield Ask("stats_lanes", {"most": cap})
    opened = yield Ask("stats_open", {"most": cap})
    ended = yield Ask("stats_ended", {"most": cap})
    [rest] = yield Ask("stats_tasks", {"most": cap, "within": OFFLINE})
    by_lane = tuple(
        LaneStats(lane=row["lane"], ready=row["count"], oldest_ms=max(0, row["now"] - row["oldest"])) for row in lanes
    )
    return Stats(
        cap=cap,
        jobs={row["state"]: row["count"] for row in (*opened, *ended)},
        tasks={
            "new": rest["waiting"],
            "ready": sum(lane.ready for lane in by_lane),
            "parked": rest["parked"],
            "running": rest["running"],
        },
        lanes=by_lane,
        oldest_ready_ms=max((lane.oldest_ms for lane in by_lane), default=0),
        ended_last_minute={row["state"]: row["lately"] for row in ended},
        workers=rest["workers"],
        slots=rest["slots"],
    )


def own_stats(owner: str, cap: int = CAP) -> Steps[OwnStats]:
    jobs = yield Ask("stats_jobs_of_owner", {"owner": owner, "most": cap})
    tasks = yield Ask("stats_tasks_of_owner", {"owner": owner, "most": cap})
    return OwnStats(
        cap=cap,
        jobs={row["state"]: row["count"] for row in jobs},
        tasks={"new": 0, "ready": 0, "parked": 0, "running": 0} | {row["state"]: row["count"] for row in tasks},
    )
