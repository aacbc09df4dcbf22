"""Batches of words in any mixture, and releases."""

import pytest

from telecine.engine import Submission
from telecine.facts import Done, Fact, Failed, Lease, LeaseOutcome, Released, SettleReply, State
from tests.support.builders import a_flow
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


# -- Batches ---------------------------------------------------------------------------------------


@FLOWS
async def test_a_batch_may_say_anything_and_answers_come_in_its_order(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    done, failed, broken, released, late = await leases(bed, 5, flow)
    await bed.lose(late)
    for lease in (done, failed, broken, released):
        await bed.sql(f"update task set state='running' where id = {lease.task_id} and state = 'running'")
    again = await bed.claim(5)
    fresh = {lease.task_id: lease for lease in again}
    done, failed, broken, released = (fresh.get(x.task_id, x) for x in (done, failed, broken, released))

    answers = await bed.engine.settle(
        [
            a_word(released, Released()),
            a_word(late),
            a_word(broken, Failed("no", permanent=True)),
            a_word(done),
            a_word(failed, Failed("no")),
        ]
    )

    assert [answer.task_id for answer in answers] == [x.task_id for x in (released, late, broken, done, failed)]
    assert [answer.state for answer in answers] == [State.READY, None, State.ERROR, State.DONE, State.READY]
    await bed.audited()


@FLOWS
async def test_a_word_that_comes_twice_in_a_batch_counts_once(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)

    answers = await bed.engine.settle([a_word(lease)] * 3)

    assert [(answer.accepted, answer.state) for answer in answers] == [(True, State.DONE)] * 3
    assert await bed.count("attempt") == 1
    await bed.audited()


@FLOWS
async def test_of_two_words_under_one_token_in_a_batch_the_first_counts(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [lease] = await leases(bed, 1, flow)

    answers = await bed.engine.settle([a_word(lease), a_word(lease, Failed("no")), a_word(lease, Done(result=1))])

    assert [answer.accepted for answer in answers] == [True, False, False]
    assert (await bed.task(lease.task_id))["state"] == "done"


@FLOWS
async def test_an_old_and_the_current_token_in_one_batch_get_their_own_answers(bed: Bed, flow) -> None:  # type: ignore[no-untyped-def]
    [old] = await leases(bed, 1, flow)
    await bed.release(old)
    new = await bed.take()

    answers = await bed.engine.settle([a_word(old), a_word(new), a_word(old, Released())])

    assert [(answer.token, refused(answer)) for answer in answers] == [(1, "lease_lost"), (2, None), (1, None)]


async def test_an_empty_batch_is_fine(bed: Bed) -> None:
    assert await bed.engine.settle([]) == []


async def test_a_hundred_jobs_settle_in_one_batch(bed: Bed) -> None:
    some = await leases(bed, 100)

    answers = await bed.engine.settle([a_word(lease) for lease in reversed(some)])

    assert all(answer.accepted for answer in answers)
    assert await bed.count("task", "state = 'ready'") == 100
    await bed.audited()


async def test_what_one_word_cannot_store_does_not_hold_up_the_others(bed: Bed) -> None:
    good, bad = await leases(bed, 2)
    await bed.sql(f"update {bed.table('stage')} set remaining = 0 where job_id = {bad.job_id} and number = 0")

    with pytest.raises(Exception, match=r"(?i)check"):
        await bed.engine.settle([a_word(bad), a_word(good)])

    assert (await bed.task(good.task_id))["state"] == "done"
    assert (await bed.task(bad.task_id))["state"] == "running"


# -- Release ---------------------------------------------------------------------------------------


async def test_a_release_gives_the_try_back_and_leaves_the_token(bed: Bed) -> None:
    [lease] = await leases(bed, 1)

    [answer] = await bed.engine.release([(lease.task_id, lease.token)], "drain")

    task = await bed.task(lease.task_id)
    assert (answer.code, answer.state, answer.ready_at) == ("released", State.READY, bed.now)
    assert (task["tries"], task["token"], task["releases"], bool(task["parked"])) == (0, 1, 1, False)
    assert (await bed.events(lease.job_id))[-1] == "task.released"
    await bed.audited()


async def test_twenty_releases_are_free_and_then_attempts_run_out(bed: Bed) -> None:
    [lease] = await leases(bed, 1)
    tries = []
    for _ in range(23):
        await bed.release(lease)
        task = await bed.task(lease.task_id)
        tries.append(task["tries"])
        if task["state"] == "error":
            break
        lease = await bed.take()

    assert tries == [*[0] * 20, 1, 2, 3]
    assert (task["state"], lease.token) == ("error", 23)
    assert "released_too_often" in str(task["error"])
    await bed.audited()


async def test_release_then_a_resent_settle(bed: Bed) -> None:
    [lease] = await leases(bed, 1)
    await bed.release(lease)

    late = await bed.done(lease)
    current = await bed.take()

    assert refused(late) == "lease_lost"
    assert (await bed.done(current)).accepted
