"""A flow's graph as data, and what follows when its stages end: pure.

The graph is stored as a row, so that any server can promote, cancel and recover without the user's
module. A job keeps the graph that it was submitted with. `advance` is to stages what
`lifecycle.decide` is to tasks: it sees all stage rows of one job under the job's row lock and says
which stages open, which are skipped, and whether the job has ended.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace

from telecine.errors import BadFlow
from telecine.facts import PHASES, SECOND, Json, Millis, Policy, State, Status


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


@dataclass(frozen=True, slots=True)
class Graph:
    """The stages of one flow in an order in which needs come first."""

    flow: str
    version: int
    stages: tuple[StageSpec, ...]
    followers: tuple[tuple[int, ...], ...] = ()
    numbers: dict[str, int] = field(default_factory=dict)

    def lane(self, number: int, extra: Iterable[str] = ()) -> str:
        """Where a task of this stage queues: workers claim only lanes that they can serve."""
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


def lane_labels(name: str) -> frozenset[str]:
    """The labels that a worker must have in order to serve this lane."""
    return frozenset(name.split("+")[1:])


def build(flow: str, version: int, stages: Iterable[StageSpec]) -> Graph:
    """Check the stages and order them; a flow that could hang or run backwards is refused."""
    ordered = _in_order(flow, list(stages))
    numbers = {stage.name: number for number, stage in enumerate(ordered)}
    followers = tuple(tuple(n for n, other in enumerate(ordered) if stage.name in other.needs) for stage in ordered)
    graph = Graph(flow, version, tuple(ordered), followers, numbers)
    for stage in ordered:
        _check(graph, stage)
    return graph


def from_json(text: str) -> Graph:
    data = json.loads(text)
    stages = [_stage_from(item) for item in data["stages"]]
    return build(data["flow"], data["version"], stages)


def _stage_from(item: dict[str, Json]) -> StageSpec:
    policy = Policy(**{**item["policy"], "permanent": tuple(item["policy"]["permanent"])})
    lists = {key: tuple(item[key]) for key in ("needs", "labels")}
    return StageSpec(**{**item, **lists, "phase": Status(item["phase"]), "policy": policy})


def _in_order(flow: str, stages: list[StageSpec]) -> list[StageSpec]:
    names = [stage.name for stage in stages]
    if not stages:
        raise BadFlow(f"flow {flow!r} has no stages")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadFlow(f"flow {flow!r} declares stage {twice!r} twice")
    for stage in stages:
        if unknown := next((need for need in stage.needs if need not in names), None):
            raise BadFlow(f"stage {stage.name!r} of flow {flow!r} needs {unknown!r}, which does not exist")
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
    if any(mark in part for part in (graph.flow, stage.name, *stage.labels) for mark in "/@+,\n") or not stage.name:
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


@dataclass(frozen=True, slots=True)
class StageRow:
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
    """What becomes of a job: stage rows that changed, stages whose tasks open or are skipped."""

    stages: tuple[StageRow, ...]
    opened: tuple[int, ...]
    skipped: tuple[int, ...]
    status: Status
    phase: Status


def advance(  # the whole rule in one place, like `decide`
    graph: Graph,
    rows: Mapping[int, StageRow],
    *,
    halted: bool,
    cancelled: bool,
    skip: frozenset[int] = frozenset(),
) -> Advance:
    """Close what has nothing left to do, open what waited for it, and read the job's status off the stages.

    `rows` are the stage rows after the tasks of this transaction were counted in; `skip` are stages
    that a handler has called needless; a `halted` job (cancelled, or with a required error) opens nothing.
    """
    now = dict(rows)
    opened: list[int] = []
    skipped: list[int] = []
    for number in range(len(graph.stages)):  # needs come first, so one pass is enough
        row = now[number]
        if row.state is State.NEW and (number in skip or (row.waits == 0 and row.total == 0 and not halted)):
            row = replace(row, state=State.SKIPPED, remaining=0)
            skipped.append(number)
        elif row.state is State.NEW and halted and row.remaining == 0:
            row = replace(row, state=State.CANCELLED)
        elif row.state is State.NEW and row.waits == 0 and not halted:
            row = replace(row, state=State.READY)
            opened.append(number)
        if row.state is State.READY and row.remaining == 0:
            row = replace(row, state=_closed(row))
        was = rows[number].state
        now[number] = row
        if not was.is_final and _satisfies(graph.stages[number], row.state):
            for follower in graph.followers[number]:
                now[follower] = replace(now[follower], waits=now[follower].waits - 1)
    changed = tuple(row for number, row in now.items() if row != rows[number])
    phase = job_phase(graph, now)
    return Advance(changed, tuple(opened), tuple(skipped), _status(graph, now, phase, cancelled), phase)


def _closed(row: StageRow) -> State:
    if row.failed:
        return State.ERROR
    return State.CANCELLED if row.cancelled else State.DONE


def _satisfies(stage: StageSpec, state: State) -> bool:
    return state in (State.DONE, State.SKIPPED) or (state is State.ERROR and stage.optional)


def job_phase(graph: Graph, rows: Mapping[int, StageRow]) -> Status:
    """The lowest phase among unfinished stages; the last one once all have ended."""
    open_phases = [PHASES.index(graph.stages[n].phase) for n, row in rows.items() if not row.state.is_final]
    return PHASES[min(open_phases)] if open_phases else PHASES[-1]


def _status(graph: Graph, rows: Mapping[int, StageRow], phase: Status, cancelled: bool) -> Status:
    if any(not row.state.is_final for row in rows.values()):
        return phase
    if cancelled:
        return Status.CANCELLED
    broken = any(r.state is State.ERROR and not graph.stages[n].optional for n, r in rows.items())
    return Status.FAILED if broken else Status.COMPLETED
