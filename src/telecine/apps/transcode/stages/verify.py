"""Verify: nothing is published on trust. The boxes of every segment, the playlists, and decoded samples of each chunk.

An encoder that exits with 0 proves nothing; what a player will read is looked at instead.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import TranscodePlan
from telecine.apps.transcode.stages.child_calls import answer
from telecine.apps.transcode.stages.package import MASTER
from telecine.apps.transcode.stages.recorded_rows import INIT, RecordedRows, collect
from telecine.apps.transcode.stages.stage_inputs import all_pieces, plan_of
from telecine.facts import Done, Failed, KeptArtifact, Outcome
from telecine.flow import Bench
from telecine.media.hls.lint import check
from telecine.media.hls.lint_media import LintFinding, MeasuredSegment, measured
from telecine.media.hls.recorded_film import RecordedSegment, Rendition, VideoRendition
from telecine.media.mp4.box_walk import DamagedBoxes
from telecine.media.mp4.boxes import Fragment, InitFacts, fragments, read_init
from telecine.media.orders import Decode

# What one child decodes: files that lie in the scratch folder together, and frames that take it less than a stall.
MAX_FILES = 48
MAX_FRAMES = 2_000


@dataclass(frozen=True, slots=True)
class DecodeSample:
    """Some bytes of one rendition that must decode to exactly so many frames."""

    name: str
    parts: tuple[tuple[KeptArtifact, int, int], ...]  # artifact, offset, size
    frames: int


async def verify(bench: Bench, options: TranscodeOptions) -> Outcome:
    plan = plan_of(bench)
    dropped = (bench.brief.results["package"] or {}).get("dropped") or {}
    recorded = collect(plan, await all_pieces(bench, plan), dropped)
    seen: dict[str, MeasuredSegment] = {}
    pieces = sum(len(one.pieces) for one in recorded.film.renditions)
    for one in recorded.film.renditions:
        if len(one.pieces) != plan.segments:
            return Failed(f"{one.name} has {len(one.pieces)} of {plan.segments} segments", code="incomplete")
        init = read_init(await bench.read(recorded.init(one.name)))
        for piece in sorted(one.pieces, key=lambda piece: piece.number):
            kept = recorded.piece(one.name, piece.number)
            found = await asyncio.to_thread(examine, (plan, one, piece), init, kept, await bench.read(kept))
            if isinstance(found, str):
                return Failed(f"{one.name}, segment {piece.number}: {found}", code="bad_segment")
            seen[str(kept.key)] = found
            bench.progress(len(seen), 2 * pieces)
    if findings := await _read_playlists(bench, recorded, seen):
        return Failed(f"the playlists break a rule: {findings[0]}", code="bad_playlist")
    samples, decoded = list(_samples(plan, recorded)), 0
    for some in _batches(samples):
        await _decode(bench, options, plan, recorded, some)
        decoded += len(some)
        bench.progress(len(samples) + decoded, 2 * len(samples))
    return Done(result={"segments": len(seen), "samples": len(samples)})


def examine(
    about: tuple[TranscodePlan, Rendition, RecordedSegment], init: InitFacts, kept: KeptArtifact, data: bytes
) -> MeasuredSegment | str:
    """The segment as it is, or what is wrong with it."""
    if hashlib.sha256(data).hexdigest() != kept.sha256:
        return "its bytes are not those that were recorded"
    try:
        return fault(*about, fragments(data, init)) or measured(data, init)
    except DamagedBoxes as error:
        return str(error)


async def _read_playlists(bench: Bench, recorded: RecordedRows, seen: dict[str, MeasuredSegment]) -> list[LintFinding]:
    """Read what a player will read, from the master on; segments are known already."""
    lists = {str(one.kept.key): one.kept for one in await bench.artifacts("package")}
    inits = {str(kept.key): kept for (_, number), kept in recorded.kept.items() if number == INIT}
    texts = {key: await bench.read(kept) for key, kept in {**lists, **inits}.items()}
    master = next(key for key, kept in lists.items() if kept.name == MASTER)
    return await asyncio.to_thread(check, texts.__getitem__, master, lambda uri, init: seen[uri])


def fault(plan: TranscodePlan, one: Rendition, piece: RecordedSegment, found: tuple[Fragment, ...]) -> str | None:
    """What is wrong with a segment, if anything: its time, its frames, its keyframes, its length."""
    ticks = sum(sum(fragment.durations) for fragment in found)
    if ticks != piece.duration:
        return f"it lasts {ticks} ticks, not {piece.duration}"
    for before, after in pairwise(found):
        if before.start + sum(before.durations) != after.start:
            return "its fragments do not follow each other"
    if not isinstance(one, VideoRendition):
        return None
    frames = plan.timing.frames_of(piece.number)
    if (found[0].start, sum(len(fragment.durations) for fragment in found)) != (
        frames.start * plan.timing.step,
        len(frames),
    ):
        return f"it begins at {found[0].start} and has other frames than {frames.start} to {frames.stop - 1}"
    if not all(fragment.first_is_key for fragment in found):
        return "a fragment does not begin with a keyframe"
    return None


def _samples(plan: TranscodePlan, recorded: RecordedRows) -> Iterator[DecodeSample]:
    """The first and last GOP of what each task made, or all of it."""
    for one in recorded.film.renditions:
        if one.name in plan.carried:
            continue
        tasks: dict[int, list[RecordedSegment]] = {}
        for piece in sorted(one.pieces, key=lambda piece: piece.number):
            tasks.setdefault(recorded.chunk_of[one.name, piece.number], []).append(piece)
        for some in tasks.values():
            yield from _of_task(plan, one, some, recorded)


def _of_task(
    plan: TranscodePlan, one: Rendition, some: list[RecordedSegment], recorded: RecordedRows
) -> Iterator[DecodeSample]:
    spans = [
        (recorded.piece(one.name, piece.number), offset, size, frames)
        for piece in some
        for offset, size, frames, _ in piece.fragments
    ]
    if not isinstance(one, VideoRendition) or plan.verify == "full":
        if plan.verify != "full":
            spans = spans[:1]
        yield DecodeSample(one.name, tuple(span[:3] for span in spans), sum(span[3] for span in spans))
        return
    for kept, offset, size, frames in spans if len(spans) == 1 else (spans[0], spans[-1]):
        yield DecodeSample(one.name, ((kept, offset, size),), frames)


def _batches(samples: list[DecodeSample]) -> Iterator[list[DecodeSample]]:
    some: list[DecodeSample] = []
    for sample in samples:
        if some and (len(some) == MAX_FILES or sum(one.frames for one in some) + sample.frames > MAX_FRAMES):
            yield some
            some = []
        some.append(sample)
    if some:
        yield some


async def _decode(
    bench: Bench, options: TranscodeOptions, plan: TranscodePlan, recorded: RecordedRows, some: list[DecodeSample]
) -> None:
    files = []
    for number, sample in enumerate(some):
        name = f"sample-{number:03d}.mp4"
        with (bench.scratch / name).open("wb") as file:
            file.write(await bench.read(recorded.init(sample.name)))
            for kept, offset, size in sample.parts:
                file.write(await bench.read(kept, offset, size))
        files.append(name)
    order = Decode(
        files=tuple(files), frames=tuple(sample.frames for sample in some), limits=options.limits(plan.picture)
    )
    await answer(bench, order)
    for name in files:
        (bench.scratch / name).unlink()
