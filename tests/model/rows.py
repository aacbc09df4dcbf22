"""The rows of the model."""

from __future__ import annotations

from dataclasses import dataclass, field

from telecine.facts import State, Status
from telecine.graph import Graph, StageRow

Place = tuple[int, int, int]  # job, stage, position
Lease = tuple[Place, int]  # task, token
FLOWS: dict[str, Graph] = {}


@dataclass
class Work:
    """One task."""

    place: Place
    flow: str
    state: State = State.NEW
    token: int = 0
    tries: int = 0
    losses: int = 0
    releases: int = 0
    ready_at: int | None = None
    rank: int = 0
    parked: bool = False
    worker: int | None = None
    request: str | None = None
    claimed_at: int = 0
    lease_until: int | None = None
    stops_at: int | None = None
    progress: float | None = None
    best: float = 0.0
    kept: set[object] = field(default_factory=set)

    def row(self) -> tuple[object, ...]:
        """What is compared with the database."""
        ready_at = self.ready_at if self.state is State.READY else None
        rank = self.rank if self.state is State.READY else None
        return (
            *(self.place, self.state.value, self.token, self.tries, self.losses, self.releases, ready_at, rank),
            *(self.parked, self.worker, self.lease_until, self.stops_at, self.best),
        )


@dataclass
class Job:
    id: int
    flow: str
    priority: int
    run_at: int | None
    stages: tuple[StageRow, ...] = ()
    status: Status = Status.PENDING
    cancel_asked: bool = False
    failing: bool = False
    warnings: int = 0
    generation: int = 1

    @property
    def graph(self) -> Graph:
        return FLOWS[self.flow]

    @property
    def halted(self) -> bool:
        return self.cancel_asked or self.failing

    def row(self) -> tuple[object, ...]:
        flags = (self.cancel_asked, self.failing, self.warnings, self.generation, self.priority)
        return (self.id, self.status.value, *flags)
