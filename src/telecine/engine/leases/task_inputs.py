"""What a handler may read beyond its brief: what its job has kept, what is published, how many work beside it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.leases.claim import kept_of
from telecine.engine.leases.recovery import OFFLINE
from telecine.errors import BadSpec
from telecine.facts import Lease, StoredArtifact
from telecine.store import Ask, Row, Steps, Store
from telecine.world import World

SLOTS_SECONDS = 1.0


def artifacts(lease: Lease, stages: Sequence[str], graph_cache: GraphCache) -> Steps[list[StoredArtifact]]:
    """All that these stages (none named: all) of the lease's job have kept so far, in their present version."""
    [job] = yield Ask("job_flow", {"id": lease.job_id})
    graph = (yield from graph_cache.fetch([job["flow_id"]]))[job["flow_id"]]
    if unknown := next((name for name in stages if name not in graph.numbers), None):
        raise BadSpec(f"flow {graph.flow!r} has no stage {unknown!r}; it has {', '.join(graph.numbers)}")
    wanted = {"job_id": lease.job_id, "stages": list(stages), "all_stages": not stages}
    rows = yield Ask("kept_by_job", wanted)
    versions = {stage.name: stage.version for stage in graph.stages}
    return [shelved(row) for row in rows if row["stage_version"] == versions.get(row["stage"])]


def published(subject: tuple[str, str] | None) -> Steps[list[StoredArtifact]]:
    """The artifacts of the version that the subject shows."""
    if subject is None:
        return []
    rows = yield Ask("published_of", {"kind": subject[0], "id": subject[1]})
    return [shelved(row) for row in rows]


def shelved(row: Row) -> StoredArtifact:
    return StoredArtifact(stage=row["stage"], position=row["position"], kept=kept_of(row), id=row["id"])


class FleetSlots(NamedTuple):
    """The live workers that serve a flow: how many tasks they can run at once, and what they offer."""

    slots: int
    labels: tuple[str, ...]


class Slots:
    """Who could help. Asked with every brief, so an answer serves for a second."""

    def __init__(self, store: Store, world: World) -> None:
        self._store, self._world = store, world
        self._known: dict[str, tuple[float, FleetSlots]] = {}

    async def of(self, flow: str) -> FleetSlots:
        """At least one slot: whoever asks has it."""
        until, fleet = self._known.get(flow, (0.0, FleetSlots(1, ())))
        now = self._world.mono()
        if now >= until:
            fleet = await self._store.read(lambda: _fleet(flow))
            self._known[flow] = (now + SLOTS_SECONDS, fleet)
        return fleet


def _fleet(flow: str) -> Steps[FleetSlots]:
    rows = yield Ask("fleet_of", {"flow": flow, "within": OFFLINE})
    labels = {label for row in rows for label in json.loads(row["labels"])}
    return FleetSlots(max(1, sum(row["slots"] for row in rows)), tuple(sorted(labels)))
