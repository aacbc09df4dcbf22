"""From rows to a film: what a job has recorded so far, and where each piece of it lies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from telecine.apps.transcode.plan import TranscodePlan, init_name
from telecine.facts import KeptArtifact, StoredArtifact
from telecine.media.hls.recorded_film import AudioRendition, Film, RecordedSegment, VideoRendition
from telecine.media.orders import Init

STAGES = ("fetch", "encoder", "fallback", "audio", "video", "again")


@dataclass(frozen=True, slots=True)
class RecordedRows:
    """A film and the artifacts behind it; number -1 is the init."""

    film: Film
    kept: Mapping[tuple[str, int], KeptArtifact]
    chunk_of: Mapping[tuple[str, int], int]  # the position of the task that made the piece
    segments: int  # of each rendition, when it is whole

    def piece(self, name: str, number: int) -> KeptArtifact:
        return self.kept[name, number]

    def init(self, name: str) -> KeptArtifact:
        return self.kept[name, INIT]


INIT = -1


def collect(plan: TranscodePlan, shelved: Iterable[StoredArtifact], dropped: Iterable[str] = ()) -> RecordedRows:
    """All renditions of the plan with the pieces that there are; without those that were given up."""
    kept: dict[tuple[str, int], KeptArtifact] = {}
    chunk_of: dict[tuple[str, int], int] = {}
    pieces: dict[str, list[RecordedSegment]] = {}
    names = {init_name(name): name for name in plan.inits}
    tracks = {one.track.name for one in plan.sounds}
    for one in shelved:
        facts = one.kept.facts
        if not _counts(plan, tracks, one):
            continue
        if one.kept.name in names:
            kept[names[one.kept.name], INIT] = one.kept
        elif "number" in facts and one.kept.size is not None:
            place = (str(facts["rung"]), int(facts["number"]))
            kept[place], chunk_of[place] = one.kept, one.position
            pieces.setdefault(place[0], []).append(_piece(one.kept))
    gone = set(dropped)
    videos = tuple(
        VideoRendition(rung=rung, init=_init(plan, rung.name), pieces=tuple(pieces.get(rung.name, ())))
        for rung in plan.rungs
        if rung.name not in gone
    )
    audios = tuple(
        AudioRendition(
            track=one.track,
            init=_init(plan, one.track.name),
            pieces=tuple(pieces.get(one.track.name, ())),
            language=one.sound.language,
            title=one.sound.title,
            default=one.default,
        )
        for one in plan.sounds
    )
    return RecordedRows(Film(timing=plan.timing, videos=videos, audios=audios), kept, chunk_of, plan.segments)


def _counts(plan: TranscodePlan, tracks: set[str], one: StoredArtifact) -> bool:
    """Whether it is of the stage that makes this rendition: another encoder may have begun it before."""
    folder = one.kept.name.partition("/")[0]
    if folder in plan.carried:
        return True
    if folder in tracks:
        return one.stage in ("fetch", "audio")
    return one.stage in (plan.init_stage, plan.video_stage)


def _piece(kept: KeptArtifact) -> RecordedSegment:
    facts = kept.facts
    assert kept.size is not None
    fragments = tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in facts.get("fragments") or ())
    return RecordedSegment(
        number=int(facts["number"]),
        size=kept.size,
        duration=int(facts["duration"]),
        sha256=kept.sha256 or "",
        fragments=fragments,
    )


def _init(plan: TranscodePlan, name: str) -> Init:
    return replace(plan.inits[name], name=name)


def dropped_by(results: Iterable[object] | None) -> dict[str, str]:
    """Optional rungs that some chunk gave up, and why."""
    found: dict[str, str] = {}
    for result in results or ():
        if isinstance(result, dict):
            found |= result.get("dropped") or {}
    return found
