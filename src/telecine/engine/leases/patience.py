"""Tasks with limited patience: which lanes hold some, which of these are served, which jobs go on without them.

Patience is the time that a ready task waits while nothing can take it. It does not count while a live, active worker
serves the task's lane, while a task of that lane runs, or while the flow is paused. `lane_seen` holds when the sweep
last saw one of these, so that patience starts to count when the last worker drains, leaves or falls silent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from telecine.engine.leases.recovery import BATCH, OFFLINE
from telecine.store import Ask, Steps


def patient_lanes() -> Steps[dict[str, bool]]:
    """The lanes in which patient tasks are ready, and whether each is served (or its flow paused) now."""
    rows = yield Ask("patient_lanes", {"within": OFFLINE})
    return {row["lane"]: bool(row["served"]) for row in rows}


def note_served(served: Collection[str], waiting: Collection[str]) -> Steps[None]:
    """Start the patience of every task in these lanes again."""
    yield Ask("lane_seen", {"served": sorted(served), "waiting": sorted(waiting)})


def untaken(lanes: Collection[str]) -> Steps[list[int]]:
    """Jobs with tasks in these lanes whose patience has ended."""
    rows = yield Ask("untaken", {"lanes": sorted(lanes), "wanted": BATCH})
    return [row["job_id"] for row in rows]


def unserved(lanes: Mapping[str, bool]) -> frozenset[str]:
    return frozenset(lane for lane, is_served in lanes.items() if not is_served)
