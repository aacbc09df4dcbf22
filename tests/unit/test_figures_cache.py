"""A scrape parses no graph that an earlier one has parsed."""

from telecine.engine import figures
from tests.make import a_flow, a_stage


def test_graphs_of_all_flows_that_are_shown_stay_parsed() -> None:
    graphs = [a_flow(a_stage(f"stage_{number}")).graph.to_json() for number in range(figures.MAX_FLOWS)]
    figures._stages.cache_clear()

    for _ in range(3):
        names = [figures._stages(graph) for graph in graphs]

    assert names[-1] == (f"stage_{figures.MAX_FLOWS - 1}",)
    assert figures._stages.cache_info().misses == figures.MAX_FLOWS
