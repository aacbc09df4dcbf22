"""Visit every history of a small job, shortest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from tests.exhaustive.invariants import Broken, checked
from tests.exhaustive.machine import Machine
from tests.exhaustive.world import World


@dataclass(frozen=True)
class Found:
    """What a search saw. `stuck` are worlds from which no history leads to the job's end."""

    worlds: int
    steps: int
    stuck: int


def search(machine: Machine, most: int = 10_000_000) -> Found:
    """Visit every world; raises `Broken` with the shortest history that leads to a broken invariant."""
    start = machine.start()
    came: dict[World, tuple[World, str] | None] = {start: None}
    backwards: dict[World, list[World]] = {}
    queue = deque([start])
    steps = 0
    while queue and len(came) < most:
        world = queue.popleft()
        try:
            for label, after in machine.steps(world):
                steps += 1
                if after == world:
                    continue
                checked(world, after)
                backwards.setdefault(after, []).append(world)
                if after not in came:
                    came[after] = (world, label)
                    queue.append(after)
        except Broken as broken:
            raise Broken("\n  ".join(["", *history(came, world), f"then: {broken}"])) from None
    return Found(len(came), steps, _stuck(machine, list(came), backwards))


def _stuck(machine: Machine, worlds: Iterable[World], backwards: dict[World, list[World]]) -> int:
    """Count the worlds from which the end cannot be reached, though no bound of the search is in the way."""
    bounded = [w for w in worlds if any(u.token == machine.bounds.tokens for u in w.units)]
    spent = [w for w in worlds if all(worker.sent == machine.bounds.claims for worker in w.workers)]
    fine = {w for w in worlds if w.status.is_final} | set(bounded) | set(spent)
    queue = deque(fine)
    while queue:
        for before in backwards.get(queue.popleft(), ()):
            if before not in fine:
                fine.add(before)
                queue.append(before)
    return sum(w not in fine for w in worlds)


def history(came: dict[World, tuple[World, str] | None], world: World) -> list[str]:
    lines: list[str] = []
    step = came[world]
    while step is not None:
        lines.append(step[1])
        step = came[step[0]]
    return lines[::-1]
