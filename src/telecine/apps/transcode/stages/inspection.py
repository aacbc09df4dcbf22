"""What a worker that is not ours has made, looked at before it is recorded: nothing is believed that bytes can show.

    segment   its boxes: where it begins (tfdt), how many frames, how long, keyframes, all as the plan says; its init
    init      an init of one track
    what is shown as it is: a playlist is a playlist, a picture a picture

What a worker claims about a whole film is not trusted either, but only decoding shows it: that is what `verify` is for.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from telecine.apps.transcode.plan import AudioPlan, TranscodePlan, init_name, piece_name
from telecine.apps.transcode.stages.stage_inputs import latest
from telecine.apps.transcode.stages.verify import fault
from telecine.errors import Refused
from telecine.facts import Brief, KeptArtifact, Lease, StoredArtifact
from telecine.media.hls.recorded_film import AudioRendition, RecordedSegment, Rendition, VideoRendition
from telecine.media.mp4.boxes import DamagedBoxes, Fragment, InitFacts, fragments, read_init
from telecine.media.plain_json import from_plain
from telecine.media.timeline.grid import Chunk

# All bytes of an artifact, which hash to what is recorded of it; `ValueError` if they do not.
ReadKept = Callable[[KeptArtifact], Awaitable[bytes]]

ENCODERS = ("video", "again", "audio")
MAX_SEGMENT = 512 << 20
MAX_SHOWN = 64 << 20
MAX_KNOWN = 256
# Sound is cut at whole frames of its coder, with what that takes to start: so many samples may lie between.
SLACK = 4_096
BEGINNINGS = {
    "package": {".m3u8": b"#EXTM3U", ".json": b"{"},
    "poster": {".jpg": b"\xff\xd8\xff"},
    "sprites": {".jpg": b"\xff\xd8\xff", ".vtt": b"WEBVTT"},
}


class BadSegment(Refused):
    code = "bad_segment"


@dataclass(frozen=True, slots=True)
class ExpectedSegments:
    """What an attempt's pieces are held against."""

    plan: TranscodePlan
    renditions: dict[str, Rendition]
    numbers: range
    inits: dict[str, InitFacts]


class SegmentInspector:
    """The inspector of the transcode flow. `brief` and `shelved` are the engine's."""

    def __init__(
        self,
        brief: Callable[[Lease], Awaitable[Brief]],
        shelved: Callable[[Lease, Sequence[str]], Awaitable[list[StoredArtifact]]],
    ) -> None:
        self._brief = brief
        self._shelved = shelved
        self._known: OrderedDict[tuple[int, int], ExpectedSegments] = OrderedDict()

    async def __call__(self, lease: Lease, kept: KeptArtifact, read: ReadKept) -> None:
        """`BadSegment` if these bytes are not what this task is to make."""
        try:
            if lease.stage in ENCODERS:
                await self._segment(lease, kept, read)
            elif kept.name.endswith("/init.mp4"):
                read_init(await _bytes(kept, read, 1 << 20))
            elif lease.stage in BEGINNINGS:
                await _shown(lease.stage, kept, read)
        except (DamagedBoxes, KeyError, TypeError, ValueError) as error:
            raise BadSegment(f"{kept.name}: {error}") from error

    async def _segment(self, lease: Lease, kept: KeptArtifact, read: ReadKept) -> None:
        known = await self._of(lease, read)
        piece = _piece(kept)
        name = str(kept.facts["rung"])
        if kept.name != piece_name(name, piece.number):
            raise BadSegment(f"{kept.name} says of itself that it is segment {piece.number} of {name}")
        if name not in known.renditions or piece.number not in known.numbers:
            raise BadSegment(f"{kept.name} is not for this task to make")
        data = await _bytes(kept, read, MAX_SEGMENT)
        if why := await asyncio.to_thread(_fault, known, name, piece, kept, data):
            raise BadSegment(f"{kept.name}: {why}")

    async def _of(self, lease: Lease, read: ReadKept) -> ExpectedSegments:
        place = (lease.task_id, lease.token)
        if place not in self._known:
            self._known[place] = await self._learn(lease, read)
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
        return self._known[place]

    async def _learn(self, lease: Lease, read: ReadKept) -> ExpectedSegments:
        plan = latest((await self._brief(lease)).results)
        renditions: dict[str, Rendition] = {}
        if lease.stage == "audio":
            sounding = from_plain(AudioPlan, lease.input["sounding"])
            track, numbers, stage = sounding.track, range(plan.segments), "fetch"
            renditions[track.name] = AudioRendition(track=track, init=plan.inits[track.name])
        else:
            chunk, stage = from_plain(Chunk, lease.input), plan.init_stage
            numbers = range(chunk.first, chunk.first + chunk.count)
            renditions = {rung.name: VideoRendition(rung=rung, init=plan.inits[rung.name]) for rung in plan.made}
        kept = {one.kept.name: one.kept for one in await self._shelved(lease, [stage])}
        inits = {}
        for name in renditions:
            init = kept[init_name(name)]
            if init.sha256 != plan.inits[name].sha256:
                raise BadSegment(f"the init of {name} is not the one of the plan")
            inits[name] = read_init(await _bytes(init, read, 1 << 20))
        return ExpectedSegments(plan, renditions, numbers, inits)


def _piece(kept: KeptArtifact) -> RecordedSegment:
    facts = kept.facts
    if kept.size is None or kept.sha256 is None:
        raise ValueError("a segment has a size and a hash")
    found = tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in facts["fragments"])
    number, duration = int(facts["number"]), int(facts["duration"])
    return RecordedSegment(number=number, size=kept.size, duration=duration, sha256=kept.sha256, fragments=found)


def _fault(known: ExpectedSegments, name: str, piece: RecordedSegment, kept: KeptArtifact, data: bytes) -> str | None:
    """What is wrong with a segment, or with what is said of it."""
    init, found = known.inits[name], fragments(data, known.inits[name])
    if any(one.track != init.track for one in found):
        return "its fragments are of another track than its init"
    if tuple((one.offset, one.size, one.frames, one.first_end) for one in found) != piece.fragments:
        return "its fragments are not those that it names"
    if (kept.facts["start"], kept.facts["frames"]) != (found[0].start, sum(one.frames for one in found)):
        return "it begins elsewhere than it says, or has another number of frames"
    one = known.renditions[name]
    return fault(known.plan, one, piece, found) or (
        _off_beat(known, piece, init, found) if isinstance(one, AudioRendition) else None
    )


def _off_beat(
    known: ExpectedSegments, piece: RecordedSegment, init: InitFacts, found: tuple[Fragment, ...]
) -> str | None:
    """Sound lies on the grid of the pictures, as near as its coder can."""
    borders = (*known.plan.borders, known.plan.heard)
    begin, end = borders[piece.number], borders[piece.number + 1]
    slack = Fraction(SLACK, init.timescale)
    start, length = Fraction(found[0].start, init.timescale), Fraction(piece.duration, init.timescale)
    if abs(start - begin) > slack or abs(length - (end - begin)) > slack:
        return f"it begins at {float(start):.3f} s and lasts {float(length):.3f} s, which is off the grid"
    return None


async def _shown(stage: str, kept: KeptArtifact, read: ReadKept) -> None:
    suffix = f".{kept.name.rpartition('.')[2]}"
    begins = BEGINNINGS[stage].get(suffix)
    if begins is None:
        raise BadSegment(f"{kept.name} is nothing that the stage {stage!r} makes")
    if not (await _bytes(kept, read, MAX_SHOWN)).startswith(begins):
        raise BadSegment(f"{kept.name} is not what its name says")


async def _bytes(kept: KeptArtifact, read: ReadKept, most: int) -> bytes:
    if kept.key is None or kept.size is None or kept.size > most:
        raise BadSegment(f"{kept.name} is larger than anything of its kind")
    return await read(kept)
