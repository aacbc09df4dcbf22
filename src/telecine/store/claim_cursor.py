"""Where the last claim of a set of lanes ended, so that the next one need not start at the beginning.

PostgreSQL keeps the index entry of a claimed task until a vacuum removes it, and no vacuum can while an old
transaction is open (a backup, a forgotten session). Every claim walks past all of these entries: after a hundred
thousand that is most of its work. So after 10,000 tasks in a row a claim starts where the last one ended:

    ×××××××××××××××××××××××××××××××|○○○○○○○○○○○○
    claimed, not yet vacuumed       ▲ cursor

Ten times a second a claim starts at the beginning all the same. A more urgent or returned task may therefore wait up to
100 ms plus one claim. A claim that finds less than it wants behind the cursor also takes from before it. When a claim
from the beginning finds tasks, the others continue from there, so that one such claim is enough for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from telecine.store import Ask, Rows

MIN_TAKEN = 10_000  # before that, walking past them costs less than another plan
RESTART_SECONDS = 0.1
MAX_WALKS = 1_000


class _Walk(NamedTuple):
    taken: int
    started_at: float  # when a claim last started at the beginning
    last: tuple[int, int]  # rank and id


class ClaimCursor:
    """One walk for each set of lanes. The steps it sees are `claim`; it may send `claim_after` instead."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._walks: dict[tuple[str, ...], _Walk] = {}

    def position(self, lanes: tuple[str, ...]) -> tuple[int, int] | None:
        """Rank and id after which to continue; None: start at the beginning."""
        walk = self._walks.get(lanes)
        if walk is None or walk.taken < MIN_TAKEN or self._clock() - walk.started_at > RESTART_SECONDS:
            return None
        return walk.last

    def apply(self, claim: Ask) -> Ask:
        """The statement to send for this claim."""
        after = self.position(tuple(claim.params["lanes"]))
        if after is None:
            return claim
        return replace(claim, name="claim_after", params={**claim.params, "after_rank": after[0], "after_id": after[1]})

    def advance(self, sent: Ask, rows: Rows) -> None:
        """After a claim. A full one has taken all up to its last task; one that is not full has reached the end.

        If its transaction is rolled back after all, its tasks wait for the next claim from the beginning.
        """
        lanes = tuple(sent.params["lanes"])
        before = self._walks.pop(lanes, None)
        if not rows or len(rows) < sent.params["wanted"] or rows[0]["halted"]:
            return
        first, last = ((row["rank"], row["id"]) for row in (rows[0], rows[-1]))
        if sent.name == "claim":
            walk = _Walk(before.taken if before is not None else 0, self._clock(), last)
        else:
            after = (sent.params["after_rank"], sent.params["after_id"])
            if before is None or first <= after:
                return  # this claim, or one meanwhile, had to look before the cursor, and may have left tasks there
            # A claim meanwhile found tasks at the beginning: continue from there.
            walk = before if before.last < after else before._replace(last=last)
        if len(self._walks) >= MAX_WALKS:
            del self._walks[next(iter(self._walks))]  # its last claim is the longest ago
        self._walks[lanes] = walk._replace(taken=walk.taken + len(rows))
