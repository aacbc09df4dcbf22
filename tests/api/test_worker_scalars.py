"""Numbers and booleans of workers' messages: the server takes no other type, and our own worker sends no other."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from telecine.facts import Brief, Done, Failed, LeaseOutcome, Piece
from telecine.worker.handlers.bench import HandlerBench
from tests.api.in_process_server import ANY_DATABASE, Front
from tests.api.worker_client import LANES, a_hand, holding
from tests.support.builders import a_flow, a_stage

FAN = a_flow(a_stage("cut"), a_stage("join", "cut", fan_out=True))
CLAIM = {"worker": 1, "request": "request-1", "lanes": {}}
LEASE = {"task_id": 1, "token": 1}
ENLIST = {"request": "request-1", "name": "ann", "lanes": []}


def words(**outcome: Any) -> dict[str, Any]:
    return {"words": [{**LEASE, **outcome}]}


@ANY_DATABASE
@pytest.mark.parametrize(
    ("word", "body", "told"),
    [
        ("claim", {**CLAIM, "wait": False}, "wait: a number is wanted"),
        ("claim", {**CLAIM, "wait": "1"}, "wait: a number is wanted"),
        ("claim", {**CLAIM, "wanted": True}, "wanted: a whole number is wanted"),
        ("claim", {**CLAIM, "wanted": 1.5}, "wanted: a whole number is wanted"),
        ("claim", {**CLAIM, "worker": "1"}, "worker: a whole number is wanted"),
        ("heartbeat", {"worker": 1, "load": "1"}, "load: a whole number is wanted"),
        ("heartbeat", {"worker": 1, "held": [{**LEASE, "progress": "0.5"}]}, "held.0.progress: a number is wanted"),
        ("progress", {"worker": 1, **LEASE, "progress": True}, "progress: a number is wanted"),
        ("log", {"lines": [{**LEASE, "token": False, "message": ""}]}, "lines.0.token: a whole number is wanted"),
        ("release", {"leases": [[1, False]]}, "leases.0.1: a whole number is wanted"),
        ("fail", {**LEASE, "message": "", "permanent": "yes"}, "permanent: true or false is wanted"),
        ("settle", words(failed={"message": "", "permanent": 0}), "words.0.failed.permanent: true or false is wanted"),
        ("complete", {**LEASE, "publish": 1}, "publish: true or false is wanted"),
        ("complete", {**LEASE, "carry": ["1"]}, "carry.0: a whole number is wanted"),
        ("complete", {**LEASE, "plan": {"a": [{"optional": 1}]}}, "plan.0.optional: true or false is wanted"),
        ("keep", {**LEASE, "items": [{"name": "x", "size": "1"}]}, "items.0.size: a whole number is wanted"),
        ("enlist", {**ENLIST, "slots": "1"}, "slots: a whole number is wanted"),
        ("enlist", {**ENLIST, "version": True}, "version: a whole number is wanted"),
    ],
)
async def test_no_type_is_taken_for_another(front: Front, word: str, body: dict[str, Any], told: str) -> None:
    answer = await front.worker.post(f"/api/worker/{word}", json=body)

    assert (answer.status_code, answer.json()["code"]) == (422, "bad_request")
    assert answer.json()["detail"] == told


@ANY_DATABASE
@pytest.mark.parametrize("days", [True, "1", [1]])
async def test_an_administrator_gives_a_number_of_days(front: Front, days: Any) -> None:
    answer = await front.admin.post("/api/worker/register", json={"name": "ann", "days": days})

    assert (answer.status_code, answer.json()["detail"]) == (422, "days: a number is wanted")


@ANY_DATABASE
async def test_a_number_may_be_written_with_a_point_or_without(front: Front) -> None:
    made = await front.admin.post("/api/worker/register", json={"name": "ann", "days": 1})
    hand = await a_hand(front)

    claimed = await hand.post("claim", worker=float(hand.worker), request="request-1", lanes=LANES, wanted=1.0, wait=0)

    assert (made.status_code, claimed.status_code, claimed.json()) == (201, 200, {"leases": []})


async def test_outcomes_with_values_that_are_only_truthy_reach_the_server(front: Front) -> None:
    """Handlers are not type-checked, and a worker beside the database takes whatever is true, too."""
    engine = front.parts.engine
    await engine.jobs.register(FAN)
    job = await engine.jobs.submit("film")
    hand = await a_hand(front)
    cut = await hand.take()
    truthy: Any = 1
    plan = {"join": [Piece(input=1, optional=truthy), Piece(input=2, optional=truthy)]}

    [said] = await hand.words.settle([LeaseOutcome(cut.task_id, cut.token, Done(plan=plan, publish=truthy))])
    first, second = await hand.words.claim(hand.worker, "request-2", LANES, 2)
    outcomes = [
        LeaseOutcome(first.task_id, first.token, Failed("no", permanent=truthy)),
        LeaseOutcome(second.task_id, second.token, Done(stop=truthy)),
    ]
    ends = await hand.words.settle(outcomes)

    assert (said.accepted, [end.accepted for end in ends]) == (True, [True, True])
    assert await front.bed.states(job.job_id) == ["done", "error", "done"]


@ANY_DATABASE
async def test_a_note_of_any_length_does_not_fail_the_heartbeat(front: Front) -> None:
    await front.parts.engine.jobs.register(FAN)
    await front.parts.engine.jobs.submit("film")
    hand = await a_hand(front)
    cut = await hand.take()

    beat = await hand.words.beat(hand.worker, [holding(cut, progress=1, note="x" * 20_000)])

    assert beat.renewed == ((cut.task_id, cut.token),)


class Voice:
    """Remembers the progress that a handler reported."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, Any]] = []

    def progress(self, fraction: float, note: str | None) -> None:
        self.told.append((fraction, note))


@ANY_DATABASE
@pytest.mark.parametrize("done", [Fraction(1, 2), Decimal("0.5"), 0.5])
async def test_progress_is_a_plain_number_whatever_a_handler_counts_with(front: Front, done: Any) -> None:
    await front.parts.engine.jobs.register(FAN)
    await front.parts.engine.jobs.submit("film")
    hand, voice, note = await a_hand(front), Voice(), 7
    lease = await hand.take()
    untyped: Any = HandlerBench(lease, Brief(), voice)  # type: ignore[arg-type]

    untyped.progress(done, 1, note)
    [(fraction, text)] = voice.told
    beat = await hand.words.beat(hand.worker, [holding(lease, progress=fraction, note=text)])

    assert (type(fraction), fraction, text) == (float, 0.5, "7")
    assert beat.renewed == ((lease.task_id, lease.token),)
