"""Older versions of a video: shown again, kept from retention, let go."""

from __future__ import annotations

import json
from collections.abc import Iterable

from telecine.apps.transcode.names import KIND
from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.publish import facts_of
from telecine.apps.transcode.stages.stage_inputs import PLAN
from telecine.artifacts import Artifacts
from telecine.engine import Engine
from telecine.engine.queries.view_models import SubjectView, VersionView
from telecine.errors import NotFound, WrongState
from telecine.facts import Json, StoredArtifact
from telecine.media.plain_json import from_plain


async def roll_back(
    engine: Engine, artifacts: Artifacts, video_id: str, number: int | None = None, *, actor: str = ""
) -> int:
    """Show an older version again (None: the one before); the number of the version that is shown now.

    Refused if any of its files is gone. The video's facts go with it.
    """
    video = await engine.subjects.get(KIND, video_id)
    version = _chosen(video, number)
    files = await engine.queries.of_version(version.id)
    if gone := await _missing(artifacts, files):
        raise WrongState(f"version {version.number} is not whole: {len(gone)} of its files are gone, first {min(gone)}")
    facts = await _facts(artifacts, files)
    who = (KIND, video_id)
    await engine.subjects.show_version(who, version.number, facts=facts, actor=actor)
    return version.number


async def keep(engine: Engine, video_id: str, number: int, wanted: bool = True, *, actor: str = "") -> bool:
    """Protect a version from retention, or let it go; False if it was so already."""
    return await engine.subjects.keep_version((KIND, video_id), number, wanted, actor=actor)


def _chosen(video: SubjectView, number: int | None) -> VersionView:
    if video.version is None:
        raise WrongState(f"video {video.id!r} has no published version yet")
    if number is None:
        older = (one for one in video.versions if one.number < (video.version or 0) and one.files)
        found = next(older, None)
        if found is None:
            raise WrongState(f"video {video.id!r} has no older version than {video.version}")
        return found
    found = next((one for one in video.versions if one.number == number), None)
    if found is None:
        raise NotFound(f"video {video.id!r} has no version {number}")
    return found


async def _missing(artifacts: Artifacts, files: Iterable[StoredArtifact]) -> set[str]:
    """Files that are not where they were stored. Lists, not single questions: a film has thousands of them."""
    keys = {one.kept.key for one in files if one.kept.key is not None}
    there: set[str] = set()
    for job in sorted({key.partition("/")[0] for key in keys}):
        there.update(await artifacts.under(f"{job}/"))
    return keys - there


async def _facts(artifacts: Artifacts, files: list[StoredArtifact]) -> dict[str, Json]:
    """What publishing that version said about the video."""
    kept = next((one.kept for one in files if one.kept.name == PLAN and one.kept.key is not None), None)
    if kept is None or kept.key is None:
        return {}
    plan = from_plain(TranscodePlan, json.loads(await artifacts.read(kept.key, size=kept.size)))
    sizes: dict[str, int] = {}
    for one in files:
        folder, slash, name = one.kept.name.partition("/")
        if slash and name.endswith(".m4s"):
            sizes[folder] = sizes.get(folder, 0) + (one.kept.size or 0)
    return facts_of(plan, {"dropped": [rung.name for rung in plan.rungs if rung.name not in sizes], "sizes": sizes})
