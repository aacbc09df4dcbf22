"""The codec between processes: every fact comes back as it was, and readers ignore what they do not know."""

import json
from typing import Any

import pytest

from telecine.facts import (
    Brief,
    Done,
    Expired,
    Failed,
    HeldLease,
    JobId,
    KeptArtifact,
    Lease,
    LeaseOutcome,
    LogEntry,
    Mode,
    Orders,
    Piece,
    Released,
    SettleReply,
    State,
    StoredArtifact,
    TaskId,
    WorkerId,
)
from telecine.wire.codec import fact_from_json, fact_to_json, from_json, to_json

LEASE = Lease(
    TaskId(7), 2, WorkerId(3), 1_000, JobId(5), "film", "cut", 1, 0, 1, 3, {"of": ["bees"]}, subject=("video", "bees")
)
KEPT = KeptArtifact(
    name="720p/1.m4s", token=2, key="5/cut@1/0/2/720p/1.m4s", size=9, sha256="0" * 64, facts={"rung": "720p"}
)
MARK = KeptArtifact(name="mark", token=1, value={"n": [1, None]})
PLAN = {"join": [{"n": 1}, None, Piece(input=2, optional=True, labels=("big",), patience=5), Piece()]}
FACTS = [
    LEASE,
    LEASE._replace(subject=None, input=[1], limit=60_000),
    KEPT,
    StoredArtifact(stage="cut", position=0, kept=KEPT, id=4),
    Brief(results={"cut": [1]}, kept={"mark": MARK, KEPT.name: KEPT}, labels=("big", "gpu"), slots=4, retried=1),
    HeldLease(task_id=TaskId(7), token=2, progress=0.5, note="half"),
    LogEntry(task_id=TaskId(7), token=2, message="ran", kind="step", data={"exit_code": 0}),
    LeaseOutcome(TaskId(7), 2, Done(result="cut", plan=PLAN, carry=(1, 2), skip=("poster",), facts={"seen": True})),
    LeaseOutcome(TaskId(7), 2, Failed("no", code="bad", permanent=True)),
    LeaseOutcome(TaskId(7), 2, Released("no time")),
    LeaseOutcome(TaskId(7), 2, Done()),
    Orders(now=9, mode=Mode.DRAINING, renewed=((TaskId(7), 2), (TaskId(8), 1)), stop=((TaskId(7), 2),)),
    SettleReply(TaskId(7), 2, accepted=True, code="done", state=State.DONE),
]


@pytest.mark.parametrize("fact", FACTS)
def test_a_fact_comes_back_as_it_was(fact: Any) -> None:
    sent = json.loads(json.dumps(to_json(fact)))

    found = from_json(type(fact), sent)

    assert (found, repr(found)) == (fact, repr(fact)), "an enum must not come back as a string"


@pytest.mark.parametrize("fact", FACTS)
def test_a_reader_ignores_fields_that_it_does_not_know(fact: Any) -> None:
    sent = json.loads(json.dumps(to_json(fact)))

    assert from_json(type(fact), {**sent, "of_a_later_release": {"x": 1}}) == fact


def test_a_field_that_is_missing_has_its_default() -> None:
    assert from_json(HeldLease, {"task_id": 7, "token": 2}) == HeldLease(task_id=TaskId(7), token=2)
    assert from_json(Done, {}) == Done()


def test_a_field_without_a_default_must_be_there() -> None:
    with pytest.raises(TypeError, match="token"):
        from_json(HeldLease, {"task_id": 7})


def test_a_bare_input_stays_one_and_a_piece_stays_a_piece() -> None:
    sent = json.loads(json.dumps(fact_to_json(Done(plan=PLAN))))

    found = fact_from_json(sent)

    assert isinstance(found, Done)
    assert found.plan == PLAN


def test_any_true_value_of_a_handler_is_written_as_a_boolean() -> None:
    sent = to_json(Done(publish=1, stop=[]))  # type: ignore[arg-type]

    assert (sent["publish"], sent["stop"]) == (True, False)


def test_a_worker_reports_nothing_that_only_recovery_knows() -> None:
    with pytest.raises(TypeError, match="cannot report Expired"):
        fact_to_json(Expired())


@pytest.mark.parametrize("data", [{}, {"done": {}, "failed": {"message": "no"}}, {"done": None}])
def test_an_outcome_is_exactly_one(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        fact_from_json(data)
