"""Recompute everything that the engine derives, from tasks and history alone, and name every difference.

It shares no code with the engine: it is the second opinion.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable
from typing import Any

Sql = Callable[[str], Awaitable[list[dict[str, Any]]]]
FINAL = {"done", "error", "cancelled", "skipped"}
PHASES = ["validating", "planning", "downloading_inputs", "processing", "uploading_outputs"]


async def audit(sql: Sql) -> list[str]:
    """Sentences about what is wrong; none if all is well."""
    graphs = {row["id"]: _graph(row["graph"]) for row in await sql("select id, graph from flow")}
    jobs = await sql("select * from job")
    stages = await sql("select * from stage order by job_id, number")
    tasks = await sql("select * from task")
    attempts = await sql("select * from attempt")
    wrong: list[str] = []
    keys = Counter((job["owner"], job["dedupe_key"]) for job in jobs if job["dedupe_key"] and job["outcome"] is None)
    wrong += [f"dedupe key {key} is held by {count} jobs" for key, count in keys.items() if count > 1]
    stages_of, tasks_of, attempts_of = _by("job_id", stages), _by("job_id", tasks), _by("task_id", attempts)
    for job in jobs:
        faults = _job(job, graphs[job["flow_id"]], stages_of[job["id"]], tasks_of[job["id"]])
        wrong += [f"job {job['id']}: {fault}" for fault in faults]
    for task in tasks:
        wrong += [f"task {task['id']}: {fault}" for fault in _task(task, attempts_of[task["id"]])]
    return wrong


def _by(column: str, rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[row[column]].append(row)
    return found


def _graph(text: Any) -> list[dict[str, Any]]:
    graph = json.loads(text) if isinstance(text, str) else text
    stages = graph["stages"]
    assert isinstance(stages, list)
    return stages


def _job(
    job: dict[str, Any], graph: list[dict[str, Any]], stages: list[dict[str, Any]], tasks: list[dict[str, Any]]
) -> list[str]:
    wrong: list[str] = []
    halted = bool(job["cancel_asked"] or job["failing"])
    state = {stage["name"]: stage["state"] for stage in stages}
    for spec, stage in zip(graph, stages, strict=True):
        own = [task for task in tasks if task["stage"] == stage["number"]]
        wrong += [f"stage {stage['name']}: {fault}" for fault in _stage(spec, stage, own, halted)]
        unmet = [need for need in spec["needs"] if not _satisfies(_spec(graph, need), state[need])]
        opened = stage["state"] not in ("new", "cancelled", "skipped")
        # A retried optional stage runs again behind the back of what had already followed it.
        if opened and job["generation"] == 1 and unmet:
            wrong.append(f"stage {stage['name']} is {stage['state']} before {', '.join(unmet)}")
        if stage["state"] == "new" and stage["waits"] != len(unmet):
            wrong.append(f"stage {stage['name']} waits for {stage['waits']}, in truth for {len(unmet)}")
        if stage["state"] == "new" and not unmet and not halted and not job["waits"]:
            wrong.append(f"stage {stage['name']} was never opened")
    wrong += _status(job, graph, stages)
    if job["started_at"] is None and any(task["state"] == "running" for task in tasks):
        wrong.append("has not begun, and a task of it runs")
    if job["outcome"] is None and halted and not any(task["state"] in ("new", "ready", "running") for task in tasks):
        wrong.append("winds down, has nothing left, and has not ended")
    return wrong


def _spec(graph: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(spec for spec in graph if spec["name"] == name)


def _satisfies(spec: dict[str, Any], state: str) -> bool:
    return state in ("done", "skipped") or (state == "error" and spec["optional"])


def _stage(spec: dict[str, Any], stage: dict[str, Any], tasks: list[dict[str, Any]], halted: bool) -> list[str]:
    wrong: list[str] = []
    count = Counter(task["state"] for task in tasks)
    left = sum(n for state, n in count.items() if state not in FINAL)
    truth = {
        "total": len(tasks),
        "remaining": left,
        "failed": sum(task["state"] == "error" and not task["optional"] for task in tasks),
        "cancelled": count["cancelled"],
    }
    if stage["state"] != "skipped":
        wrong += [f"{name} is {stage[name]}, in truth {n}" for name, n in truth.items() if stage[name] != n]
    if stage["state"] in FINAL and left:
        wrong.append(f"is {stage['state']} with {left} tasks left")
    if stage["state"] == "ready" and not left:
        wrong.append("is ready with nothing left to do")
    if stage["state"] == "new" and set(count) - {"new", "cancelled"}:
        wrong.append(f"has not opened, and has tasks that are {sorted(count)}")
    if [task["position"] for task in sorted(tasks, key=lambda task: task["position"])] != list(range(len(tasks))):
        wrong.append("has gaps between its positions")
    if (stage["state"] in FINAL) != (stage["ended_at"] is not None):
        wrong.append(f"is {stage['state']} and ended at {stage['ended_at']}")
    return wrong


def _status(job: dict[str, Any], graph: list[dict[str, Any]], stages: list[dict[str, Any]]) -> list[str]:
    unfinished = [spec["phase"] for spec, stage in zip(graph, stages, strict=True) if stage["state"] not in FINAL]
    if unfinished:
        expected = min(unfinished, key=PHASES.index)
        if job["phase"] != expected:
            return [f"phase is {job['phase']}, in truth {expected}"]
        if job["status"] not in ("pending", expected):
            return [f"status is {job['status']}, in truth {expected}"]
        return []
    broken = any(stage["state"] == "error" and not spec["optional"] for spec, stage in zip(graph, stages, strict=True))
    expected = "cancelled" if job["cancel_asked"] else "failed" if broken else "completed"
    return [] if job["status"] == expected else [f"status is {job['status']}, in truth {expected}"]


def _task(task: dict[str, Any], attempts: list[dict[str, Any]]) -> list[str]:
    wrong: list[str] = []
    running = task["state"] == "running"
    tokens = sorted(attempt["token"] for attempt in attempts)
    if tokens != list(range(1, task["token"] + (not running))):
        wrong.append(f"token is {task['token']} ({task['state']}), but history has {tokens}")
    if running != (task["lease_until"] is not None) or running != (task["worker"] is not None):
        wrong.append(f"is {task['state']} with lease {task['lease_until']} of worker {task['worker']}")
    if sum(attempt["state"] == "done" for attempt in attempts) != (task["state"] == "done"):
        wrong.append(f"is {task['state']}, but history knows of {[attempt['state'] for attempt in attempts]}")
    if task["parked"] and task["state"] != "ready":
        wrong.append(f"is {task['state']} and parked")
    if task["tries"] > task["max_attempts"]:
        wrong.append(f"was tried {task['tries']} times of {task['max_attempts']}")
    return wrong
