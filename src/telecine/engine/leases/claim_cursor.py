"""Where the last claim of some lanes ended, so that the next one need not begin at the beginning.

PostgreSQL keeps the index entry of a claimed task until a vacuum takes it, and no vacuum can while some old
transaction is open (a backup, a forgotten session). Every claim walks past all of them: after a hundred thousand that
is most of what it does. So whoever has taken very many tasks in one go begins where the last claim ended,

    ×××××××××××××××××××××××××××××××|○○○○○○○○○○○○
    claimed, and not cleared away   ▲ from here on

and looks from the beginning ten times a second all the same: so long, and as long as a claim takes, may something wait
that is more urgent, or came back. A claim that finds less than it wants looks there in any case. Whoever looked and
found some there is followed by the others, so that one look is enough for many.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from telecine.engine.leases.claim import Claim
from telecine.store import Rows

MANY = 10_000  # tasks taken in one go; before that, a walk past them costs less than another plan
LOOK_AGAIN_S = 0.1
MOST_WALKS = 1_000


class _Walk(NamedTuple):
    taken: int
    looked_at: float  # when somebody last began at the beginning
    last: tuple[int, int]  # rank and id


class Bookmarks:
    """One for each set of lanes that somebody claims."""

    def __init__(self, mono: Callable[[], float]) -> None:
        self._mono = mono
        self._walks: dict[tuple[str, ...], _Walk] = {}

    def find(self, lanes: Mapping[str, str]) -> tuple[int, int] | None:
        """Where to go on; None: at the beginning."""
        walk = self._walks.get(tuple(lanes))
        if walk is None or walk.taken < MANY or self._mono() - walk.looked_at > LOOK_AGAIN_S:
            return None
        return walk.last

    def put(self, ask: Claim, rows: Rows) -> None:
        """After a claim. All up to the last of a full one are taken; one that was not full had come to the end."""
        lanes = tuple(ask.lanes)
        before = self._walks.pop(lanes, None)
        if not rows or len(rows) < ask.wanted or rows[0]["halted"]:
            return
        first, last = ((row["rank"], row["id"]) for row in (rows[0], rows[-1]))
        if ask.after is None:
            walk = _Walk(before.taken if before is not None else 0, self._mono(), last)
        elif before is None or first <= ask.after:
            return  # somebody had to look at what is before, and may have left some
        elif before.last < ask.after:
            walk = before  # somebody looked meanwhile, and found some: there the next one goes on
        else:
            walk = before._replace(last=last)
        if len(self._walks) >= MOST_WALKS:
            del self._walks[next(iter(self._walks))]  # whose last claim is the longest ago
        self._walks[lanes] = walk._replace(taken=walk.taken + len(rows))
