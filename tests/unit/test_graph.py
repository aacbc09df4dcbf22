"""Which flows are refused, and how a graph travels as data."""

import pytest

from telecine.errors import BadFlow
from telecine.facts import Policy, Status
from telecine.graph import StageSpec, build, from_json, lane, lane_labels
from tests.support.builders import a_graph, a_stage


def refusal(*stages: StageSpec, flow: str = "film") -> str:
    with pytest.raises(BadFlow) as caught:
        build(flow, 1, stages)
    return str(caught.value)


def test_stages_are_ordered_so_that_needs_come_first() -> None:
    graph = a_graph(a_stage("join", "cut score"), a_stage("score", "cut"), a_stage("cut"))

    assert [stage.name for stage in graph.stages] == ["cut", "score", "join"]
    assert graph.numbers == {"cut": 0, "score": 1, "join": 2}
    assert graph.followers == ((1, 2), (2,), ())


def test_a_flow_without_stages_is_refused() -> None:
    assert refusal() == "flow 'film' has no stages"


def test_a_circle_is_refused_and_its_members_are_named() -> None:
    said = refusal(a_stage("cut"), a_stage("a", "b"), a_stage("b", "a"))

    assert said == "flow 'film' has a circle of needs among: a, b"


def test_a_stage_that_needs_itself_is_a_circle() -> None:
    assert refusal(a_stage("cut", "cut")) == "flow 'film' has a circle of needs among: cut"


def test_a_need_that_does_not_exist_is_refused() -> None:
    assert refusal(a_stage("cut", "shoot")) == "stage 'cut' of flow 'film' needs 'shoot', which does not exist"


def test_a_stage_that_is_declared_twice_is_refused() -> None:
    assert refusal(a_stage("cut"), a_stage("cut")) == "flow 'film' declares stage 'cut' twice"


def test_a_need_that_is_named_twice_is_refused() -> None:
    assert refusal(a_stage("cut"), a_stage("join", "cut cut")) == "stage 'join' of flow 'film' needs 'cut' twice"


def test_a_phase_that_falls_along_a_need_is_refused() -> None:
    said = refusal(a_stage("cut", phase=Status.PROCESSING), a_stage("plan", "cut", phase=Status.PLANNING))

    assert said == (
        "stage 'plan' of flow 'film' has an earlier phase than 'cut', which it needs; phases never fall along needs"
    )


def test_equal_and_rising_phases_are_fine() -> None:
    graph = a_graph(
        a_stage("plan", phase=Status.PLANNING),
        a_stage("replan", "plan", phase=Status.PLANNING),
        a_stage("send", "replan", phase=Status.UPLOADING_OUTPUTS),
    )

    assert len(graph.stages) == 3


@pytest.mark.parametrize("phase", [Status.PENDING, Status.COMPLETED, Status.FAILED, Status.CANCELLED])
def test_a_status_that_is_no_phase_is_refused(phase: Status) -> None:
    assert "phases are validating, planning" in refusal(a_stage("cut", phase=phase))


@pytest.mark.parametrize("name", ["", "a/b", "a@b", "a+b", "a,b", "a\nb"])
def test_names_that_a_lane_could_not_tell_apart_are_refused(name: str) -> None:
    assert "names and labels" in refusal(a_stage(name))
    assert "names and labels" in refusal(a_stage("cut", labels=(name,)))
    assert "names and labels" in refusal(a_stage("cut"), flow=name)


def test_a_fan_out_that_nobody_could_plan_is_refused() -> None:
    assert "needs no stage that could plan it" in refusal(a_stage("cut", fan_out=True))


@pytest.mark.parametrize(
    "policy",
    [
        Policy(max_attempts=0),
        Policy(base=-1),
        Policy(cap=-1),
        Policy(jitter=1.1),
        Policy(jitter=-0.1),
        Policy(stall=0),
        Policy(limit=-5),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(policy: Policy) -> None:
    assert refusal(a_stage("cut", policy=policy)).startswith("stage 'cut' of flow 'film':")


def test_a_graph_comes_back_from_json_as_it_was() -> None:
    graph = a_graph(
        a_stage("plan", phase=Status.PLANNING, title="Plan it"),
        a_stage("cut", "plan", fan_out=True, labels=("gpu",), policy=Policy(permanent=("bad",), stall=5)),
        a_stage("note", "plan", optional=True, weight=0.5, cost=7, version=3, priority_offset=-1),
    )

    again = from_json(graph.to_json())

    assert (again.stages, again.followers, again.numbers) == (graph.stages, graph.followers, graph.numbers)
    assert again.digest() == graph.digest()


def test_any_change_of_a_stage_changes_the_digest() -> None:
    plain = a_graph(a_stage("cut")).digest()

    changed = [a_stage("cut", version=2), a_stage("cut", optional=True), a_stage("cut", cost=5), a_stage("score")]

    assert len({plain, *(a_graph(stage).digest() for stage in changed)}) == 5


def test_a_lane_names_flow_stage_version_and_labels() -> None:
    graph = a_graph(a_stage("cut", version=2, labels=("gpu", "big")))

    assert graph.lane(0) == "film/cut@2+big+gpu"
    assert graph.lane(0, ["gpu", "av1"]) == "film/cut@2+av1+big+gpu"
    assert lane_labels(graph.lane(0)) == {"gpu", "big"}
    assert lane_labels(lane("film", "cut", 1)) == frozenset()
