"""Every history of a small job keeps the invariants; and a rule that is taken away is missed within a few steps."""

from typing import Any

import pytest

from telecine.facts import Done, Expired, Fact, Failed, Released, State, Task
from telecine.lifecycle import After, OutcomeRefused, decide
from tests.exhaustive import NOW, Bounds, Broken, Decide, Machine, search
from tests.support.builders import but

SEARCHES = {
    "two workers, three leases, cancel, a person's retry": Bounds(workers=2, claims=1, tokens=3, generations=2),
    "a chain of two tasks": Bounds(stages=2, workers=2, claims=1, tokens=2, generations=2),
}


@pytest.mark.parametrize("bounds", SEARCHES.values(), ids=SEARCHES)
def test_no_history_breaks_an_invariant_and_every_job_can_end(bounds: Bounds) -> None:
    found = search(Machine(bounds))

    assert found.worlds > 10_000
    assert found.stuck == 0


def without_token(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    return decide(task, fact, task.token, **how)


def without_lease_end(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    late = isinstance(fact, Expired) or task.lease_until is None
    return decide(task if late else but(task, lease_until=NOW + 1), fact, token, **how)


def without_patience(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    return decide(task, Expired(gone=True) if isinstance(fact, Expired) else fact, token, **how)


def without_cancel(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    return decide(but(task, cancel_asked=False) if isinstance(fact, Done) else task, fact, token, **how)


def without_state(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    ended = task.state.is_final and task.token > 0
    revived = but(task, state=State.RUNNING, lease_until=NOW + 1) if ended else task
    return decide(revived, fact, token, **how)


def without_permanence(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    return decide(task, but(fact, permanent=False) if isinstance(fact, Failed) else fact, token, **how)


def without_quarantine(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    verdict = decide(but(task, losses=0), fact, token, **how)
    return but(verdict, losses=task.losses + verdict.losses) if isinstance(verdict, After) else verdict


def without_halt(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    return decide(but(task, cancel_asked=False) if isinstance(fact, Released) else task, fact, token, **how)


def without_mercy(task: Task, fact: Fact, token: int, **how: Any) -> After | OutcomeRefused:
    """Refuses a holder in the last moment of its lease."""
    if task.lease_until is None or not isinstance(fact, Done | Failed | Released):
        return decide(task, fact, token, **how)
    return decide(but(task, lease_until=task.lease_until - 1), fact, token, **how)


@pytest.mark.parametrize(
    ("rules", "sentence"),
    [
        (without_token, "the last one granted is"),
        (without_lease_end, "at the wrong time"),
        (without_patience, "at the wrong time"),
        (without_cancel, "after a cancel"),
        (without_state, "moved a task that is"),
        (without_permanence, "a permanent error of token 1 was retried"),
        (without_quarantine, "three losses and no quarantine"),
        (without_halt, "gave new work to a halted job"),
        (without_mercy, "the lawful holder's, was refused"),
    ],
)
def test_a_rule_that_is_taken_away_is_missed(rules: Decide, sentence: str) -> None:
    with pytest.raises(Broken, match=sentence):
        search(Machine(SEARCHES["two workers, three leases, cancel, a person's retry"], rules))


def test_a_counterexample_is_told_as_the_shortest_history() -> None:
    with pytest.raises(Broken) as caught:
        search(Machine(Bounds(workers=1, claims=1, tokens=2), without_cancel))

    assert str(caught.value).splitlines() == [
        "",
        "  worker 0 asks",
        "  claim 1 of worker 0 arrives: (0, 1)",
        "  somebody cancels",
        "  then: done of token 1 after a cancel [S13]",
    ]
