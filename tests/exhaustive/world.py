"""The values of the search: one job, its workers, and how far to look."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from telecine.facts import State, Status
from telecine.graph import StageRow


class Unit(NamedTuple):
    """One task. `left` is what remains of the lease, `wait` what remains of a backoff, in ticks."""

    state: State = State.NEW
    token: int = 0
    tries: int = 0
    losses: int = 0
    releases: int = 0
    left: int | None = None
    wait: int = 0
    request: tuple[int, int] | None = None
    # The lease that ended last: its token and the word that ended it.
    ended: tuple[int, str] = (0, "")
    commits: int = 0


class Worker(NamedTuple):
    """What one worker remembers: how many claims it has sent, and which lease it believes to hold."""

    sent: int = 0
    asking: int = 0
    lease: tuple[int, int] | None = None


class World(NamedTuple):
    units: tuple[Unit, ...]
    stages: tuple[StageRow, ...]
    workers: tuple[Worker, ...]
    # Leases of which some worker has heard: words about them may arrive at any time from then on.
    known: frozenset[tuple[int, int]] = frozenset()
    status: Status = Status.PENDING
    cancel_asked: bool = False
    failing: bool = False
    generation: int = 1


@dataclass(frozen=True)
class Bounds:
    """How far the search goes. A bound that is reached ends a branch, it is no failure."""

    stages: int = 1
    workers: int = 2
    claims: int = 2
    tokens: int = 3
    generations: int = 2
    attempts: int = 2
    cancels: bool = True
