"""Every rule about one task, as a sentence. `decide` is pure, so each is a call and a look at its answer."""

from typing import Any

import pytest

from telecine.facts import LEASE, Done, Expired, Fact, Failed, Overdue, Released, State, Task
from telecine.lifecycle import After, OutcomeRefused, decide
from tests.support.builders import NOW, Loaded, a_policy, a_task

WORKER_FACTS = [Done(), Failed("no"), Failed("never", permanent=True), Released()]
RECOVERY_FACTS = [Expired(), Overdue("stalled"), Overdue("timed_out")]
ALL_FACTS = [*WORKER_FACTS, *RECOVERY_FACTS, Expired(gone=True)]


def name(fact: object) -> str:
    return repr(fact) if isinstance(fact, Fact) else str(fact)


def hear(task: Task, fact: Fact, *, token: int | None = None, now: int = NOW, **policy: Any) -> After | OutcomeRefused:
    given = task.token if token is None else token
    return decide(task, fact, given, policy=a_policy(**policy), now=now, dice=Loaded())


def heard(task: Task, fact: Fact, **how: Any) -> After:
    after = hear(task, fact, **how)
    assert isinstance(after, After), after
    return after


# -- The fence (contract 3) ------------------------------------------------------------------------


@pytest.mark.parametrize("fact", ALL_FACTS, ids=name)
@pytest.mark.parametrize("token", [0, 1, 3])
def test_a_word_under_any_token_but_the_current_one_is_refused(fact: Fact, token: int) -> None:
    task = a_task(token=2, lease_until=NOW - 1 if isinstance(fact, Expired) else NOW + 1, stops_at=NOW)

    assert hear(task, fact, token=token) == OutcomeRefused("lease_lost")


@pytest.mark.parametrize("fact", ALL_FACTS, ids=name)
@pytest.mark.parametrize("state", [state for state in State if state is not State.RUNNING])
def test_only_a_running_task_is_moved_by_a_word(fact: Fact, state: State) -> None:
    task = a_task(state=state, lease_until=None, stops_at=NOW)

    assert hear(task, fact) == OutcomeRefused("lease_lost")


@pytest.mark.parametrize("fact", WORKER_FACTS, ids=name)
def test_a_worker_is_heard_until_its_lease_ends_and_not_at_its_end(fact: Fact) -> None:
    task = a_task(lease_until=NOW + LEASE)

    assert isinstance(hear(task, fact, now=NOW + LEASE - 1), After)
    assert hear(task, fact, now=NOW + LEASE) == OutcomeRefused("lease_expired")


def test_recovery_is_heard_from_the_end_of_the_lease_and_not_before() -> None:
    task = a_task(lease_until=NOW + LEASE)

    assert hear(task, Expired(), now=NOW + LEASE - 1) == OutcomeRefused("still_held")
    assert isinstance(hear(task, Expired(), now=NOW + LEASE), After)


def test_a_worker_that_is_provably_gone_loses_its_lease_at_once() -> None:
    assert heard(a_task(), Expired(gone=True)).outcome == "lost"


def test_a_limit_ends_the_attempt_only_once_it_is_reached() -> None:
    task = a_task(stops_at=NOW + 5)

    assert hear(task, Overdue("stalled"), now=NOW + 4) == OutcomeRefused("still_held")
    assert isinstance(hear(task, Overdue("stalled"), now=NOW + 5), After)


def test_a_task_without_limits_is_never_overdue() -> None:
    assert hear(a_task(stops_at=None), Overdue("stalled"), now=NOW + 10**9) == OutcomeRefused("still_held")


def test_a_running_task_without_a_lease_counts_as_expired() -> None:
    assert hear(a_task(lease_until=None), Done()) == OutcomeRefused("lease_expired")
    assert isinstance(hear(a_task(lease_until=None), Expired()), After)


# -- Who may change what (contract 6), and cancel (contract 8) -------------------------------------


def test_done_ends_the_task() -> None:
    assert heard(a_task(tries=2, losses=1), Done()) == After(State.DONE, "done", tries=2, losses=1, releases=0)


def test_done_is_refused_once_the_job_was_cancelled() -> None:
    assert hear(a_task(cancel_asked=True), Done()) == OutcomeRefused("job_cancelled")


def test_done_under_cancel_after_the_lease_is_refused_as_expired() -> None:
    assert hear(a_task(cancel_asked=True), Done(), now=NOW + LEASE) == OutcomeRefused("lease_expired")


def test_done_counts_although_a_required_sibling_has_failed() -> None:
    assert heard(a_task(failing=True), Done()).state is State.DONE


@pytest.mark.parametrize("fact", [Failed("no"), Failed("no", permanent=True), Released()], ids=name)
def test_whatever_else_a_worker_says_under_cancel_the_task_is_cancelled(fact: Fact) -> None:
    assert heard(a_task(cancel_asked=True, tries=3), fact).state is State.CANCELLED


def test_a_lost_lease_and_a_limit_under_cancel_end_the_task_as_cancelled() -> None:
    task = a_task(cancel_asked=True, losses=2, tries=3, stops_at=NOW)

    assert heard(task, Expired(), now=NOW + LEASE).state is State.CANCELLED
    assert heard(task, Overdue("stalled")).state is State.CANCELLED


@pytest.mark.parametrize("fact", [Failed("no"), Released(), Expired(gone=True), Overdue("timed_out")], ids=name)
def test_nothing_of_a_failing_job_becomes_ready_again(fact: Fact) -> None:
    assert heard(a_task(failing=True, stops_at=NOW), fact).state is State.CANCELLED


def test_an_error_for_good_stays_an_error_in_a_failing_job() -> None:
    assert heard(a_task(failing=True), Failed("never", permanent=True)).state is State.ERROR


# -- Attempts (contract 9) -------------------------------------------------------------------------


def test_a_failure_is_tried_again_later_and_keeps_its_try() -> None:
    after = heard(a_task(tries=1), Failed("no", code="disk"))

    assert after == After(State.READY, "failed", 1, 0, 0, ready_at=NOW + 10_000, error=("disk", "no"))


def test_waits_double() -> None:
    waits = [heard(a_task(tries=n, max_attempts=9), Failed("no")).ready_at for n in (1, 2, 3)]

    assert waits == [NOW + 10_000, NOW + 20_000, NOW + 40_000]


def test_the_last_attempt_that_fails_is_an_error() -> None:
    after = heard(a_task(tries=3, max_attempts=3), Failed("no"))

    assert (after.state, after.tries, after.ready_at) == (State.ERROR, 3, None)


def test_a_permanent_failure_is_never_tried_again() -> None:
    assert heard(a_task(tries=1), Failed("never", permanent=True)).state is State.ERROR


def test_a_code_that_the_stage_calls_permanent_is_never_tried_again() -> None:
    assert heard(a_task(tries=1), Failed("cut", code="truncated"), permanent=("truncated",)).state is State.ERROR


@pytest.mark.parametrize("code", ["stalled", "timed_out"])
def test_a_limit_costs_a_try_and_is_named_in_history(code: str) -> None:
    after = heard(a_task(tries=1, stops_at=NOW), Overdue(code))

    assert (after.state, after.outcome, after.tries) == (State.READY, code, 1)
    assert after.error is not None
    assert after.error[0] == code


def test_a_limit_in_the_last_attempt_is_an_error() -> None:
    assert heard(a_task(tries=3, stops_at=NOW), Overdue("stalled")).state is State.ERROR


def test_a_failure_ends_a_row_of_losses() -> None:
    assert heard(a_task(losses=2), Failed("no")).losses == 0


def test_a_lost_lease_gives_the_try_back_and_is_ready_at_once() -> None:
    after = heard(a_task(tries=2), Expired(), now=NOW + LEASE)

    assert after == After(State.READY, "lost", tries=1, losses=1, releases=0, ready_at=NOW + LEASE)


def test_a_lost_lease_in_the_last_attempt_is_no_error() -> None:
    assert heard(a_task(tries=3, max_attempts=3), Expired(gone=True)).state is State.READY


def test_the_third_loss_in_a_row_is_quarantine() -> None:
    second = heard(a_task(losses=1), Expired(gone=True))
    third = heard(a_task(losses=2), Expired(gone=True))

    assert second.state is State.READY
    assert (third.state, third.losses) == (State.ERROR, 3)
    assert third.error is not None
    assert third.error[0] == "quarantined"


def test_a_release_gives_the_try_back_ends_a_row_of_losses_and_is_ready_at_once() -> None:
    after = heard(a_task(tries=3, max_attempts=3, losses=2), Released("drain"))

    assert after == After(State.READY, "released", tries=2, losses=0, releases=1, ready_at=NOW)


def test_the_twentieth_release_gives_the_try_back_and_the_next_does_not() -> None:
    assert heard(a_task(tries=1, releases=19), Released()).tries == 0
    assert heard(a_task(tries=1, releases=20), Released()).tries == 1


def test_releases_without_refund_end_with_the_attempts() -> None:
    after = heard(a_task(tries=3, max_attempts=3, releases=20), Released("drain"))

    assert after.state is State.ERROR
    assert after.error == ("released_too_often", "given back 21 times; last: drain")
