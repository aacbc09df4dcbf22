"""While a lease is held: beat, keep, log."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.errors import LeaseLost, WorkerGone
from telecine.facts import ERROR_CHARS, HeldLease, KeptArtifact, LogEntry, Millis, Mode, Orders, State, TaskId, WorkerId
from telecine.json_text import dumps, storable
from telecine.store import Ask, Row, Steps, Write
from telecine.worker_facts import Totals

LEAST = 1e-30  # of progress; much less is out of range for PostgreSQL's `real`, which refuses the whole beat


def _share(progress: float | None) -> float | None:
    """Between 0 and 1, or nothing: what is no number is no progress. What no database can tell from 0 is 0."""
    if progress is None or not math.isfinite(progress):
        return None
    return min(1.0, float(progress)) if progress > LEAST else 0.0


def beat(worker: WorkerId, holding: Sequence[HeldLease], totals: Totals, ttl: Millis) -> Steps[Orders]:
    """Renew exactly the named leases; bring back what the worker must do."""
    params = {
        "worker": worker,
        "ids": [h.task_id for h in holding],
        "tokens": [h.token for h in holding],
        "progress": [_share(h.progress) for h in holding],
        "notes": [None if h.note is None else storable(h.note)[:ERROR_CHARS] for h in holding],
        "ttl": ttl,
        "load": totals.load,
        "done": totals.done,
        "failed": totals.failed,
    }
    rows = yield Ask("beat", params, whole=True)
    if not rows:
        raise WorkerGone(f"worker {worker} is unknown or was given up: register again")
    renewed = tuple((TaskId(row["id"]), row["token"]) for row in rows if row["id"] is not None)
    alive = set(renewed)
    return Orders(
        now=rows[0]["now"],
        mode=Mode(rows[0]["mode"]),
        renewed=renewed,
        lost=tuple((h.task_id, h.token) for h in holding if (h.task_id, h.token) not in alive),
        stop=tuple((TaskId(row["id"]), row["token"]) for row in rows if row["id"] is not None and row["stop"]),
    )


def keep(task_id: TaskId, token: int, items: Sequence[KeptArtifact], graph_cache: GraphCache) -> Steps[None]:
    """Record artifacts and checkpoints under the current token; whoever lost the lease records nothing."""
    rows = yield Ask("task_hold", {"ids": [task_id]})
    if not rows:
        raise LeaseLost(task_id, token)
    row = rows[0]
    if row["state"] != State.RUNNING or row["token"] != token:
        raise LeaseLost(task_id, token)
    if row["now"] >= row["lease_until"]:
        raise LeaseLost(task_id, token, "lease_expired")
    [job] = yield Ask("job_flow", {"id": row["job_id"]})
    graph = (yield from graph_cache.fetch([job["flow_id"]]))[job["flow_id"]]
    stage = graph.stages[row["stage"]]
    latest = {item.name: item for item in items}
    # Only what has these names: a task keeps thousands of files, one after the other.
    where = {"task_id": task_id, "stage_version": stage.version, "names": list(latest)}
    known = {old["name"]: old for old in (yield Ask("kept_named", where))}
    artifacts = [
        {
            "job_id": row["job_id"],
            "task_id": task_id,
            "token": token,
            "name": item.name,
            "stage": stage.name,
            "position": row["position"],
            "stage_version": stage.version,
            "key": item.key,
            "size": item.size,
            "sha": item.sha256,
            "value": None if item.key is not None else dumps(item.value),
            "facts": dumps(item.facts) if item.facts else None,
        }
        for item in latest.values()
    ]
    # To say again what is known is no progress: else a task that says so and kills its worker would do it for ever.
    moved = any(_is_news(item, known.get(item["name"])) for item in artifacts)
    yield Write("keep", {"artifacts": artifacts, "tasks": [{"id": task_id, "moved": moved}]})


def _is_news(item: Row, known: Row | None) -> bool:
    if known is None or item["sha"] != known["sha256"]:
        return True
    return item["value"] is not None and json.loads(item["value"]) != json.loads(known["value"] or "null")


def log(lines: Sequence[LogEntry]) -> Steps[None]:
    """Log lines and steps of attempts; those of a token that is no longer current are dropped."""
    rows = [
        {
            "task_id": line.task_id,
            "token": line.token,
            "kind": line.kind,
            "level": line.level,
            "message": storable(line.message[:ERROR_CHARS]),
            "data": None if line.data is None else dumps(line.data),
        }
        for line in lines
    ]
    yield Write("log_add", {"lines": rows}, whole=True)
