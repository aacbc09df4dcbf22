"""Make flows and workers known, and change what a worker may do."""

from __future__ import annotations

from collections.abc import Sequence

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.errors import NotFound, WorkerRevoked
from telecine.facts import Mode, WorkerId
from telecine.graph import Graph
from telecine.json_text import dumps
from telecine.store import Ask, Steps
from telecine.worker_facts import Registration


def flow(graph: Graph) -> Steps[int]:
    params = {
        "name": graph.flow,
        "version": graph.version,
        "digest": graph.digest(),
        "graph": graph.to_json(),
    }
    rows = yield Ask("flow_put", params)
    return int(rows[0]["id"])


def newest(name: str, graph_cache: GraphCache) -> Steps[tuple[int, Graph] | None]:
    rows = yield Ask("flow_newest", {"name": name})
    if not rows:
        return None
    flow_id = rows[0]["id"]
    return flow_id, (yield from graph_cache.fetch([flow_id]))[flow_id]


def names() -> Steps[list[str]]:
    rows = yield Ask("flow_list", {})
    return [row["name"] for row in rows]


def worker(who: Registration) -> Steps[WorkerId]:
    params = {
        "name": who.name,
        "hostname": who.hostname,
        "kind": who.kind,
        "release": who.release,
        "labels": dumps(who.labels),
        "lanes": dumps(who.lanes),
        "capabilities": dumps(who.capabilities),
        "metadata": dumps(who.metadata),
        "slots": who.slots,
        "boot_id": who.boot_id,
        "pid_space": who.pid_space,
        "pid": who.pid,
        "pid_started": who.pid_started,
    }
    rows = yield Ask("worker_add", params)
    worker_id = WorkerId(rows[0]["id"])
    yield Ask("event_say", _worker_event("worker.registered", worker_id, who.name))
    return worker_id


def mode(worker_id: WorkerId, wanted: Mode, revoke: bool) -> Steps[None]:
    rows = yield Ask("worker_mode", {"id": worker_id, "mode": wanted.value, "revoke": revoke})
    if not rows:
        raise NotFound(f"there is no worker {worker_id}, or it was revoked for good")
    yield Ask("event_say", _worker_event(f"worker.{'revoked' if revoke else wanted}", worker_id, None))


def check_not_revoked(worker_id: WorkerId) -> Steps[None]:
    rows = yield Ask("worker_revoked", {"id": worker_id})
    if rows:
        raise WorkerRevoked(f"worker {worker_id} was revoked: it ends, and only a new start makes it a worker again")


def awaited(ended: Sequence[int]) -> Steps[bool]:
    """Does any job come after one of these?"""
    rows = yield Ask("after_awaited", {"ids": list(ended)})
    return bool(rows[0]["found"])


def _worker_event(kind: str, worker_id: int, name: str | None) -> dict[str, object]:
    data = None if name is None else dumps({"name": name})
    return {
        "kind": kind,
        "job_id": None,
        "task_id": None,
        "stage": None,
        "token": None,
        "worker": worker_id,
        "data": data,
    }
