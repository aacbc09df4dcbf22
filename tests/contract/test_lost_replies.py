"""The connection breaks in COMMIT: what was done is done, the caller does not know, and repeating it is harmless."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from telecine.engine import Engine
from telecine.engine.leases import recovery
from telecine.errors import Unreachable, WrongState
from telecine.facts import Done, Fact, Failed, KeptArtifact, LeaseOutcome, Released
from telecine.flow import Flow
from telecine.store.open import open_store
from telecine.world import World
from tests.support.builders import Loaded, a_flow
from tests.support.engine_fixture import Bed, pairs
from tests.support.lossy_proxy import LossyProxy, lossy_proxy

pytestmark = pytest.mark.parametrize("bed", ["postgres"], indirect=True)
LONE, LINE = a_flow("cut"), a_flow("cut", "join")
COMMIT = b"commit\x00"


@asynccontextmanager
async def far_away(bed: Bed, *flows: Flow) -> AsyncIterator[tuple[Engine, LossyProxy]]:
    """An engine that reaches the same database through the proxy."""
    await bed.enact(*flows)
    async with lossy_proxy(bed.url) as proxy:
        store = open_store(proxy.url, dice=random.Random(3))
        store.now = bed.store.now
        engine = Engine(store, world=World(dice=Loaded()))
        for flow in flows:
            await engine.jobs.register(flow)
        yield engine, proxy
        await store.close()


async def lost(proxy: LossyProxy, text: bytes, asked: Any) -> None:
    """The request is carried out and its answer lost."""
    before = proxy.lost
    proxy.lose(text)
    with pytest.raises(Unreachable):
        await asked
    assert proxy.lost == before + 1


async def test_a_submit_with_a_key_is_repeated_without_a_second_job(bed: Bed) -> None:
    async with far_away(bed, LONE) as (engine, proxy):
        await lost(proxy, COMMIT, engine.jobs.submit("film", {"a": 1}, key="k"))
        committed = await bed.count("job")

        again = await engine.jobs.submit("film", {"a": 1}, key="k")

    assert (committed, again.created, await bed.count("job")) == (1, False, 1)


async def test_a_claim_is_repeated_and_gets_the_same_leases(bed: Bed) -> None:
    async with far_away(bed, LONE) as (engine, proxy):
        for _ in range(3):
            await bed.submit()
        # A claim is one statement, which commits by itself: its parameters tell it from others.
        await lost(proxy, b"request one", engine.claim(bed.worker, "request one", bed.lanes, 2))
        held = await bed.sql("select id, token from task where state = 'running' order by id")

        leases = await engine.claim(bed.worker, "request one", bed.lanes, 2)

    assert pairs(leases) == [(row["id"], row["token"]) for row in held]
    assert await bed.count("task", "state = 'running'") == 2
    await bed.audited()


@pytest.mark.parametrize("fact", [Done(result=1), Failed("no"), Failed("no", permanent=True), Released()], ids=repr)
@pytest.mark.parametrize("flow", [LINE, LONE], ids=["the long way", "the short way"])
async def test_a_settled_word_is_repeated_and_gets_its_answer(bed: Bed, flow: Flow, fact: Fact) -> None:
    async with far_away(bed, flow) as (engine, proxy):
        await bed.submit()
        [lease] = await engine.claim(bed.worker, "r", bed.lanes, 1)
        word = [LeaseOutcome(lease.task_id, lease.token, fact)]
        short = flow is LONE and isinstance(fact, Done)
        await lost(proxy, b"task.done\0" if short else COMMIT, engine.settle(word))
        committed = await bed.count("attempt")

        [answer] = await engine.settle(word)

    assert committed == 1
    assert (answer.accepted, answer.repeated) == (True, True)
    assert await bed.count("attempt") == 1
    await bed.audited()


async def test_a_checkpoint_is_kept_again(bed: Bed) -> None:
    async with far_away(bed, LONE) as (engine, proxy):
        await bed.submit()
        [lease] = await engine.claim(bed.worker, "r", bed.lanes, 1)
        item = [KeptArtifact(name="at", token=1, value=7)]
        await lost(proxy, COMMIT, engine.keep(lease.task_id, 1, item))

        await engine.keep(lease.task_id, 1, item)

        assert (await engine.brief(lease)).kept["at"].value == 7


async def test_a_cancel_is_repeated(bed: Bed) -> None:
    async with far_away(bed, LINE) as (engine, proxy):
        job_id = await bed.submit()
        await lost(proxy, COMMIT, engine.jobs.cancel(job_id))

        assert await engine.jobs.cancel(job_id) == "cancelled"

    assert (await bed.events(job_id)).count("job.cancelled") == 1


async def test_a_retry_that_had_worked_is_refused_the_second_time(bed: Bed) -> None:
    async with far_away(bed, LONE) as (engine, proxy):
        job_id = await bed.submit()
        await bed.engine.jobs.cancel(job_id)
        await lost(proxy, COMMIT, engine.jobs.retry(job_id))

        with pytest.raises(WrongState):
            await engine.jobs.retry(job_id)

    assert (await bed.job(job_id))["generation"] == 2


async def test_a_retry_that_names_its_generation_is_repeated_until_it_is_answered(bed: Bed) -> None:
    """The job may have failed again meanwhile: that is not what the repeat is about."""
    async with far_away(bed, LONE) as (engine, proxy):
        job_id = await bed.submit()
        await bed.engine.jobs.cancel(job_id)
        await lost(proxy, COMMIT, engine.jobs.retry(job_id, generation=1))
        await bed.engine.jobs.cancel(job_id)

        await engine.jobs.retry(job_id, generation=1)

    assert (await bed.job(job_id))["generation"] == 2
    assert await bed.status(job_id) == "cancelled"


async def test_a_sweep_whose_answer_was_lost_counts_a_loss_once(bed: Bed) -> None:
    async with far_away(bed, LINE) as (engine, proxy):
        await bed.submit()
        lease = await bed.take()
        for _ in range(2):
            bed.pass_time(9_000)
            await bed.engine.sweep()
        bed.pass_time(3_000)
        engine._store.now = bed.now
        words = await engine._store.read(recovery.overdue)
        await lost(proxy, COMMIT, engine.settle(words))

        await engine.settle(words)

    task = await bed.task(lease.task_id)
    assert (task["losses"], task["token"], await bed.count("attempt")) == (1, 1, 1)
    await bed.audited()
