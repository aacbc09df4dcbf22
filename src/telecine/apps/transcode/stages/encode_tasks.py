"""Inits and tasks: what each rendition begins with, and who encodes which part of it.

    in software  fetch ───────────────────────────▶ video × chunk
    in hardware  fetch ─▶ encoder (on a worker that has it) ─▶ video × chunk ─▶ fallback ─▶ again × chunk

A rendition never mixes two encoders. One in hardware that nobody takes in time, or that fails, is made again in
software from its first segment: `fallback` looks whether all is there, and plans it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import TranscodePlan, init_name
from telecine.apps.transcode.spec import TranscodeSpec, parse
from telecine.apps.transcode.stages.child_calls import made_file
from telecine.apps.transcode.stages.recorded_rows import collect
from telecine.apps.transcode.stages.stage_inputs import all_pieces, index_of, plan_of
from telecine.errors import BadSpec
from telecine.facts import SECOND, Done, Json, Outcome, Piece
from telecine.flow import Bench
from telecine.media.ladders.encoder_families import FAMILIES, X264, EncoderFamily
from telecine.media.orders import AudioTrackOrder, Init, MakeInits, Rung, Timing, plain_order
from telecine.media.plain_json import from_plain, to_plain
from telecine.media.planner import plan_chunks
from telecine.media.timeline.grid import Chunk
from telecine.media.timeline.index import Index

HARDWARE = ("encoder", "fallback", "again")  # stages that only a film in hardware needs


def family_for(spec: TranscodeSpec, labels: Sequence[str], rungs: Sequence[Rung]) -> EncoderFamily:
    """The encoder that was asked for; `auto`: hardware, if a live worker offers it and it can make all these rungs."""
    if spec.encoder != "auto":
        if spec.encoder not in FAMILIES:
            raise BadSpec(f"there is no encoder {spec.encoder!r}; use auto or one of {', '.join(FAMILIES)}")
        return FAMILIES[spec.encoder]
    needs_lossless = any(rung.lossless for rung in rungs)
    able = (one for one in FAMILIES.values() if one.hardware and (one.lossless or not needs_lossless))
    return next((one for one in able if one.label in labels), X264)


def in_family(plan: TranscodePlan, family: EncoderFamily) -> TranscodePlan:
    """The plan with all rungs that it makes in one family."""
    made = {rung.name for rung in plan.made}
    rungs = tuple(replace(rung, family=family.name) if rung.name in made else rung for rung in plan.rungs)
    return replace(plan, rungs=rungs)


def family_of(plan: TranscodePlan) -> EncoderFamily:
    return FAMILIES[plan.made[0].family] if plan.made else X264


def first_tasks(
    bench: Bench, options: TranscodeOptions, plan: TranscodePlan, index: Index | None, needless: Sequence[str]
) -> Done:
    """What `fetch` ends with: sound, and chunks, or first of all a look at the hardware."""
    audio: list[Json] = [{"sounding": to_plain(one)} for one in plan.sounds if one.track.name not in plan.carried]
    family = family_of(plan)
    if family.label is not None and index is not None:
        look = Piece(labels=(family.label,), optional=True, patience=round(options.hardware_patience * SECOND))
        return Done(result=to_plain(plan), plan={"audio": audio, "encoder": [look]}, skip=tuple(needless))
    chunks = [to_plain(chunk) for chunk in chunks_for(bench, plan, index)] if index is not None else []
    return Done(result=to_plain(plan), plan={"audio": audio, "video": chunks}, skip=(*needless, *HARDWARE))


async def open_encoder(bench: Bench, options: TranscodeOptions) -> Outcome:
    """On a worker that has the hardware: its inits, which also show that it works; then its chunks."""
    plan = replace(plan_of(bench), init_stage="encoder")
    plan = await _inits(bench, options, plan, plan.made, ())
    label = family_of(plan).label
    assert label is not None
    patience = round(options.hardware_patience * SECOND)
    chunks = [
        Piece(input=to_plain(chunk), labels=(label,), optional=True, patience=patience)
        for chunk in chunks_for(bench, plan, await index_of(bench))
    ]
    return Done(result=to_plain(plan), plan={"video": chunks})


async def fall_back(bench: Bench, options: TranscodeOptions) -> Outcome:
    """Is everything there that the hardware was to make? If not: all of it again, in software."""
    plan = plan_of(bench)
    if plan.init_stage == "encoder" and await _is_whole(bench, plan):
        return Done(skip=("again",))
    family = family_of(plan)
    warning = f"the encoder {family.name} did not make all of this film, so {family.fallback or X264.name} makes it"
    bench.log(warning, level="warning")
    plan = replace(plan, init_stage="fallback", video_stage="again", warnings=(*plan.warnings, warning))
    plan = in_family(plan, FAMILIES[family.fallback or X264.name])
    plan = await _inits(bench, options, plan, plan.made, ())
    chunks = [to_plain(chunk) for chunk in chunks_for(bench, plan, await index_of(bench))]
    return Done(result=to_plain(plan), plan={"again": chunks})


async def _is_whole(bench: Bench, plan: TranscodePlan) -> bool:
    recorded = collect(plan, await all_pieces(bench, plan))
    made = {rung.name for rung in plan.made}
    return all(len(video.pieces) == plan.segments for video in recorded.film.videos if video.name in made)


async def with_inits(bench: Bench, options: TranscodeOptions, plan: TranscodePlan) -> TranscodePlan:
    """The first bytes of each rendition, known before any of them is encoded: the master playlist is final from now."""
    rungs = plan.made if family_of(plan).label is None else ()
    return await _inits(
        bench, options, plan, rungs, tuple(one.track for one in plan.sounds if one.track.name not in plan.carried)
    )


async def _inits(
    bench: Bench,
    options: TranscodeOptions,
    plan: TranscodePlan,
    rungs: tuple[Rung, ...],
    tracks: tuple[AudioTrackOrder, ...],
) -> TranscodePlan:
    timing = plan.timing
    order = MakeInits(rate=timing.rate, gop=timing.gop, rungs=rungs, tracks=tracks, limits=options.limits(plan.picture))
    inits = dict(plan.inits)
    async with bench.child(plain_order(order)) as child:
        async for message in child:
            match message:
                case {"init": said}:
                    init = from_plain(Init, said)
                    name = init_name(init.name)
                    await bench.keep(name, made_file(bench, init.path), codecs=init.codecs, timescale=init.timescale)
                    inits[init.name] = replace(init, path=name)
    return replace(plan, inits=inits)


def chunks_for(bench: Bench, plan: TranscodePlan, index: Index) -> list[Chunk]:
    """The tasks that the pictures are cut into."""
    if not plan.made:
        return []
    asked = parse(bench.spec).chunk_segments
    if asked and not index.sequential:
        return _cut(plan.timing, asked)
    return plan_chunks(index, plan.timing, bench.slots)


def _cut(timing: Timing, most: int) -> list[Chunk]:
    firsts = range(0, timing.segments, most)
    return [Chunk(first=first, count=min(most, timing.segments - first)) for first in firsts]
