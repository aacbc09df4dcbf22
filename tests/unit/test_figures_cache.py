"""A scrape parses no graph that an earlier one has parsed."""

from telecine.engine.queries import gauges
from tests.support.builders import a_flow, a_stage


def test_graphs_of_all_flows_that_are_shown_stay_parsed() -> None:
    graphs = [a_flow(a_stage(f"stage_{number}")).graph.to_json() for number in range(gauges.MAX_FLOWS)]
    gauges._stages.cache_clear()

    for _ in range(3):
        names = [gauges._stages(graph) for graph in graphs]

    assert names[-1] == (f"stage_{gauges.MAX_FLOWS - 1}",)
    assert gauges._stages.cache_info().misses == gauges.MAX_FLOWS
