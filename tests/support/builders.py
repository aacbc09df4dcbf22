"""Builders: a valid value of each kind, of which a test shows only what matters to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from telecine import Flow
from telecine.facts import LEASE, Policy, State, Task, TaskId
from telecine.graph import Graph, StageSpec, build

NOW = 1_700_000_000_000
"""The moment at which the tests begin; time then moves by assignment."""


V = TypeVar("V")


class Loaded:
    """Dice that always fall the same way: 0.5 is the middle, so there is no jitter."""

    def __init__(self, value: float = 0.5) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


def a_task(**changes: Any) -> Task:
    """A task in its first attempt, whose lease has just been granted."""
    plain = {"id": TaskId(1), "state": State.RUNNING, "token": 1, "tries": 1, "lease_until": NOW + LEASE}
    return Task(**{**plain, **changes})


def but(value: V, **changes: Any) -> V:
    """The same value with some fields changed, be it a dataclass or a named tuple."""
    return value._replace(**changes) if hasattr(value, "_replace") else replace(value, **changes)


def a_policy(**changes: Any) -> Policy:
    return Policy(**changes)


def a_graph(*stages: StageSpec, flow: str = "film") -> Graph:
    return build(flow, 1, stages)


def a_stage(name: str = "cut", needs: str | Sequence[str] = (), **changes: Any) -> StageSpec:
    """`needs` may be one string of names: a_stage("join", "cut score")."""
    return StageSpec(name=name, needs=tuple(needs.split() if isinstance(needs, str) else needs), **changes)


async def nothing(bench: object) -> None:
    """A handler for flows whose work is done by the test itself."""


def a_flow(*stages: StageSpec | str, name: str = "film") -> Flow:
    """A flow of these stages (bare names: one after the other) with handlers that do nothing."""
    flow = Flow(name)
    before: tuple[str, ...] = ()
    for stage in stages or ("cut",):
        if isinstance(stage, str):
            flow.stage(stage, needs=before)(nothing)
            before = (stage,)
        else:
            flow.handlers[stage.name] = nothing
            flow.runs[stage.name] = "process"
            flow._stages.append(stage)
    return flow
