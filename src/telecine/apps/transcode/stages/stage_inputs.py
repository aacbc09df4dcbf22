"""What a stage reads of the ones before it."""

from __future__ import annotations

import json
from collections.abc import Mapping

from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.recorded_rows import STAGES
from telecine.errors import ChildFailed
from telecine.facts import Json, KeptArtifact, StoredArtifact
from telecine.flow import Bench
from telecine.media.plain_json import from_plain
from telecine.media.timeline.index import Index

INDEX = "index.json"
PLAN = "plan.json"
PLANNERS = ("fetch", "encoder", "fallback")  # stages whose result is a plan; the last one that has one counts


def plan_of(bench: Bench) -> TranscodePlan:
    """The plan as it stands: as `fetch` made it, or the stage that had to change it."""
    return latest(bench.brief.results)


def latest(results: Mapping[str, Json]) -> TranscodePlan:
    for stage in reversed(PLANNERS):
        result = results.get(stage)
        found = result[0] if isinstance(result, list) and result else result
        if found:
            return from_plain(TranscodePlan, found)
    raise ChildFailed("there is no plan yet", code="no_plan")


async def kept_by_fetch(bench: Bench, name: str) -> KeptArtifact:
    for one in await bench.artifacts("fetch"):
        if one.kept.name == name:
            return one.kept
    raise missing(name)


def missing(name: str) -> ChildFailed:
    return ChildFailed(f"{name} of the fetch stage is gone: submit the film again", code="artifact_missing")


async def index_of(bench: Bench) -> Index:
    """Every frame of the source, and where one may seek to."""
    return from_plain(Index, json.loads(await bench.read(await kept_by_fetch(bench, INDEX))))


async def all_pieces(bench: Bench, plan: TranscodePlan) -> list[StoredArtifact]:
    """What this job has made so far, and what it takes over from the version before."""
    found = list(await bench.artifacts(*STAGES))
    if plan.carried_ids:
        wanted = set(plan.carried_ids)
        taken = [one for one in await bench.published() if one.id in wanted]
        if len(taken) != len(wanted):
            raise ChildFailed(
                "another version was published meanwhile, so its parts cannot be taken over: submit this again",
                code="version_changed",
                permanent=True,
            )
        found += taken
    return found
