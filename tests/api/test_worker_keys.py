"""Who may speak as a worker, how claims wait, and what becomes of workers whose key or release is not good any more."""

import asyncio
from typing import Any

import pytest

from telecine.engine.accounts.keys import written
from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.engine.maintenance.retention import Ages, retire
from telecine.errors import LeaseLost, WorkerGone
from telecine.facts import Done, Failed, KeptArtifact, LeaseOutcome, Mode
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, LANES, a_hand, holding, of, registration
from tests.support.builders import a_flow


async def test_only_an_administrator_registers_workers(front: Front) -> None:
    body = {"name": "attic", "capabilities": {"gpu": "none"}, "days": 1}

    made = await front.admin.post("/api/worker/register", json=body)

    assert (made.status_code, made.json()["name"]) == (201, "attic")
    assert made.json()["key"].startswith("tcn_worker_")
    assert made.json()["expires_at"] is not None
    for client, status in ((front.ada, 403), (front.worker, 403), (front.nobody, 401)):
        assert (await client.post("/api/worker/register", json=body)).status_code == status
    too_much = await front.admin.post("/api/worker/register", json={"name": "x", "metadata": {"a": "b" * 10_300}})
    assert too_much.status_code == 422


async def test_only_a_worker_speaks_as_one(front: Front) -> None:
    for client, status in ((front.ada, 403), (front.admin, 403), (front.nobody, 401)):
        assert (await client.get("/api/worker/terms")).status_code == status
    answer = await front.worker.get("/api/worker/terms")
    terms = answer.json()
    assert answer.headers["X-Telecine-Worker"] != ""
    assert (terms["version"], terms["lease_ms"], terms["shared"]) == (1, front.parts.engine.lease, False)


async def test_a_wrong_key_of_a_worker_is_told_how_to_get_a_right_one(front: Front) -> None:
    good = front.worker.headers["Authorization"]
    unknown = written("worker", "0" * 12, "1" * 64)

    slip = await front.nobody.get("/api/worker/terms", headers={"Authorization": good[:-1]})
    other = await front.nobody.get("/api/worker/terms", headers={"Authorization": f"Bearer {unknown}"})
    owners = await front.nobody.get("/api/v1/me", headers={"Authorization": "Bearer tcn_owner_0"})

    register = "`telecine workers register NAME` makes a worker's key"
    assert (slip.status_code, other.status_code, owners.status_code) == (401, 401, 401)
    assert slip.json()["detail"] == (
        f"this is not a key: one looks like tcn_worker_…, and this one is incomplete or has a slip in it; {register}"
    )
    assert other.json()["detail"] == f"this key is not known here; {register}"
    assert "tcn_owner_…" in owners.json()["detail"]
    assert register not in owners.json()["detail"]


async def test_an_old_release_drains_and_keeps_what_it_has(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(FLOW)
    for _ in range(2):
        await engine.jobs.submit("film")
    hand = await a_hand(front, enlisted=False)
    await hand.enlist(release="1.9.2")
    lease = await hand.take()
    front.house.settings = front.house.settings.model_copy(update={"min_worker_release": "1.10"})

    orders = await hand.words.beat(hand.worker, [holding(lease)])
    more = await hand.words.claim(hand.worker, "request-2", LANES, 1)
    [done] = await hand.words.settle([LeaseOutcome(lease.task_id, lease.token, Done())])

    assert (orders.mode, orders.renewed, more, done.accepted) == (
        Mode.DRAINING,
        ((lease.task_id, lease.token),),
        [],
        True,
    )


async def test_a_claim_waits_for_work_and_is_woken(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(FLOW)
    hand = await a_hand(front, wait=30.0)
    asking = asyncio.create_task(hand.take())
    await asyncio.wait({asking}, timeout=0.3)
    waited = not asking.done()

    await engine.jobs.submit("film")

    assert (await asyncio.wait_for(asking, 20)).stage == "cut"
    assert waited


async def test_whoever_leaves_is_not_kept_waiting_by_its_claim(front: Front) -> None:
    hand = await a_hand(front, wait=60.0)
    asking = asyncio.create_task(hand.words.claim(hand.worker, "request-1", LANES, 1))
    await asyncio.wait({asking}, timeout=0.2)

    hand.words.hurry()

    assert await asyncio.wait_for(asking, 20) == []


async def test_a_server_that_stops_lets_waiting_claims_go(front: Front) -> None:
    hand = await a_hand(front, wait=60.0)
    asking = asyncio.create_task(hand.words.claim(hand.worker, "request-1", LANES, 1))
    await asyncio.wait({asking}, timeout=0.2)

    front.house.closing.set()

    assert await asyncio.wait_for(asking, 20) == []


async def test_one_new_task_wakes_one_of_many_who_wait(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(FLOW)
    hands = [await a_hand(front, f"w{number}", wait=20.0) for number in range(6)]
    claims = [asyncio.create_task(hand.words.claim(hand.worker, "request-1", LANES, 1)) for hand in hands]
    await asyncio.wait(set(claims), timeout=0.3)

    await engine.jobs.submit("film")
    done, others = await asyncio.wait(set(claims), timeout=20, return_when=asyncio.FIRST_COMPLETED)

    assert [len(claim.result()) for claim in done] == [1]
    await _let_go(front, others)


async def test_what_cannot_be_claimed_is_not_asked_for_again_and_again(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task of a paused flow can be seen and not be claimed: whoever waits for it must not keep the database busy."""
    engine = front.parts.engine
    await engine.jobs.register(FLOW)
    await engine.jobs.submit("film")
    await engine.jobs.pause("film")
    hand = await a_hand(front, wait=2.0)
    real, asked = engine.claim, []

    async def counted(*words: Any) -> Any:
        asked.append(words)
        return await real(*words)

    monkeypatch.setattr(engine, "claim", counted)

    assert await hand.words.claim(hand.worker, "request-1", LANES, 1) == []
    assert len(asked) < 12


async def _let_go(front: Front, others: set[asyncio.Task[Any]]) -> None:
    front.house.closing.set()
    await asyncio.wait_for(asyncio.gather(*others), 20)


async def test_a_revoked_key_gives_its_leases_back_at_once(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(FLOW)
    await engine.jobs.submit("film")
    hand = await a_hand(front)
    lease = await hand.take()

    revoked = await front.admin.delete(f"/api/v1/keys/{hand.key_id}")

    assert revoked.status_code == 204
    row = await front.bed.task(lease.task_id)
    assert (row["state"], row["tries"], row["losses"]) == ("ready", 0, 0)
    assert (await hand.post("brief", **of(lease))).status_code == 401


async def test_an_expired_key_gives_its_leases_back(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(FLOW)
    await engine.jobs.submit("film")
    hand = await a_hand(front, life=60_000)
    lease = await hand.take()
    await front.bed.sql(f"update api_key set expires_at = 1 where id = '{hand.key_id}'")

    count = await RemoteWorkers(engine).sweep()

    row = await front.bed.task(lease.task_id)
    assert (count, row["state"], row["tries"]) == (1, "ready", 0)


async def test_a_worker_that_was_given_up_comes_back_as_a_new_one(front: Front) -> None:
    hand = await a_hand(front)
    await front.parts.engine.retire(hand.worker)

    with pytest.raises(WorkerGone):
        await hand.words.beat(hand.worker, [])
    again = await hand.words.enlist(registration())

    assert again != hand.worker


async def test_a_handler_of_a_cancelled_job_keeps_nothing_more(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(FLOW)
    job = await engine.jobs.submit("film")
    hand = await a_hand(front)
    lease = await hand.take()
    await engine.jobs.cancel(job.job_id)

    with pytest.raises(LeaseLost) as lost:
        await hand.words.keep(lease.task_id, lease.token, [KeptArtifact(name="x", token=lease.token, value=1)])
    refused = await hand.refusal("complete", **of(lease))
    released = await hand.words.release([(lease.task_id, lease.token)])

    assert (lost.value.code, refused, released[0].accepted) == ("job_cancelled", (409, "job_cancelled"), True)
    assert (await engine.queries.job(job.job_id)).status == "cancelled"


async def test_a_worker_keeps_its_name_after_its_row_would_be_old(front: Front) -> None:
    engine = front.parts.engine
    await engine.jobs.register(a_flow("cut"))
    await engine.jobs.submit("film")
    hand = await a_hand(front, "attic")
    lease = await hand.take()
    await hand.words.settle([LeaseOutcome(lease.task_id, lease.token, Failed("no"))])
    await hand.words.retire(hand.worker)
    await front.bed.sql(f"update worker set gone_at = registered_at where id = {hand.worker}")
    front.parts.store.now = 4_000_000_000_000

    async for _ in retire(front.parts.store, engine.graph_cache, Ages(jobs=10**15)):
        pass

    [attempt] = (await engine.queries.attempts(lease.job_id)).items
    assert attempt.worker is not None
    assert attempt.worker.name == "attic"
