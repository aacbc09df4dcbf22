"""Graphs by flow id. A graph row never changes, so what was read once is true for ever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from telecine.errors import NotFound
from telecine.graph import Graph, from_json
from telecine.store import Ask, Steps


class GraphCache:
    def __init__(self) -> None:
        self._graphs: dict[int, Graph] = {}

    def put(self, flow_id: int, graph: Graph) -> None:
        self._graphs[flow_id] = graph

    def get(self, flow_id: int) -> Graph | None:
        """The graph, if it is on the graph_cache."""
        return self._graphs.get(flow_id)

    def known(self, flow_ids: Iterable[int]) -> Mapping[int, Graph] | None:
        """The graph_cache, if all of these are on it."""
        return self._graphs if all(flow_id in self._graphs for flow_id in flow_ids) else None

    def fetch(self, flow_ids: Iterable[int]) -> Steps[dict[int, Graph]]:
        """The graphs with these ids; reads those that are not on the graph_cache yet."""
        found: dict[int, Graph] = {}
        for flow_id in set(flow_ids):
            if flow_id not in self._graphs:
                rows = yield Ask("flow_get", {"id": flow_id})
                if not rows:
                    raise NotFound(f"flow row {flow_id} is missing; run `telecine doctor`")
                self._graphs[flow_id] = from_json(rows[0]["graph"])
            found[flow_id] = self._graphs[flow_id]
        return found
