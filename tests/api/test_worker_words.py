"""The words over HTTP say the same as the words on the engine, and only to whom they belong."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from telecine.engine.holding import Totals
from telecine.engine.remote import Remotes
from telecine.engine.retention import Ages, retire
from telecine.errors import LeaseLost, WorkerGone
from telecine.facts import Done, Failed, Kept, Line, Mode, Piece, Word
from telecine.worker.words import Words
from tests.api.front import Front
from tests.api.hands import FLOW, LANES, a_hand, holding, of, registration
from tests.make import a_flow, a_stage

FAN = a_flow(a_stage("cut"), a_stage("join", "cut", fan_out=True))


@pytest.fixture(params=["engine", "http"])
def open_words(request: pytest.FixtureRequest, front: Front) -> Callable[[], Any]:
    async def words() -> Words:
        return front.parts.engine if request.param == "engine" else (await a_hand(front, enlisted=False)).words

    return words


async def test_a_whole_job_is_told_the_same_on_both_ways(front: Front, open_words: Callable[[], Any]) -> None:
    """One story, told on the engine and over HTTP: claim, brief, beat, keep, log, settle, release, retire."""
    words, engine = await open_words(), front.parts.engine
    await engine.register(FAN)
    job = await engine.submit("film", {"of": "bees"}, subject=("video", "bees"))
    worker = await words.enlist(registration())

    [cut] = await words.claim(worker, "request-1", LANES, 5)
    again = await words.claim(worker, "request-1", LANES, 5)
    orders = await words.beat(worker, [holding(cut, progress=0.5, note="half")], Totals(load=1))
    await words.keep(cut.task_id, cut.token, [Kept(name="mark", token=cut.token, value={"n": [1, None]})])
    line = Line(task_id=cut.task_id, token=cut.token, message="ran", kind="step", data={"exit_code": 0})
    await words.log([line])
    brief = await words.brief(cut)
    pieces = {"join": [{"n": 1}, Piece(input=2, optional=True), Piece(input=3)]}
    word = Word(cut.task_id, cut.token, Done(result="cut", plan=pieces, facts={"seen": True}))
    [said], [repeated] = await words.settle([word]), await words.settle([word])
    joins = await words.claim(worker, "request-2", LANES, 5)
    shelved = await words.artifacts(joins[0], ["cut"])
    released = await words.release([(joins[0].task_id, joins[0].token)], "no time")
    others = await words.settle(
        [Word(joins[1].task_id, joins[1].token, Failed("no", permanent=True)), Word(joins[2].task_id, 9, Done())]
    )
    await words.set_mode(worker, Mode.DRAINING)
    drained = await words.claim(worker, "request-3", LANES, 5)
    await words.retire(worker)

    assert (again, cut.spec, cut.subject, cut.attempt) == ([cut], {"of": "bees"}, ("video", "bees"), 1)
    assert (orders.mode, orders.renewed, orders.lost) == (Mode.ACTIVE, ((cut.task_id, cut.token),), ())
    assert (brief.kept["mark"].value, brief.slots) == ({"n": [1, None]}, 1)
    assert (said.accepted, said.code, said.repeated, repeated.accepted, repeated.repeated) == (
        True, "done", False, True, True,
    )  # fmt: skip
    assert [lease.input for lease in joins] == [{"n": 1}, 2, 3]
    assert [(one.stage, one.kept.name) for one in shelved] == [("cut", "mark")]
    assert [one.code for one in (*released, *others)] == ["released", "failed", "lease_lost"]
    assert drained == []
    view = await engine.views.job(job.job_id)
    assert [stage.state for stage in view.stages] == ["done", "ready"]
    [step] = await front.bed.sql("select message, kind from job_log")
    assert (step["message"], step["kind"]) == ("ran", "step")
    [row] = await front.bed.sql(f"select gone_at, mode from worker where id = {worker}")
    assert row["gone_at"] is not None


async def test_what_a_worker_is_stands_in_its_row(front: Front) -> None:
    hand = await a_hand(front, facts={"capabilities": {"gpu": "none"}, "metadata": {"rack": 7}}, enlisted=False)

    await hand.enlist(name="second", slots=3, labels=("big",), capabilities={"cores": 4})

    [view] = await front.parts.engine.views.workers()
    assert (view.name, view.kind, view.slots, view.labels) == ("ann/second", "remote", 3, ("big",))
    assert (view.capabilities, view.metadata) == ({"gpu": "none", "cores": 4}, {"rack": 7})


async def test_the_same_enlisting_again_is_the_same_worker(front: Front) -> None:
    hand = await a_hand(front, enlisted=False)
    body = {"request": "once-only", "name": "ann", "lanes": list(LANES)}

    first, second = await hand.post("enlist", **body), await hand.post("enlist", **body)

    assert first.json() == second.json()
    assert await front.bed.count("worker") == 1


@pytest.mark.parametrize(
    ("word", "body"),
    [
        ("heartbeat", {}),
        ("claim", {"request": "request-1", "lanes": LANES}),
        ("drain", {}),
        ("retire", {}),
        ("progress", {"task_id": 1, "token": 1}),
    ],
)
async def test_nobody_speaks_as_a_worker_of_another_key(front: Front, word: str, body: dict[str, Any]) -> None:
    ann, bob = await a_hand(front, "ann"), await a_hand(front, "bob")

    refused = await bob.refusal(word, worker=ann.worker, **body)

    assert refused == (410, "worker_gone")
    [row] = await front.bed.sql(f"select mode, gone_at from worker where id = {ann.worker}")
    assert (row["mode"], row["gone_at"]) == ("active", None)


async def test_two_workers_do_not_touch_what_the_other_holds(front: Front) -> None:
    """Whatever bob says about ann's task is answered as if there were no such lease, and changes nothing."""
    engine = front.parts.engine
    await engine.register(FLOW)
    await engine.submit("film")
    ann, bob = await a_hand(front, "ann"), await a_hand(front, "bob")
    lease = await ann.take()
    before = await front.bed.task(lease.task_id)

    refusals = {
        "brief": await bob.refusal("brief", **of(lease)),
        "artifacts": await bob.refusal("artifacts", **of(lease)),
        "published": await bob.refusal("published", **of(lease)),
        "keep": await bob.refusal("keep", **of(lease, items=[{"name": "x", "value": 1}])),
        "complete": await bob.refusal("complete", **of(lease)),
        "fail": await bob.refusal("fail", **of(lease, message="no")),
        "progress": await bob.refusal("progress", worker=bob.worker, **of(lease, progress=1.0)),
    }
    released = (await bob.post("release", leases=[[lease.task_id, lease.token]])).json()["answers"]
    settled = (await bob.post("settle", words=[of(lease, done={})])).json()["answers"]
    beaten = await bob.words.beat(bob.worker, [holding(lease)])
    await bob.words.log([Line(task_id=lease.task_id, token=lease.token, message="I was here")])

    assert set(refusals.values()) == {(409, "lease_lost")}
    assert [one["code"] for one in (*released, *settled)] == ["lease_lost", "lease_lost"]
    assert (beaten.renewed, beaten.lost) == ((), ((lease.task_id, lease.token),))
    assert await front.bed.task(lease.task_id) == before
    assert await front.bed.count("job_log") == 0


async def test_a_task_that_is_nobodys_is_refused_like_a_foreign_one(front: Front) -> None:
    hand = await a_hand(front)

    assert await hand.refusal("brief", task_id=12345, token=1) == (409, "lease_lost")
    assert await hand.refusal("complete", task_id=12345, token=1) == (409, "lease_lost")


@pytest.mark.parametrize(
    ("word", "body"),
    [
        ("claim", {"worker": 1, "request": "request-1", "lanes": {}, "wanted": 0}),
        ("claim", {"worker": 1, "request": "request-1", "lanes": {}, "wait": 1e9}),
        ("claim", {"worker": 1, "request": "?", "lanes": {}}),
        ("heartbeat", {"worker": -1}),
        ("heartbeat", {"worker": 1, "unknown": 1}),
        ("heartbeat", {"worker": 2**60}),
        ("complete", {"task_id": 1, "token": 1, "plan": {"join": ["bare"]}}),
        ("settle", {"words": []}),
        ("settle", {"words": [{"task_id": 1, "token": 1}]}),
        ("settle", {"words": [{"task_id": 1, "token": 1, "done": {}, "released": {}}]}),
        ("keep", {"task_id": 1, "token": 1, "items": [{"name": "x", "facts": {"much": "x" * 70_000}}]}),
        ("enlist", {"request": "request-1", "name": "ann", "lanes": [], "metadata": {"much": "x" * 11_000}}),
        ("enlist", {"request": "request-1", "name": "ann", "lanes": [], "version": 99}),
    ],
)
async def test_what_makes_no_sense_is_refused_in_one_sentence(front: Front, word: str, body: dict[str, Any]) -> None:
    hand = await a_hand(front)

    answer = await hand.post(word, **body)

    assert answer.status_code == 422
    assert answer.json()["detail"]


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
    terms = (await front.worker.get("/api/worker/terms")).json()
    assert (terms["version"], terms["lease_ms"], terms["shared"]) == (1, front.parts.engine.lease, False)


async def test_an_old_release_drains_and_keeps_what_it_has(front: Front) -> None:
    engine = front.parts.engine
    await engine.register(FLOW)
    for _ in range(2):
        await engine.submit("film")
    hand = await a_hand(front, enlisted=False)
    await hand.enlist(release="1.9.2")
    lease = await hand.take()
    front.house.settings = front.house.settings.model_copy(update={"min_worker_release": "1.10"})

    orders = await hand.words.beat(hand.worker, [holding(lease)])
    more = await hand.words.claim(hand.worker, "request-2", LANES, 1)
    [done] = await hand.words.settle([Word(lease.task_id, lease.token, Done())])

    assert (orders.mode, orders.renewed, more, done.accepted) == (
        Mode.DRAINING,
        ((lease.task_id, lease.token),),
        [],
        True,
    )


async def test_a_claim_waits_for_work_and_is_woken(front: Front) -> None:
    engine = front.parts.engine
    await engine.register(FLOW)
    hand = await a_hand(front, wait=30.0)
    asking = asyncio.create_task(hand.take())
    await asyncio.wait({asking}, timeout=0.3)
    waited = not asking.done()

    await engine.submit("film")

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
    await engine.register(FLOW)
    hands = [await a_hand(front, f"w{number}", wait=20.0) for number in range(6)]
    claims = [asyncio.create_task(hand.words.claim(hand.worker, "request-1", LANES, 1)) for hand in hands]
    await asyncio.wait(set(claims), timeout=0.3)

    await engine.submit("film")
    done, others = await asyncio.wait(set(claims), timeout=20, return_when=asyncio.FIRST_COMPLETED)

    assert [len(claim.result()) for claim in done] == [1]
    await _let_go(front, others)


async def _let_go(front: Front, others: set[asyncio.Task[Any]]) -> None:
    front.house.closing.set()
    await asyncio.wait_for(asyncio.gather(*others), 20)


async def test_a_revoked_key_gives_its_leases_back_at_once(front: Front) -> None:
    engine = front.parts.engine
    await engine.register(FLOW)
    await engine.submit("film")
    hand = await a_hand(front)
    lease = await hand.take()

    revoked = await front.admin.delete(f"/api/v1/keys/{hand.key_id}")

    assert revoked.status_code == 204
    row = await front.bed.task(lease.task_id)
    assert (row["state"], row["tries"], row["losses"]) == ("ready", 0, 0)
    assert (await hand.post("brief", **of(lease))).status_code == 401


async def test_an_expired_key_gives_its_leases_back(front: Front) -> None:
    engine = front.parts.engine
    await engine.register(FLOW)
    await engine.submit("film")
    hand = await a_hand(front, life=60_000)
    lease = await hand.take()
    await front.bed.sql(f"update api_key set expires_at = 1 where id = '{hand.key_id}'")

    count = await Remotes(engine).sweep()

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
    await engine.register(FLOW)
    job = await engine.submit("film")
    hand = await a_hand(front)
    lease = await hand.take()
    await engine.cancel(job.job_id)

    with pytest.raises(LeaseLost) as lost:
        await hand.words.keep(lease.task_id, lease.token, [Kept(name="x", token=lease.token, value=1)])
    refused = await hand.refusal("complete", **of(lease))
    released = await hand.words.release([(lease.task_id, lease.token)])

    assert (lost.value.code, refused, released[0].accepted) == ("job_cancelled", (409, "job_cancelled"), True)
    assert (await engine.views.job(job.job_id)).status == "cancelled"


async def test_a_worker_keeps_its_name_after_its_row_would_be_old(front: Front) -> None:
    engine = front.parts.engine
    await engine.register(a_flow("cut"))
    await engine.submit("film")
    hand = await a_hand(front, "attic")
    lease = await hand.take()
    await hand.words.settle([Word(lease.task_id, lease.token, Failed("no"))])
    await hand.words.retire(hand.worker)
    await front.bed.sql(f"update worker set gone_at = registered_at where id = {hand.worker}")
    front.parts.store.now = 4_000_000_000_000

    async for _ in retire(front.parts.store, engine.shelf, Ages(jobs=10**15)):
        pass

    [attempt] = (await engine.views.attempts(lease.job_id)).items
    assert attempt.worker is not None
    assert attempt.worker.name == "attic"
