"""What happens to a task: the whole state machine, pure.

            submit / needs met            claim (token + 1, tries + 1)
      new ────────────────────▶ ready ────────────────────────────────▶ running
       │                        ▲   │                                   │ │ │ │
       │                        │   │        Failed, tries left (later) │ │ │ │
       │                        ├───┼───────────────────────────────────┘ │ │ │
       │                        │   │   Expired (try given back), Released│ │ │
       │                        └───┼─────────────────────────────────────┘ │ │
       │ cancel                     │ cancel                           Done │ │ Failed for good,
       ▼                            ▼                                       ▼ ▼ quarantined
    cancelled                   cancelled                                done  error

`decide` is the only place that knows these rules. It sees a task as it is under its row lock and a
fact that somebody reports, and says how the task is afterwards, or why the fact is refused. It
reads no clock, writes nothing and cannot fail.

The fence: a fact counts only for the current token of a running task. A worker's fact counts only
while its lease lasts; recovery's counts only once it does not. So of a late worker and the
sweep exactly one is heard, whatever the order in which they come.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from telecine.facts import (
    Done,
    Expired,
    Fact,
    Failed,
    Instant,
    Overdue,
    Policy,
    Released,
    State,
    Task,
)
from telecine.retry import Dice, backoff

QUARANTINE_AFTER = 3
REFUNDS = 20


class After(NamedTuple):
    """The task as it is after the fact. `outcome` is what the attempt's history row says."""

    state: State
    outcome: str
    tries: int
    losses: int
    releases: int
    ready_at: Instant | None = None
    error: tuple[str, str] | None = None


class OutcomeRefused(NamedTuple):
    """The fact was not heard; `code` is what the caller is told."""

    code: str


def decide(task: Task, fact: Fact, token: int, *, policy: Policy, now: Instant, dice: Dice) -> After | OutcomeRefused:
    """Say how `task` is after `fact`, reported under `token` at `now`."""
    refusal = _unheard(task, fact, token, now)
    if refusal is not None:
        return refusal

    match fact:
        case Done():
            return _after(task, State.DONE, "done")
        case Failed() if task.cancel_asked:
            return _after(task, State.CANCELLED, "cancelled", error=("cancelled", fact.message))
        case Failed():
            return _failed(task, fact, policy, now, dice)
        case Overdue():
            message = "no progress within the stall limit" if fact.code == "stalled" else "hard time limit reached"
            return _failed(task, Failed(message, code=fact.code), policy, now, dice)
        case Expired():
            return _lost(task, now)
        case Released():
            return _released(task, fact, now)
        case _ as never:
            assert_never(never)


def _unheard(task: Task, fact: Fact, token: int, now: Instant) -> OutcomeRefused | None:
    if task.state is not State.RUNNING or task.token != token:
        return OutcomeRefused("lease_lost")
    expired = task.lease_until is None or now >= task.lease_until
    match fact:
        case Expired(gone=gone):
            return None if expired or gone else OutcomeRefused("still_held")
        case Overdue():
            overdue = task.stops_at is not None and now >= task.stops_at
            return None if overdue else OutcomeRefused("still_held")
        case Done() if task.cancel_asked and not expired:
            return OutcomeRefused("job_cancelled")
        case _:
            return OutcomeRefused("lease_expired") if expired else None


def _failed(task: Task, fact: Failed, policy: Policy, now: Instant, dice: Dice) -> After:
    error = (fact.code, fact.message)
    if task.cancel_asked:
        return _after(task, State.CANCELLED, "cancelled", error=error)
    outcome = fact.code if fact.code in ("stalled", "timed_out") else "failed"
    if fact.permanent or fact.code in policy.permanent or task.tries >= task.max_attempts:
        return _after(task, State.ERROR, outcome, error=error)
    if task.failing:
        return _after(task, State.CANCELLED, outcome, error=error)
    # The worker lived to tell: whatever losses came before, they were not in a row.
    ready_at = now + backoff(policy, task.tries, dice)
    return _after(task, State.READY, outcome, losses=0, ready_at=ready_at, error=error)


def _lost(task: Task, now: Instant) -> After:
    if task.cancel_asked or task.failing:
        return _after(task, State.CANCELLED, "lost", losses=task.losses + 1)
    if task.losses + 1 >= QUARANTINE_AFTER:
        error = ("quarantined", f"lost its worker {QUARANTINE_AFTER} times in a row without new progress")
        return _after(task, State.ERROR, "lost", tries=task.tries - 1, losses=task.losses + 1, error=error)
    # The worker vanished; the work itself was not shown to be bad: give the try back.
    return _after(task, State.READY, "lost", tries=task.tries - 1, losses=task.losses + 1, ready_at=now)


def _released(task: Task, fact: Released, now: Instant) -> After:
    releases = task.releases + 1
    if task.cancel_asked or task.failing:
        return _after(task, State.CANCELLED, "released", releases=releases)
    if task.releases < REFUNDS:
        return _after(task, State.READY, "released", tries=task.tries - 1, losses=0, releases=releases, ready_at=now)
    if task.tries >= task.max_attempts:
        error = ("released_too_often", f"given back {releases} times; last: {fact.reason}")
        return _after(task, State.ERROR, "released", releases=releases, error=error)
    return _after(task, State.READY, "released", losses=0, releases=releases, ready_at=now)


def _after(  # one keyword per column that a fact may move
    task: Task,
    state: State,
    outcome: str,
    *,
    tries: int | None = None,
    losses: int | None = None,
    releases: int | None = None,
    ready_at: Instant | None = None,
    error: tuple[str, str] | None = None,
) -> After:
    return After(
        state=state,
        outcome=outcome,
        tries=task.tries if tries is None else tries,
        losses=task.losses if losses is None else losses,
        releases=task.releases if releases is None else releases,
        ready_at=ready_at,
        error=error,
    )
