"""A flow's graph as data, and what follows when its stages end: pure.

The graph is stored as a row, so that any server can promote, cancel and recover without the user's
module. A job keeps the graph that it was submitted with. `advance` is to stages what
`lifecycle.decide` is to tasks: it sees all stage rows of one job under the job's row lock and says
which stages open, which are skipped, and whether the job has ended.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import NamedTuple

from telecine.errors import BadFlow
from telecine.facts import PHASES, SECOND, Json, Millis, Policy, State, Status

MAX_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """One stage as it is registered. `version` voids checkpoints and parts old workers from new work."""

    name: str
    needs: tuple[str, ...] = ()
    phase: Status = Status.PROCESSING
    version: int = 1
    title: str = ""
    labels: tuple[str, ...] = ()
    cost: Millis = SECOND
    priority_offset: int = 0
    optional: bool = False
    fan_out: bool = False
    weight: float = 1.0
    policy: Policy = field(default_factory=Policy)


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The stages of one flow in an order in which needs come first."""

    flow: str
    version: int
    stages: tuple[StageSpec, ...]
    followers: tuple[tuple[int, ...], ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)
    lanes: tuple[str, ...] = ()

    def lane(self, number: int, extra: Iterable[str] = ()) -> str:
        """Where a task of this stage queues: workers claim only lanes that they can serve."""
        if not extra:
            return self.lanes[number]
        stage = self.stages[number]
        return lane(self.flow, stage.name, stage.version, (*stage.labels, *extra))

    def to_json(self) -> str:
        return json.dumps(
            {"flow": self.flow, "version": self.version, "stages": [asdict(s) for s in self.stages]},
            sort_keys=True,
        )

    def digest(self) -> str:
        return hashlib.sha256(self.to_json().encode()).hexdigest()


def lane(flow: str, stage: str, version: int, labels: Iterable[str] = ()) -> str:
    marks = "".join(f"+{label}" for label in sorted(set(labels)))
    return f"{flow}/{stage}@{version}{marks}"


def is_plain(name: str) -> bool:
    """Names of flows and stages and labels make up lanes: short, printable, without the marks that part them."""
    return 0 < len(name) <= MAX_NAME and name.isprintable() and not set(name) & set("/@+,")


def lane_labels(name: str) -> frozenset[str]:
    """The labels that a worker must have in order to serve this lane."""
    return frozenset(name.split("+")[1:])


def build(flow: str, version: int, stages: Iterable[StageSpec]) -> Graph:
    """Check the stages and order them; a flow that could hang or run backwards is refused."""
    ordered = _in_order(flow, list(stages))
    numbers = {stage.name: number for number, stage in enumerate(ordered)}
    followers = tuple(tuple(n for n, other in enumerate(ordered) if stage.name in other.needs) for stage in ordered)
    lanes = tuple(lane(flow, stage.name, stage.version, stage.labels) for stage in ordered)
    graph = Graph(flow, version, tuple(ordered), followers, numbers, lanes)
    for stage in ordered:
        _check(graph, stage)
    return graph


def from_json(text: str) -> Graph:
    data = json.loads(text)
    stages = [_stage_from(item) for item in data["stages"]]
    return build(data["flow"], data["version"], stages)


def _stage_from(item: dict[str, Json]) -> StageSpec:
    """A row of a newer release may say more than we know: what we do not know does not concern us."""
    policy = _known(Policy, item["policy"]) | {"permanent": tuple(item["policy"]["permanent"])}
    lists = {key: tuple(item[key]) for key in ("needs", "labels")}
    return StageSpec(**_known(StageSpec, item) | lists | {"phase": Status(item["phase"]), "policy": Policy(**policy)})


def _known(kind: type[StageSpec] | type[Policy], item: dict[str, Json]) -> dict[str, Json]:
    return {one.name: item[one.name] for one in fields(kind) if one.name in item}


def _in_order(flow: str, stages: list[StageSpec]) -> list[StageSpec]:
    names = [stage.name for stage in stages]
    if not stages:
        raise BadFlow(f"flow {flow!r} has no stages")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadFlow(f"flow {flow!r} declares stage {twice!r} twice")
    for stage in stages:
        if unknown := next((need for need in stage.needs if need not in names), None):
            raise BadFlow(f"stage {stage.name!r} of flow {flow!r} needs {unknown!r}, which does not exist")
        if again := next((need for need in stage.needs if stage.needs.count(need) > 1), None):
            raise BadFlow(f"stage {stage.name!r} of flow {flow!r} needs {again!r} twice")
    ordered: list[StageSpec] = []
    while len(ordered) < len(stages):
        placed = {stage.name for stage in ordered}
        free = [s for s in stages if s.name not in placed and set(s.needs) <= placed]
        if not free:
            circle = ", ".join(sorted(set(names) - placed))
            raise BadFlow(f"flow {flow!r} has a circle of needs among: {circle}")
        ordered.extend(free)
    return ordered


def _check(graph: Graph, stage: StageSpec) -> None:
    bad = f"stage {stage.name!r} of flow {graph.flow!r}"
    if not all(is_plain(part) for part in (graph.flow, stage.name, *stage.labels)):
        raise BadFlow(f"{bad}: names and labels may not be empty or contain / @ + or ,")
    if stage.phase not in PHASES:
        raise BadFlow(f"{bad} has phase {stage.phase!r}; phases are {', '.join(PHASES)}")
    for need in stage.needs:
        if PHASES.index(graph.stages[graph.numbers[need]].phase) > PHASES.index(stage.phase):
            raise BadFlow(f"{bad} has an earlier phase than {need!r}, which it needs; phases never fall along needs")
    if stage.fan_out and not stage.needs:
        raise BadFlow(f"{bad} fans out but needs no stage that could plan it")
    policy = stage.policy
    if policy.max_attempts < 1 or policy.base < 0 or policy.cap < 0 or not 0 <= policy.jitter <= 1:
        raise BadFlow(f"{bad}: attempts must be at least 1, waits not negative and jitter between 0 and 1")
    if any(limit is not None and limit <= 0 for limit in (policy.stall, policy.limit)) or stage.weight < 0:
        raise BadFlow(f"{bad}: stall and hard limits must be positive, weight not negative")


# -- What follows ----------------------------------------------------------------------------------


class StageRow(NamedTuple):
    """A stage of a job as stored. `waits` counts unmet needs, `remaining` tasks that have not ended."""

    number: int
    state: State
    waits: int
    total: int
    remaining: int
    failed: int = 0
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Advance:
    """What becomes of a job: its stage rows, and the stages whose tasks open or are skipped."""

    stages: tuple[StageRow, ...]
    opened: tuple[int, ...]
    skipped: tuple[int, ...]
    status: Status
    phase: Status


@lru_cache(maxsize=4096)
def advance(
    graph: Graph, rows: tuple[StageRow, ...], *, halted: bool, cancelled: bool, skip: frozenset[int] = frozenset()
) -> Advance:
    """Close what has nothing left to do, open what waited for it, and read the job's status off the stages.

    `rows` are the stage rows after the tasks of this transaction were counted in; `skip` are stages that a
    handler has called needless; a `halted` job (cancelled, or with a required error) opens nothing.
    Jobs of one flow pass through the same few situations, so the answers are remembered.
    """
    now = list(rows)
    for number, was in enumerate(rows):  # needs come first, so one pass is enough
        awaited = any(not now[graph.numbers[need]].state.is_final for need in graph.stages[number].needs)
        row = now[number] = _next(now[number], needless=number in skip, halted=halted, awaited=awaited)
        if not was.state.is_final and satisfies(graph.stages[number], row.state):
            for follower in graph.followers[number]:
                now[follower] = now[follower]._replace(waits=now[follower].waits - 1)
    became = [(row.number, row.state) for row, was in zip(now, rows, strict=True) if row.state is not was.state]
    phase = job_phase(graph, now)
    return Advance(
        stages=tuple(now),
        opened=tuple(n for n, state in became if state is State.READY),
        skipped=tuple(n for n, state in became if state is State.SKIPPED),
        status=job_status(graph, now, phase, cancelled),
        phase=phase,
    )


def _next(row: StageRow, *, needless: bool, halted: bool, awaited: bool) -> StageRow:
    """One stage, given what its needs have become; `awaited` while one of them has not ended."""
    if row.state is State.NEW:
        if needless or (row.waits == 0 and row.total == 0 and not halted):
            return row._replace(state=State.SKIPPED, remaining=0)
        if halted:
            # While something before it runs, it may still be planned: a person's retry must find that plan.
            return row if row.remaining or awaited else row._replace(state=State.CANCELLED)
        if row.waits == 0:
            return row._replace(state=State.READY)
    if row.state is State.READY and row.remaining == 0:
        return row._replace(state=_closed(row))
    return row


def _closed(row: StageRow) -> State:
    if row.failed:
        return State.ERROR
    return State.CANCELLED if row.cancelled else State.DONE


def satisfies(stage: StageSpec, state: State) -> bool:
    return state in (State.DONE, State.SKIPPED) or (state is State.ERROR and stage.optional)


def job_phase(graph: Graph, rows: Iterable[StageRow]) -> Status:
    """The lowest phase among unfinished stages; the last one once all have ended."""
    open_phases = [PHASES.index(graph.stages[row.number].phase) for row in rows if not row.state.is_final]
    return PHASES[min(open_phases)] if open_phases else PHASES[-1]


def job_status(graph: Graph, rows: Sequence[StageRow], phase: Status, cancelled: bool) -> Status:
    if any(not row.state.is_final for row in rows):
        return phase
    if cancelled:
        return Status.CANCELLED
    broken = any(row.state is State.ERROR and not graph.stages[row.number].optional for row in rows)
    return Status.FAILED if broken else Status.COMPLETED
