"""What holds for every task and every fact, whatever the history."""

import random

from hypothesis import given
from hypothesis import strategies as st

from telecine.facts import LEASE, Done, Expired, Fact, Failed, Overdue, Policy, Released, State, Task, TaskId
from telecine.lifecycle import QUARANTINE_AFTER, REFUNDS, After, OutcomeRefused, decide
from telecine.retry import backoff
from tests.support.builders import NOW, Loaded, but

facts = st.one_of(
    st.just(Done()),
    st.builds(Failed, st.text(max_size=5), st.sampled_from(["failed", "disk"]), st.booleans()),
    st.builds(Released, st.text(max_size=5)),
    st.builds(Expired, st.booleans()),
    st.builds(Overdue, st.sampled_from(["stalled", "timed_out"])),
)
moments = st.integers(NOW - LEASE, NOW + 2 * LEASE)
policies = st.builds(
    Policy,
    base=st.integers(0, 10**6),
    cap=st.integers(0, 10**7),
    jitter=st.floats(0, 1),
    permanent=st.sampled_from([(), ("disk",)]),
)


@st.composite
def tasks(draw: st.DrawFn) -> Task:
    """Any task that the database could hold: `running` is the state with a lease and at least one try."""
    state = draw(st.sampled_from(State))
    running = state is State.RUNNING
    most = draw(st.integers(1, 5))
    return Task(
        id=TaskId(1),
        state=state,
        token=draw(st.integers(1, 5)),
        tries=draw(st.integers(1 if running else 0, most)),
        losses=draw(st.integers(0, QUARANTINE_AFTER - 1)),
        releases=draw(st.integers(0, REFUNDS + 1)),
        max_attempts=most,
        lease_until=draw(moments) if running else None,
        stops_at=draw(st.none() | moments) if running else None,
        cancel_asked=draw(st.booleans()),
        failing=draw(st.booleans()),
    )


def after(task: Task, fact: Fact, token: int, now: int, policy: Policy) -> After | OutcomeRefused:
    return decide(task, fact, token, policy=policy, now=now, dice=random.Random(7))


@given(tasks(), facts, st.integers(0, 6), moments, policies)
def test_a_task_that_does_not_run_never_moves(task: Task, fact: Fact, token: int, now: int, policy: Policy) -> None:
    verdict = after(task, fact, token, now, policy)

    assert isinstance(verdict, OutcomeRefused) or (task.state is State.RUNNING and task.token == token)


@given(tasks(), facts, moments, policies)
def test_counters_stay_in_their_bounds(task: Task, fact: Fact, now: int, policy: Policy) -> None:
    verdict = after(task, fact, task.token, now, policy)

    if isinstance(verdict, After):
        assert 0 <= verdict.tries <= task.max_attempts
        assert verdict.tries in (task.tries, task.tries - 1)
        assert 0 <= verdict.losses <= QUARANTINE_AFTER
        assert verdict.releases in (task.releases, task.releases + 1)


@given(tasks(), facts, moments, policies)
def test_a_task_ends_or_is_ready_at_a_stated_time(task: Task, fact: Fact, now: int, policy: Policy) -> None:
    verdict = after(task, fact, task.token, now, policy)

    if isinstance(verdict, After):
        assert verdict.state.is_final or verdict.state is State.READY
        assert (verdict.state is State.READY) == (verdict.ready_at is not None)
        assert verdict.ready_at is None or verdict.ready_at >= now


@given(tasks(), facts, moments, policies)
def test_a_halted_job_gets_no_new_work(task: Task, fact: Fact, now: int, policy: Policy) -> None:
    verdict = after(task, fact, task.token, now, policy)

    if isinstance(verdict, After) and (task.cancel_asked or task.failing):
        assert verdict.state.is_final
        assert not (task.cancel_asked and verdict.state is State.DONE)


@given(tasks(), st.sampled_from([Done(), Failed("no"), Released()]), moments, policies)
def test_of_the_worker_and_the_sweep_exactly_one_is_heard(task: Task, word: Fact, now: int, policy: Policy) -> None:
    running = but(task, state=State.RUNNING, tries=max(1, task.tries), cancel_asked=False)

    worker = after(running, word, running.token, now, policy)
    sweep = after(running, Expired(), running.token, now, policy)

    assert isinstance(worker, After) != isinstance(sweep, After)


@given(policies, st.integers(-3, 100), st.floats(0, 1, exclude_max=True))
def test_waits_stay_within_the_cap_and_its_jitter(policy: Policy, tries: int, rolled: float) -> None:
    wait = backoff(policy, tries, Loaded(rolled))

    plain = min(policy.cap, policy.base * 2 ** max(0, min(tries - 1, 60)))
    assert plain * (1 - policy.jitter) - 1 <= wait <= plain * (1 + policy.jitter) + 1
    assert wait >= 0
