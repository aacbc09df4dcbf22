"""Settle: what a word does once, twice, too late, and under cancel."""

import json

import pytest

from telecine.engine import Submission
from telecine.facts import (
    ERROR_CHARS,
    LEASE,
    SECOND,
    Done,
    Expired,
    Fact,
    Failed,
    Lease,
    LeaseOutcome,
    Released,
    SettleReply,
    State,
)
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

LONE = a_flow("cut")
LINE = a_flow("cut", "join")
FLOWS = pytest.mark.parametrize("flow", [LONE, LINE], ids=["a job of one task", "a job of two tasks"])


def a_word(lease: Lease, fact: Fact | None = None, token: int | None = None) -> LeaseOutcome:
    return LeaseOutcome(lease.task_id, lease.token if token is None else token, Done() if fact is None else fact)


async def leases(bed: Bed, count: int, flow=LINE) -> list[Lease]:  # type: ignore[no-untyped-def]
    await bed.enact(flow)
    await bed.engine.jobs.submit_many([Submission(flow="film")] * count)
    return await bed.claim(count)


def refused(answer: SettleReply) -> str | None:
    return None if answer.accepted else answer.code


@FLOWS
async def test_done_commits_once_with_its_history_and_its_event(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)
    bed.pass_time(3 * SECOND)

    answer = await bed.done(lease, result={"frames": 24})

    assert answer == SettleReply(lease.task_id, 1, True, "done", State.DONE)
    task = await bed.task(lease.task_id)
    assert (task["state"], task["worker"], task["lease_until"], task["ended_at"]) == ("done", None, None, bed.now)
    [attempt] = await bed.attempts(lease.task_id)
    assert (attempt["token"], attempt["try"], attempt["outcome"], attempt["state"]) == (1, 1, "done", "done")
    assert (attempt["worker"], attempt["started_at"], attempt["ended_at"]) == (bed.worker, bed.now - 3_000, bed.now)
    assert "task.done" in await bed.events(lease.job_id)
    await bed.audited()


@FLOWS
async def test_a_failure_is_stored_with_its_reason_and_the_time_of_the_next_attempt(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)

    answer = await bed.fail(lease, "disk full", code="disk")

    assert (answer.accepted, answer.state, answer.ready_at) == (True, State.READY, bed.now + 10 * SECOND)
    task = await bed.task(lease.task_id)
    assert (task["state"], bool(task["parked"]), task["ready_at"]) == ("ready", True, answer.ready_at)
    assert "disk full" in str(task["error"])
    [attempt] = await bed.attempts(lease.task_id)
    assert (attempt["outcome"], attempt["ready_at"]) == ("failed", answer.ready_at)
    assert (await bed.events(lease.job_id))[-1] == "task.retrying"
    await bed.audited()


async def test_a_retry_waits_for_its_time_and_has_the_next_token(bed: Bed) -> None:
    [lease] = await leases(bed, 1)
    await bed.fail(lease)

    bed.pass_time(10 * SECOND - 1)
    early = await bed.claim()
    bed.pass_time(1)
    again = await bed.take()

    assert early == []
    assert (again.task_id, again.token, again.attempt) == (lease.task_id, 2, 2)


async def test_attempts_end_in_error_and_the_job_says_which(bed: Bed) -> None:
    [lease] = await leases(bed, 1, LONE)
    for _ in range(2):
        await bed.fail(lease, "no")
        bed.pass_time(60 * SECOND)
        lease = await bed.take()

    answer = await bed.fail(lease, "x" * (ERROR_CHARS + 10), code="bad")

    job = await bed.job(lease.job_id)
    assert (answer.state, job["status"], job["ended_at"]) == (State.ERROR, "failed", bed.now)
    error = (await bed.engine.queries.job(lease.job_id)).error
    assert error == {"code": "bad", "message": "x" * ERROR_CHARS, "stage": "cut", "attempt": 3}
    assert (await bed.events(lease.job_id))[-2:] == ["task.error", "job.failed"]
    await bed.audited()


# -- The fence -------------------------------------------------------------------------------------


@FLOWS
@pytest.mark.parametrize("fact", [Done(), Failed("no"), Failed("no", permanent=True), Released()], ids=repr)
async def test_a_late_worker_changes_nothing(bed: Bed, flow, fact: Fact) -> None:  # type: ignore[no-untyped-def]
    [late] = await leases(bed, 1, flow)
    await bed.lose(late)
    current = await bed.take()

    answer = await bed.say(late, fact)

    assert refused(answer) == "lease_lost"
    assert (await bed.task(late.task_id))["token"] == current.token == 2
    assert (await bed.done(current)).accepted
    await bed.audited()


@FLOWS
async def test_a_late_worker_changes_nothing_that_others_have_taken_meanwhile(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [late] = await leases(bed, 1, flow)
    other, bob = await bed.another_engine(), await bed.enlist("bob")
    bed.pass_time(LEASE)
    await other.settle([LeaseOutcome(late.task_id, 1, Expired())])
    [current] = await other.claim(bob, "r", bed.lanes, 1)

    answer = await bed.done(late)

    task = await bed.task(late.task_id)
    assert refused(answer) == "lease_lost"
    assert (task["state"], task["token"], task["worker"]) == ("running", 2, bob)
    [accepted] = await other.settle([LeaseOutcome(current.task_id, 2, Done())])
    assert accepted.accepted
    await bed.audited()


@FLOWS
async def test_a_worker_is_heard_until_the_end_of_its_lease_and_not_at_its_end(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    first, second = await leases(bed, 2, flow)

    bed.pass_time(LEASE - 1)
    in_time = await bed.done(first)
    bed.pass_time(1)
    late = await bed.done(second)

    assert (refused(in_time), refused(late)) == (None, "lease_expired")
    assert (await bed.task(second.task_id))["state"] == "running"


@FLOWS
async def test_a_word_about_an_unknown_task_or_a_future_token_is_refused(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)

    answers = await bed.engine.settle([LeaseOutcome(10**9, 1, Done()), a_word(lease, token=2), a_word(lease, token=0)])

    assert [refused(answer) for answer in answers] == ["lease_lost"] * 3
    assert (await bed.task(lease.task_id))["state"] == "running"


# -- Repeats ---------------------------------------------------------------------------------------


@FLOWS
@pytest.mark.parametrize("fact", [Done(result=1), Failed("no"), Failed("no", permanent=True), Released()], ids=repr)
async def test_a_repeated_word_gets_the_same_answer_also_after_expiry(bed: Bed, flow, fact: Fact) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)
    first = await bed.say(lease, fact)
    rows = await bed.count("attempt"), await bed.count("event")

    bed.pass_time(LEASE * 3)
    again = await bed.say(lease, fact)

    assert (again.accepted, again.code, again.state, again.ready_at) == (True, first.code, first.state, first.ready_at)
    assert (first.repeated, again.repeated) == (False, True)
    assert (await bed.count("attempt"), await bed.count("event")) == rows
    await bed.audited()


@FLOWS
async def test_a_repeated_word_is_answered_although_the_next_attempt_runs(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)
    await bed.release(lease)
    await bed.take()

    assert (await bed.release(lease)).repeated


@FLOWS
async def test_another_word_under_the_same_token_is_refused(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    done, released = await leases(bed, 2, flow)
    await bed.done(done, result=1)
    await bed.release(released)

    answers = [
        await bed.done(done, result=2),
        await bed.fail(done),
        await bed.release(done),
        await bed.done(released),
    ]

    assert [refused(answer) for answer in answers] == ["lease_lost"] * 4
    assert (await bed.task(done.task_id))["state"] == "done"
    assert (await bed.task(released.task_id))["state"] == "ready"


async def test_the_digest_of_a_word_is_that_of_all_it_says(bed: Bed) -> None:
    some = await leases(bed, 6)
    said = [
        Done(result=1),
        Done(facts={"a": 1}),
        Done(publish=True),
        Done(stop=True),
        Done(skip=("join",)),
        Failed("a"),
    ]
    other = [Done(result=2), Done(facts={"a": 2}), Done(), Done(stop=True, result=0), Done(), Failed("a", code="b")]
    await bed.engine.settle([a_word(lease, fact) for lease, fact in zip(some, said, strict=True)])

    same = await bed.engine.settle([a_word(lease, fact) for lease, fact in zip(some, said, strict=True)])
    differs = await bed.engine.settle([a_word(lease, fact) for lease, fact in zip(some, other, strict=True)])

    assert [answer.accepted for answer in same] == [True] * 6
    assert [answer.accepted for answer in differs] == [False] * 6


# -- Cancel ----------------------------------------------------------------------------------------


@FLOWS
async def test_done_under_cancel_is_refused_and_the_release_ends_the_job(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)
    await bed.engine.jobs.cancel(lease.job_id)

    answer = await bed.done(lease)
    released = await bed.release(lease)

    assert refused(answer) == "job_cancelled"
    assert released.state is State.CANCELLED
    assert await bed.status(lease.job_id) == "cancelled"
    await bed.audited()


@FLOWS
async def test_done_before_the_cancel_stays_done(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)
    first = await bed.done(lease)
    if flow is LINE:
        await bed.engine.jobs.cancel(lease.job_id)

    assert first.accepted
    assert (await bed.done(lease)).repeated
    assert (await bed.states(lease.job_id))[0] == "done"


async def test_a_plan_that_cannot_be_followed_fails_for_good(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("join", "cut")))
    await bed.engine.jobs.submit_many([Submission(flow="film")] * 4)
    wrong = [Done(plan={"join": [1]}), Done(plan={"opera": [1]}), Done(skip=("plan",)), Done(plan={"plan": []})]

    answers = await bed.engine.settle(
        [a_word(lease, fact) for lease, fact in zip(await bed.claim(4), wrong, strict=True)]
    )

    assert [answer.state for answer in answers] == [State.ERROR] * 4
    assert {"bad_plan"} == {
        (await bed.engine.queries.job(job["id"])).error["code"] for job in await bed.sql("select id from job")
    }
    await bed.audited()


@FLOWS
async def test_results_of_one_batch_go_each_to_its_own_task(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    some = await leases(bed, 4, flow)
    results = [0, None, False, {"say": 'a "word", then'}]

    answers = await bed.engine.settle(
        [a_word(lease, Done(result=result)) for lease, result in zip(reversed(some), results, strict=True)]
    )

    assert [answer.task_id for answer in answers] == [lease.task_id for lease in reversed(some)]
    stored = [(await bed.task(lease.task_id))["result"] for lease in reversed(some)]
    assert [None if text is None else json.loads(text) for text in stored] == results
    await bed.audited()


@FLOWS
async def test_a_cancelled_job_in_a_batch_harms_no_other(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    some = await leases(bed, 3, flow)
    await bed.engine.jobs.cancel(some[1].job_id)

    answers = await bed.engine.settle([a_word(lease) for lease in some])

    assert [refused(answer) for answer in answers] == [None, "job_cancelled", None]
    await bed.audited()


async def test_jobs_of_several_flows_are_settled_in_one_call(bed: Bed) -> None:
    await bed.enact(a_flow("cut"), a_flow("sing", name="opera"), a_flow("plan", "act", name="play"))
    jobs = [await bed.submit(flow) for flow in ("film", "opera", "film", "play")]
    some = await bed.claim(4)

    answers = await bed.engine.settle([a_word(lease) for lease in some])

    assert [answer.accepted for answer in answers] == [True] * 4
    assert [(await bed.job(job_id))["outcome"] for job_id in jobs] == ["completed", "completed", "completed", None]
    await bed.audited()
