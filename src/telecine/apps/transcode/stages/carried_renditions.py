"""Re-transcoding chosen qualities: the others are taken over from the current version, if the grid is the same."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace

from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.spec import TranscodeSpec
from telecine.apps.transcode.stages.stage_inputs import PLAN
from telecine.errors import MediaRefused
from telecine.facts import StoredArtifact
from telecine.flow import Bench
from telecine.media.ladders.ladder import shared
from telecine.media.orders import Rung
from telecine.media.plain_json import from_plain


async def carried_over(bench: Bench, spec: TranscodeSpec, plan: TranscodePlan) -> TranscodePlan:
    """The plan with what it need not make: rungs that were not asked for anew, and the sound."""
    if spec.qualities is None:
        return plan
    known = {rung.name for rung in plan.rungs}
    if unknown := sorted(set(spec.qualities) - known):
        raise MediaRefused(
            f"there is no rung {unknown[0]!r} for this film; it has {', '.join(sorted(known))}", code="unknown_rung"
        )
    current = await bench.published()
    before = await _plan_before(bench, current)
    if before is None:  # nothing to take over: only what was asked for
        return replace(plan, rungs=_wanted(plan, spec.qualities))
    check_same_grid(plan, before)
    return _with_carried(plan, before, set(spec.qualities), current)


def _wanted(plan: TranscodePlan, names: Collection[str]) -> tuple[Rung, ...]:
    """The rungs that are made; they can share pictures only with each other."""
    rungs = tuple(rung for rung in plan.rungs if rung.name in names)
    return shared(rungs, plan.picture) if plan.picture is not None else rungs


async def _plan_before(bench: Bench, current: list[StoredArtifact]) -> TranscodePlan | None:
    found = next((one.kept for one in current if one.kept.name == PLAN), None)
    return None if found is None else from_plain(TranscodePlan, json.loads(await bench.read(found)))


def check_same_grid(plan: TranscodePlan, before: TranscodePlan) -> None:
    ticks = {before.inits[rung.name].timescale for rung in before.rungs if rung.name in before.inits}
    # An older release counted some rates in coarser ticks.
    if _grid_of(plan) != _grid_of(before) or ticks - {plan.timing.timescale} or _looks_different(plan, before):
        raise MediaRefused(
            "the published version has another source or other segments, so single qualities cannot be replaced; "
            "transcode all of them",
            code="other_grid",
        )


def _looks_different(plan: TranscodePlan, before: TranscodePlan) -> bool:
    """Another release maps HDR and interlaced film differently: brightness would jump when a player switches."""
    picture = plan.picture
    return picture is not None and (picture.is_hdr or picture.interlaced) and plan.pictures != before.pictures


def _grid_of(plan: TranscodePlan) -> tuple[object, ...]:
    return plan.timing, plan.lead, plan.borders, plan.origin.sha256


def same_tracks(plan: TranscodePlan, before: TranscodePlan, there: Collection[str]) -> set[str]:
    """Tracks that sound as before. The same name may stand for another stream now, or an older release cut its end."""
    if plan.heard != before.heard:
        return set()
    tracks = {(one.track, one.sound.stream, one.start) for one in before.sounds if one.track.name in there}
    return {one.track.name for one in plan.sounds if (one.track, one.sound.stream, one.start) in tracks}


def _with_carried(
    plan: TranscodePlan, before: TranscodePlan, wanted: set[str], current: list[StoredArtifact]
) -> TranscodePlan:
    """What was published and is not wanted anew; a rung that was never published is made only when asked for."""
    there = {one.kept.name.partition("/")[0] for one in current if one.kept.name.endswith(".m4s")}
    old = tuple(rung for rung in before.rungs if rung.name in there and rung.name not in wanted)
    new = _wanted(plan, wanted)
    carried = {rung.name for rung in old} | same_tracks(plan, before, there)
    rungs = sorted((*old, *new), key=lambda rung: (rung.width * rung.height, rung.maxrate))
    ids = tuple(
        one.id
        for one in current
        if one.kept.name.partition("/")[0] in carried and one.kept.name.endswith((".m4s", "/init.mp4"))
    )
    return replace(
        plan,
        rungs=tuple(rungs),
        carried=tuple(sorted(carried)),
        carried_ids=ids,
        inits={name: init for name, init in before.inits.items() if name in carried},
    )
