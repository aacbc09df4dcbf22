"""Count what has ever happened, once, for the whole fleet.

Every fact of a job is an event already. Whoever's turn it is reads the events that nobody has counted, and writes
the sums together with the number of the last one, in one transaction: so nothing is counted twice or left out,
however many servers there are and whenever one dies. Retention may then delete jobs and events; the counts stay.

    events ─── after `seq` ──▶ read ──▶ is it still that `seq`? ──▶ value + n, `seq` moved ──▶ commit

Times are kept as buckets that do not overlap, by their number in `BOUNDS`, and a sum in milliseconds.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator

from telecine.engine.events.stream import Stream
from telecine.facts import Millis
from telecine.json_text import dumps
from telecine.store import Ask, Row, Rows, Steps, Store, Write
from telecine.world import World

AT_ONCE = 2_000
IDENTITY_BITS = 62

# Upper bounds in seconds; one more bucket takes what is above.
BOUNDS: dict[str, tuple[float, ...]] = {
    "job_seconds": (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 2_048, 8_192, 32_768),
    "task_seconds": (0.05, 0.25, 1, 2, 5, 10, 20, 40, 60, 120, 300, 600, 1_800, 7_200),
}

Count = tuple[str, tuple[str, ...], int]


class EventCounters:
    """The counters of one database."""

    def __init__(self, store: Store, events: Stream, world: World) -> None:
        self._store, self._events, self._world = store, events, world
        self._is_founded = False

    async def count(self, heard: Callable[[Row], None] | None = None, *, wanted: int = AT_ONCE) -> int:
        """One pass: how many events were counted. Less than `wanted`: there are no more, or somebody else counts.

        `heard` is told each of them, after the commit: once in the whole fleet, or never if we die before.
        """
        await self._found()
        await self._events.number()
        # Looked at before the transaction, so that on SQLite, where one writes at a time, nobody waits for it.
        seq, rows = await self._store.read(lambda: looking(wanted))
        if not rows or not await self._store.run(lambda: adding(seq, rows)):
            return 0
        if heard is not None:
            for row in rows:
                heard(row)
        return len(rows)

    async def identity(self) -> int:
        """A number that no other database has."""
        await self._found()

        def steps() -> Steps[Rows]:
            rows: Rows = yield Ask("tally_identity", {})
            return rows

        [row] = await self._store.read(steps)
        return int(row["value"])

    async def _found(self) -> None:
        if self._is_founded:
            return
        identity = int(self._world.new_id(), 16) % (1 << IDENTITY_BITS)

        def steps() -> Steps[None]:
            yield Ask("tally_found", {"identity": identity}, whole=True)

        await self._store.run(steps)
        self._is_founded = True


def looking(wanted: int) -> Steps[tuple[int, Rows]]:
    """Up to where was counted, and what comes next."""
    [state] = yield Ask("tally_state", {})
    seq = max(state["seq"], state["pruned"])
    rows: Rows = yield Ask("tally_look", {"seq": seq, "wanted": wanted})
    return seq, rows


def adding(seq: int, rows: Rows) -> Steps[bool]:
    """Add them up, unless somebody else has counted since."""
    held = yield Ask("tally_hold", {})
    if not held or max(held[0]["seq"], held[0]["pruned"]) != seq:
        return False
    sums: Counter[tuple[str, str]] = Counter()
    for row in rows:
        for name, labels, value in counted(row):
            sums[name, dumps(list(labels))] += value
    counts = [{"name": name, "labels": labels, "value": value} for (name, labels), value in sorted(sums.items())]
    if counts:
        yield Write("tally_add", {"counts": counts})
    yield Ask("tally_move", {"seq": rows[-1]["seq"]})
    return True


def counted(row: Row) -> Iterator[Count]:
    """What one event adds to which counters."""
    kind: str = row["kind"]
    subject, _, what = kind.partition(".")
    flow = row["flow"] or "unknown"
    if kind == "job.created":
        yield "jobs_created", (flow,), 1
    elif kind == "job.retried":
        yield "jobs_retried", (flow,), 1
    elif subject == "job" and what in ("completed", "failed", "cancelled"):
        yield "jobs_completed", (flow, what), 1
        if row["job_started"] is not None:
            yield from _timed("job_seconds", (flow, what), row["at"] - row["job_started"])
    elif subject == "task" and row["outcome"] is not None and what != "started":
        yield from _attempt(row, flow, what)
    elif kind == "worker.registered":
        yield "workers_registered", (), 1
    elif kind == "audit.finding":
        yield "audit_findings", (), 1


def _attempt(row: Row, flow: str, what: str) -> Iterator[Count]:
    stage, outcome = row["stage"] or "unknown", row["outcome"]
    yield "attempts", (flow, stage, outcome), 1
    if what == "done" and row["started_at"] is not None:
        yield from _timed("task_seconds", (flow, stage), row["ended_at"] - row["started_at"])
    if what == "retrying":
        yield "retries", (flow, stage), 1
    if outcome == "lost":
        yield "recoveries", (flow,), 1
    if what == "error":
        told = json.loads(row["data"] or "{}")
        if told.get("code") == "quarantined":
            yield "quarantines", (flow,), 1
        elif told.get("attempt", 0) >= told.get("of", 0):
            yield "retries_exhausted", (flow, stage), 1


def _timed(name: str, labels: tuple[str, ...], ms: Millis) -> Iterator[Count]:
    ms = max(0, ms)
    yield name, (*labels, str(bisect_left(BOUNDS[name], ms / 1000))), 1
    yield f"{name}_sum", labels, ms
