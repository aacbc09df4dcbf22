"""Which lanes a worker serves: every stage that it knows and has the labels for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations

from telecine.errors import BadSpec
from telecine.flow import Flow

MAX_LABELS = 8


def lanes_of(flows: Iterable[Flow], labels: Iterable[str]) -> dict[str, str]:
    """Lane -> flow. A planned piece may ask for further labels, so a fanned-out stage has a lane per combination."""
    mine = frozenset(labels)
    if len(mine) > MAX_LABELS:
        raise BadSpec(f"a worker has at most {MAX_LABELS} labels, not {len(mine)}")
    found: dict[str, str] = {}
    for flow in flows:
        for number, stage in enumerate(flow.graph.stages):
            if mine.issuperset(stage.labels):
                spare = sorted(mine.difference(stage.labels)) if stage.fan_out else []
                found.update({flow.graph.lane(number, extra): flow.name for extra in _combinations(spare)})
    return found


def _combinations(labels: list[str]) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(labels, n) for n in range(len(labels) + 1))
