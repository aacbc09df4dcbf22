"""Hand out leases, and tell a handler what it needs to know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.errors import BadSpec
from telecine.facts import Brief, Json, KeptArtifact, Lease, Millis, WorkerId
from telecine.graph import Graph
from telecine.json_text import loads
from telecine.store import Ask, Row, Rows, Steps


class ClaimHints(Protocol):
    """Somebody who may know where to look first. Believed in nothing: what is hinted at is claimed like any task."""

    async def take(self, lanes: Sequence[str], wanted: int) -> list[int]:
        """Ids of tasks, the most urgent first; at once or not at all, and never an error."""

    def judge(self, hinted: Sequence[int], granted: Sequence[tuple[str, int]], wanted: int) -> None:
        """What a claim of `wanted` tasks got in the end: lane and id of each."""


@dataclass(frozen=True, slots=True)
class ClaimQuery:
    """A worker asks for up to `wanted` tasks of its lanes. A repeated `request` gets the same leases.

    `hinted`: tasks to look at first; None without hints.
    """

    worker: WorkerId
    request: str
    lanes: Mapping[str, str]  # lane -> flow
    wanted: int
    ttl: Millis
    hinted: Sequence[int] | None = None


def claim(ask: ClaimQuery) -> Steps[Rows]:
    """One statement; rows of jobs that wind down come back with `halted`."""
    params = {"worker": ask.worker, "request": ask.request, **_lanes(ask.lanes), "wanted": ask.wanted, "ttl": ask.ttl}
    rows: Rows
    if ask.hinted is not None:
        rows = yield Ask("claim_hinted", {**params, "hinted": list(ask.hinted)}, whole=True)
    else:
        rows = yield Ask("claim", params, whole=True)
    return rows


def _lanes(lanes: Mapping[str, str]) -> dict[str, list[str]]:
    """As the statements want them. A lane is of the flow that it begins with: another one would get past its pause."""
    for lane, flow in lanes.items():
        if not lane.startswith(f"{flow}/"):
            raise BadSpec(f"lane {lane!r} is not of flow {flow!r}: name the flow that the lane begins with")
    return {"lanes": list(lanes), "flows": list(lanes.values())}


class Overlooked(NamedTuple):
    """What a claim that got nothing may have missed: leases of its first asking; work that is due, or stands there."""

    rows: Rows
    due: bool
    standing: bool


def overlooked(ask: ClaimQuery) -> Steps[Overlooked]:
    rows = yield Ask("overlooked", {"worker": ask.worker, "request": ask.request, **_lanes(ask.lanes)})
    leases = [row for row in rows if row["id"] is not None]
    return Overlooked(leases, bool(rows[0]["due"]), bool(rows[0]["standing"]))


async def hinted(hints: ClaimHints, ask: ClaimQuery) -> ClaimQuery:
    """The same claim, with ids to look at first."""
    return replace(ask, hinted=await hints.take(list(ask.lanes), ask.wanted))


def judge(hints: ClaimHints, ask: ClaimQuery, rows: Rows) -> None:
    hints.judge(ask.hinted or (), [(row["lane"], row["id"]) for row in rows], ask.wanted)


def unpark(wanted: int = 1_000) -> Steps[frozenset[str]]:
    """Make due tasks claimable; the lanes that got some."""
    rows = yield Ask("unpark", {"wanted": wanted}, whole=True)
    return frozenset(row["lane"] for row in rows)


def glance(lanes: Mapping[str, str]) -> Steps[bool]:
    """Would a claim of these lanes find something? What is parked and due counts, whosever it is."""
    rows = yield Ask("glance", _lanes(lanes), whole=True)
    return bool(rows[0]["found"])


def lease_of(row: Row, worker: WorkerId, graph: Graph) -> Lease:
    stage = graph.stages[row["stage"]]
    kind, given = row["subject_kind"], row["input"]
    subject = None if kind is None else (kind, row["subject_id"])
    # By place, in the order of the fields: by name it would take four times as long, and there is one for every task.
    return Lease(
        row["id"],
        row["token"],
        worker,
        row["lease_until"],
        row["job_id"],
        graph.flow,
        stage.name,
        stage.version,
        row["position"],
        row["tries"],
        row["max_attempts"],
        loads(row["spec"]),
        None if given is None else loads(given),
        row["owner"],
        subject,
        bool(stage.needs) or subject is not None or bool(row["kept"]),
        row["limit_ms"],
    )


def _maybe(text: str | None) -> Json:
    return None if text is None else loads(text)


def brief(lease: Lease, graph_cache: GraphCache, flow_id: int | None = None) -> Steps[Brief]:
    """Results of the stages that this one needs, what is kept for the task, the subject's facts."""
    jobs = yield Ask("job_flow", {"id": lease.job_id})
    graph = (yield from graph_cache.fetch([jobs[0]["flow_id"]]))[jobs[0]["flow_id"]]
    stage = graph.stages[graph.numbers[lease.stage]]
    numbers = [graph.numbers[need] for need in stage.needs]
    rows = yield Ask("brief", {"job_id": lease.job_id, "stages": numbers})
    kept = yield Ask("kept_of", {"task_id": lease.task_id, "stage_version": stage.version})
    facts: dict[str, Json] = {}
    if lease.subject is not None:
        found = yield Ask("subject_get", {"kind": lease.subject[0], "id": lease.subject[1]})
        facts = loads(found[0]["facts"]) if found else {}
    return Brief(
        results=_results(graph, rows),
        kept={row["name"]: kept_of(row) for row in kept},
        facts=facts,
        retried=kept[0]["retried"] if kept else 0,
    )


def _results(graph: Graph, rows: Rows) -> dict[str, Json]:
    """One result for a plain stage, a list in position order for one that fanned out."""
    found: dict[str, Json] = {}
    for row in rows:
        result = _maybe(row["result"])
        if graph.stages[row["number"]].fan_out:
            found.setdefault(row["name"], []).append(result)
        else:
            found[row["name"]] = result
    return found


def kept_of(row: Row) -> KeptArtifact:
    return KeptArtifact(
        name=row["name"],
        token=row["token"],
        value=_maybe(row["value"]),
        key=row["key"],
        size=row["size"],
        sha256=row["sha256"],
        facts=_maybe(row["facts"]) or {},
    )
