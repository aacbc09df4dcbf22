"""How a user declares work."""

import pytest

from telecine import Done, Failed, Flow
from telecine.errors import BadFlow
from telecine.facts import Status
from telecine.flow import outcome_of
from tests.support.builders import nothing


def a_handler(bench: object) -> None: ...


def test_a_stage_is_named_after_its_handler_and_titled_for_people() -> None:
    flow = Flow("film")

    flow.stage()(a_handler)

    [stage] = flow.graph.stages
    assert (stage.name, stage.title) == ("a_handler", "A handler")
    assert flow.handlers == {"a_handler": a_handler}
    assert flow.runs == {"a_handler": "process"}


def test_times_are_declared_in_seconds_and_kept_in_milliseconds() -> None:
    flow = Flow("film")

    flow.stage("cut", cost=2.5, backoff=0.5, backoff_cap=60, stall=30, limit=3600)(a_handler)

    [stage] = flow.graph.stages
    assert stage.cost == 2_500
    assert (stage.policy.base, stage.policy.cap, stage.policy.stall, stage.policy.limit) == (
        500,
        60_000,
        30_000,
        3_600_000,
    )


def test_the_defaults_are_those_of_the_contract() -> None:
    flow = Flow("film")

    flow.stage("cut")(a_handler)

    [stage] = flow.graph.stages
    assert stage.cost == 1_000
    assert stage.phase is Status.PROCESSING
    assert (stage.policy.max_attempts, stage.policy.base, stage.policy.cap, stage.policy.jitter) == (
        3,
        10_000,
        300_000,
        0.2,
    )
    assert (stage.policy.stall, stage.policy.limit, stage.policy.permanent) == (None, None, ())


def test_an_unknown_phase_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadFlow, match="phase 'cutting' is unknown; phases are validating, planning"):
        Flow("film").stage(phase="cutting")


def test_an_inline_handler_must_be_async() -> None:
    flow = Flow("film")

    with pytest.raises(BadFlow, match="runs inline, so its handler must be async"):
        flow.stage("cut", run="inline")(a_handler)
    flow.stage("cut", run="inline")(nothing)

    assert flow.runs == {"cut": "inline"}


def test_a_stage_that_is_added_later_is_in_the_graph() -> None:
    flow = Flow("film")
    flow.stage("cut")(a_handler)
    assert len(flow.graph.stages) == 1

    flow.stage("join", needs=["cut"])(a_handler)

    assert [stage.name for stage in flow.graph.stages] == ["cut", "join"]


def test_nothing_returned_means_done() -> None:
    assert outcome_of(None) == Done()
    assert outcome_of(Done(result=1)) == Done(result=1)
    assert outcome_of(Failed("no")) == Failed("no")


def test_anything_else_returned_is_a_bug_of_the_handler() -> None:
    outcome = outcome_of({"ok": True})

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.permanent) == ("bad_return", True)
    assert "returned dict" in outcome.message
