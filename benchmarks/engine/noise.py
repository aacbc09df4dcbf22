"""How much of the machine others used meanwhile, so that a figure can be doubted fairly."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PROC = Path("/proc")


class Noise:
    """Cores that processes outside of this run kept busy since this was made.

    Ours are the trees below the given processes; the time of a child that is gone is in its
    parent's account, so every tick is counted once. Without /proc there is no answer.
    """

    def __init__(self, roots: Sequence[int]) -> None:
        self._roots = frozenset(roots)
        self._begun = self._reading()

    def cores(self) -> float | None:
        now, then = self._reading(), self._begun
        if now is None or then is None:
            return None
        others = (now[1] - now[2]) - (then[1] - then[2])
        return max(0.0, others / _TICKS_PER_S / (now[0] - then[0]))

    def _reading(self) -> tuple[float, float, float] | None:
        if not (_PROC / "stat").exists():
            return None
        return time.monotonic(), _busy_ticks(), _tree_ticks(self._roots)


def _busy_ticks() -> float:
    user, nice, system, _idle, _waiting, irq, softirq, *_ = map(
        int, (_PROC / "stat").read_text().splitlines()[0].split()[1:]
    )
    return user + nice + system + irq + softirq


def _tree_ticks(roots: frozenset[int]) -> float:
    parents: dict[int, int] = {}
    ticks: dict[int, float] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # The name may hold spaces and parentheses; what follows its last one does not.
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(fields[1])
        ticks[int(entry.name)] = sum(map(int, fields[11:15]))
    return sum(spent for pid, spent in ticks.items() if _stems_from(pid, roots, parents))


def _stems_from(pid: int, roots: frozenset[int], parents: dict[int, int]) -> bool:
    while pid:
        if pid in roots:
            return True
        pid = parents.get(pid, 0)
    return False
