"""The words over HTTP say the same as the words on the engine, and only to whom they belong."""

from collections.abc import Callable
from typing import Any

import pytest

from telecine.facts import Done, Failed, KeptArtifact, LeaseOutcome, LogEntry, Mode, Piece
from telecine.worker.engine_api import EngineApi
from telecine.worker.local_engine import LocalEngine
from telecine.worker_facts import Totals
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, LANES, a_hand, holding, of, registration
from tests.support.builders import a_flow, a_stage

FAN = a_flow(a_stage("cut"), a_stage("join", "cut", fan_out=True))


@pytest.fixture(params=["engine", "http"])
def open_words(request: pytest.FixtureRequest, front: Front) -> Callable[[], Any]:
    async def words() -> EngineApi:
        if request.param == "engine":
            return LocalEngine(front.parts.engine)
        return (await a_hand(front, enlisted=False)).words

    return words


async def test_a_whole_job_is_told_the_same_on_both_ways(front: Front, open_words: Callable[[], Any]) -> None:
    """One story, told on the engine and over HTTP: claim, brief, beat, keep, log, settle, release, retire."""
    words, engine = await open_words(), front.parts.engine
    await engine.jobs.register(FAN)
    job = await engine.jobs.submit("film", {"of": "bees"}, subject=("video", "bees"))
    worker = await words.enlist(registration())

    [cut] = await words.claim(worker, "request-1", LANES, 5)
    again = await words.claim(worker, "request-1", LANES, 5)
    orders = await words.beat(worker, [holding(cut, progress=0.5, note="half")], Totals(load=1))
    await words.keep(cut.task_id, cut.token, [KeptArtifact(name="mark", token=cut.token, value={"n": [1, None]})])
    line = LogEntry(task_id=cut.task_id, token=cut.token, message="ran", kind="step", data={"exit_code": 0})
    await words.log([line])
    brief = await words.brief(cut)
    pieces = {"join": [{"n": 1}, Piece(input=2, optional=True), Piece(input=3)]}
    word = LeaseOutcome(cut.task_id, cut.token, Done(result="cut", plan=pieces, facts={"seen": True}))
    [said], [repeated] = await words.settle([word]), await words.settle([word])
    joins = await words.claim(worker, "request-2", LANES, 5)
    shelved = await words.artifacts(joins[0], ["cut"])
    released = await words.release([(joins[0].task_id, joins[0].token)], "no time")
    others = await words.settle(
        [
            LeaseOutcome(joins[1].task_id, joins[1].token, Failed("no", permanent=True)),
            LeaseOutcome(joins[2].task_id, 9, Done()),
        ]
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
    view = await engine.queries.job(job.job_id)
    assert [stage.state for stage in view.stages] == ["done", "ready"]
    [step] = await front.bed.sql("select message, kind from job_log")
    assert (step["message"], step["kind"]) == ("ran", "step")
    [row] = await front.bed.sql(f"select gone_at, mode from worker where id = {worker}")
    assert row["gone_at"] is not None


async def test_what_a_worker_is_stands_in_its_row(front: Front) -> None:
    hand = await a_hand(front, facts={"capabilities": {"gpu": "none"}, "metadata": {"rack": 7}}, enlisted=False)

    await hand.enlist(name="second", slots=3, labels=("big",), capabilities={"cores": 4})

    [view] = await front.parts.engine.queries.workers()
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
    await engine.jobs.register(FLOW)
    await engine.jobs.submit("film")
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
    await bob.words.log([LogEntry(task_id=lease.task_id, token=lease.token, message="I was here")])

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
