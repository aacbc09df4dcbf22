"""Give work back when its worker has gone quiet.

The database decides who holds a lease. One pass runs every two seconds for the whole fleet: `pulse`
says whose turn it is, but nothing breaks if two run at once, since each expiry is decided again
under the row lock. If nobody has swept for half a lease (the database, the server or the laptop was
away), the pass expires nothing and gives every running lease a fresh term: an outage puts
nobody in quarantine. Workers of this very machine whose process is gone need no waiting at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from telecine.facts import DAY, Expired, Fact, Instant, LeaseOutcome, Millis, Overdue, TaskId
from telecine.store import Ask, Steps
from telecine.world import Machine

BATCH = 200
OFFLINE: Millis = 30_000


@dataclass(frozen=True, slots=True)
class SweepTurn:
    """It is ours to sweep. `grace` when so much time was missed that every lease got a fresh term."""

    now: Instant
    silent: Millis
    grace: bool


def take_turn(period: Millis, lease: Millis) -> Steps[SweepTurn | None]:
    rows = yield Ask("pulse_take", {"period": period})
    if not rows:
        return None
    silent = rows[0]["silent"]
    # Passes come every period or so: only a pause beyond that is an outage. A pulse in the future is a clock that was
    # set back: every lease gets a term by the new time.
    grace = silent < 0 or silent > max(lease // 2, 3 * period)
    if grace:
        yield Ask("grace", {"ttl": lease, "silent": max(0, min(silent, DAY)), "period": period})
    return SweepTurn(rows[0]["now"], silent, grace)


def overdue() -> Steps[list[LeaseOutcome]]:
    """Words about leases and limits that seem to have run out, for `settle` to decide."""
    rows = yield Ask("overdue", {"wanted": BATCH})
    words: list[LeaseOutcome] = []
    for row in rows:
        fact: Fact = Expired() if row["expired"] else Overdue(row["code"])
        words.append(LeaseOutcome(TaskId(row["id"]), row["token"], fact))
    return words


def gone_here(machine: Machine, is_gone: Callable[[int, int], bool]) -> Steps[list[int]]:
    """Workers of this machine whose process provably no longer exists."""
    rows = yield Ask("worker_here", {"boot_id": machine.boot_id, "pid_space": machine.pid_space})
    known = (row for row in rows if row["pid"] is not None and row["pid_started"] is not None)
    return [row["id"] for row in known if is_gone(row["pid"], row["pid_started"])]


def barred() -> Steps[list[int]]:
    """Workers that hold leases although they were disabled or revoked: somebody died while taking them away."""
    rows = yield Ask("worker_barred", {})
    return [row["id"] for row in rows]


def leases_of(workers: Sequence[int], fact: Fact) -> Steps[list[LeaseOutcome]]:
    rows = yield Ask("running_of", {"workers": list(workers)})
    return [LeaseOutcome(TaskId(row["id"]), row["token"], fact) for row in rows]


def end_workers(workers: Sequence[int]) -> Steps[None]:
    yield Ask("worker_end", {"ids": list(workers)})


def end_silent(after: Millis) -> Steps[int]:
    rows = yield Ask("worker_silent", {"after": after})
    return len(rows)


def after_ended(ended: Sequence[int] | None = None) -> Steps[dict[int, list[tuple[int, str]]]]:
    """Jobs that wait for one which has ended (for one of `ended`, if given), and how it ended."""
    if ended is None:
        rows = yield Ask("after_ended", {"wanted": BATCH})
    else:
        rows = yield Ask("after_these", {"ids": list(ended), "wanted": BATCH})
    found: dict[int, list[tuple[int, str]]] = {}
    for row in rows:
        found.setdefault(row["job_id"], []).append((row["after_id"], row["outcome"]))
    return found


def halting() -> Steps[list[int]]:
    """Jobs that wind down but still have tasks waiting: a claim held them when the job was stopped."""
    rows = yield Ask("halting", {"wanted": BATCH})
    return [row["id"] for row in rows]
