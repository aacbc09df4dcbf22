"""The ten edge cases of workers over HTTP: each rule is a test, with workers that have nothing but a key."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from telecine.api import create_app
from telecine.errors import LeaseLost, WorkerGone
from telecine.facts import LEASE, SECOND, Done, Failed, KeptArtifact, Lease, LeaseOutcome, Mode, Piece
from telecine.wiring.server import open_house
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, LANES, Hand, a_hand, holding, of
from tests.support.builders import NOW, a_flow, a_stage

FAN = a_flow(a_stage("cut"), a_stage("join", "cut", fan_out=True))


@asynccontextmanager
async def a_job(front: Front) -> AsyncIterator[int]:
    """A job of two stages, in a time that moves by assignment."""
    front.bed.store.now = NOW
    await front.parts.engine.jobs.register(FLOW)
    yield (await front.parts.engine.jobs.submit("film")).job_id
    await front.bed.audited()


async def done(hand: Hand, lease: Lease) -> bool:
    [answer] = await hand.words.settle([LeaseOutcome(lease.task_id, lease.token, Done())])
    return answer.accepted


async def test_rule_1_no_task_is_claimed_twice(front: Front) -> None:
    async with a_job(front):
        hands = [await a_hand(front, f"w{number}") for number in range(5)]

        claims = await asyncio.gather(*(hand.words.claim(hand.worker, "request-1", LANES, 1) for hand in hands))

    assert sorted(len(claim) for claim in claims) == [0, 0, 0, 0, 1]


async def test_rule_2_the_task_of_a_crashed_worker_goes_to_another_with_what_was_kept(front: Front) -> None:
    async with a_job(front):
        ann, bob = await a_hand(front, "ann"), await a_hand(front, "bob")
        lost = await ann.take()
        await ann.words.keep(lost.task_id, lost.token, [KeptArtifact(name="half", token=lost.token, value=50)])

        await front.bed.lose(lost)

        found = await bob.take()
        brief = await bob.words.brief(found)
        assert (found.task_id, found.token, found.attempt) == (lost.task_id, lost.token + 1, 1)
        assert brief.kept["half"].value == 50


async def test_rule_3_a_quiet_worker_keeps_its_task_until_the_lease_has_ended(front: Front) -> None:
    async with a_job(front):
        ann, bob = await a_hand(front, "ann"), await a_hand(front, "bob")
        lease = await ann.take()

        for _ in range(3):
            front.bed.pass_time(LEASE // 4)
            await front.parts.engine.sweep()

        assert await bob.words.claim(bob.worker, "request-1", LANES, 1) == []
        assert await done(ann, lease)


async def test_rule_4_a_heartbeat_beside_the_sweep_keeps_worker_and_lease(front: Front) -> None:
    async with a_job(front):
        ann = await a_hand(front)
        lease = await ann.take()
        for _ in range(3):  # sweeps that come in time, so that nobody takes this for an outage
            front.bed.pass_time(LEASE // 4)
            await front.parts.engine.sweep()
        front.bed.pass_time(LEASE // 4 - 1)

        orders, _ = await asyncio.gather(ann.words.beat(ann.worker, [holding(lease)]), front.parts.engine.sweep())
        front.bed.pass_time(2)
        await front.parts.engine.sweep()

        assert orders.renewed == ((lease.task_id, lease.token),)
        assert await done(ann, lease)


async def test_rule_5_work_for_special_machines_waits_for_one_but_not_for_ever(front: Front) -> None:
    front.bed.store.now = NOW
    engine = front.parts.engine
    await engine.jobs.register(FAN)
    job = await engine.jobs.submit("film")
    plain = await a_hand(front, "plain")
    cut = await plain.take()
    piece = Piece(input=1, labels=("gpu",), patience=60 * SECOND, optional=True)
    await plain.words.settle([LeaseOutcome(cut.task_id, cut.token, Done(plan={"join": [piece]}))])

    early = await plain.words.claim(plain.worker, "request-2", LANES, 1)
    for _ in range(13):
        front.bed.pass_time(5 * SECOND)
        await engine.sweep()

    assert early == []
    assert await front.bed.states(job.job_id) == ["done", "skipped"]
    await front.bed.audited()


async def test_rule_6_a_restarted_server_finds_every_lease_as_it_was(front: Front) -> None:
    async with a_job(front):
        ann = await a_hand(front)
        lease = await ann.take()

        front.house.closing.set()
        front.house = open_house(front.parts)
        front.app = create_app(front.house)
        orders = await ann.words.beat(ann.worker, [holding(lease)])

        assert orders.renewed == ((lease.task_id, lease.token),)
        assert await done(ann, lease)


async def test_rule_6_an_outage_of_the_server_expires_nobody(front: Front) -> None:
    async with a_job(front):
        ann = await a_hand(front)
        lease = await ann.take()

        front.bed.pass_time(10 * LEASE)  # nobody swept meanwhile
        await front.parts.engine.sweep()

        assert await done(ann, lease)


async def test_rule_7_whoever_completes_after_the_claim_expired_is_refused_and_abandons(front: Front) -> None:
    async with a_job(front):
        ann, bob = await a_hand(front, "ann"), await a_hand(front, "bob")
        late = await ann.take()
        front.bed.pass_time(LEASE)
        expired = await ann.refusal("complete", **of(late))
        kept = await ann.refusal("keep", **of(late, items=[{"name": "x", "value": 1}]))
        await front.parts.engine.sweep()  # an outage by its looks: terms are fresh
        await front.bed.lose(late)
        current = await bob.take()

        with pytest.raises(LeaseLost):
            await ann.words.keep(late.task_id, late.token, [KeptArtifact(name="x", token=late.token, value=1)])
        lost = await ann.refusal("complete", **of(late))

        assert (expired, kept, lost) == ((409, "lease_expired"), (409, "lease_expired"), (409, "lease_lost"))
        assert await done(bob, current)


async def test_rule_8_what_is_given_back_is_given_back_whole(front: Front) -> None:
    """Task, history, event and counters change in one transaction: the audit finds nothing half done."""
    async with a_job(front) as job:
        ann = await a_hand(front)
        lease = await ann.take()

        await front.bed.lose(lease)

        row = await front.bed.task(lease.task_id)
        assert (row["state"], row["worker"], row["lease_until"], row["losses"]) == ("ready", None, None, 1)
        assert [attempt["outcome"] for attempt in await front.bed.attempts(lease.task_id)] == ["lost"]
        assert (await front.bed.events(job))[-1] == "task.lost"


async def test_rule_9_a_worker_that_enlisted_and_never_beat_is_given_up(front: Front) -> None:
    async with a_job(front):
        ann = await a_hand(front)

        for _ in range(130):
            front.bed.pass_time(5 * SECOND)
            await front.parts.engine.sweep()

        with pytest.raises(WorkerGone):
            await ann.words.beat(ann.worker, [])
        assert await ann.enlist() != 0


async def test_rule_10_what_fails_beside_others_fails_alone_and_they_are_not_made_again(front: Front) -> None:
    front.bed.store.now = NOW
    engine = front.parts.engine
    await engine.jobs.register(FAN)
    job = (await engine.jobs.submit("film")).job_id
    ann, bob = await a_hand(front, "ann"), await a_hand(front, "bob")
    cut = await ann.take()
    await ann.words.settle([LeaseOutcome(cut.task_id, cut.token, Done(plan={"join": ["360p", "720p"]}))])
    low, high = await ann.take("request-2"), await bob.take("request-2")

    await bob.words.settle([LeaseOutcome(high.task_id, high.token, Failed("no memory"))])
    first = await done(ann, low)
    front.bed.pass_time(60 * SECOND)
    again = await bob.take("request-3")
    second = await done(bob, again)

    assert (first, second, again.task_id, again.attempt) == (True, True, high.task_id, 2)
    assert (await engine.queries.job(job)).status == "completed"
    await front.bed.audited()


@pytest.mark.parametrize(("mode", "given_back"), [(Mode.DRAINING, False), (Mode.DISABLED, True)])
async def test_drain_and_disable_reach_a_remote_worker(front: Front, mode: Mode, given_back: bool) -> None:
    async with a_job(front):
        ann = await a_hand(front)
        lease = await ann.take()

        await front.parts.engine.set_mode(ann.worker, mode)
        orders = await ann.words.beat(ann.worker, [holding(lease)])
        more = await ann.words.claim(ann.worker, "request-2", LANES, 1)
        await front.parts.engine.set_mode(ann.worker, Mode.ACTIVE)
        again = await ann.words.beat(ann.worker, [])

    assert (orders.mode, bool(orders.lost), more, again.mode) == (mode, given_back, [], Mode.ACTIVE)
