"""Fetch: bring the bytes to where workers can read them, know every frame, and cut the film into tasks.

local file ────────────────────────────────┐
http(s), s3 ──▶ artifact `source` ─────────┼─▶ scan ─▶ index ─▶ grid, rungs, inits ─▶ fan-out
cannot be sought ──▶ artifact `remuxed` ───┘
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil
from typing import Any

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import PICTURES, AudioPlan, SkippedRung, SourceLocation, TranscodePlan
from telecine.apps.transcode.spec import TranscodeSpec, exact, parse
from telecine.apps.transcode.stages.carried_renditions import carried_over
from telecine.apps.transcode.stages.child_calls import answer, made_file
from telecine.apps.transcode.stages.encode_tasks import family_for, first_tasks, in_family, with_inits
from telecine.apps.transcode.stages.source import find_origin, probe
from telecine.apps.transcode.stages.source_feed import opened
from telecine.apps.transcode.stages.stage_inputs import INDEX
from telecine.errors import MediaRefused
from telecine.facts import Json, KeptArtifact, Outcome
from telecine.flow import Bench
from telecine.media.ladders.ladder import ChosenRungs, Ladder, climb
from telecine.media.ladders.ladder_spec import read_ladder
from telecine.media.limits import check_index, check_length
from telecine.media.orders import LATE_STREAMS, AudioTrackOrder, Remux, Scan
from telecine.media.plain_json import from_plain, to_plain
from telecine.media.source import Packets, Samples, Sound, Source, retold
from telecine.media.timeline.extent import extent_of
from telecine.media.timeline.grid import Span, span_of_sound, timing_for, timing_of
from telecine.media.timeline.index import Index, build_index
from telecine.plural import counted

REMUXED = "remuxed.mkv"
MILLISECONDS = Fraction(1000)


@dataclass(frozen=True, slots=True)
class ScannedSource:
    """The bytes that workers will read, and all that was seen in them."""

    origin: SourceLocation
    source: Source
    index: Index | None
    samples: dict[int, Samples]
    damaged: int = 0  # packets that cannot be read, of pictures or sound
    lacks: str | None = None  # what is known of an end that is not there


async def fetch(bench: Bench, options: TranscodeOptions) -> Outcome:
    """The plan of the job, and its tasks."""
    spec = parse(bench.spec)
    origin = await find_origin(bench, spec, options)
    scanned = await _scan_or_remux(bench, options, origin)
    damage = _check_damage(scanned, spec.damaged or options.damaged)
    index, plan = _plan(spec, options, scanned)
    warnings = (*scanned.source.warnings, *damage, *plan.warnings)
    plan = replace(plan, warnings=warnings)
    plan = await carried_over(bench, spec, plan)
    plan = in_family(plan, family_for(spec, bench.brief.labels, plan.made))
    plan = await with_inits(bench, options, plan)
    if index is not None:
        path = bench.scratch / INDEX
        path.write_text(json.dumps(to_plain(index)))
        await bench.keep(INDEX, path)
    for warning in warnings:
        bench.log(warning, level="warning")
    needless = [name for name, wanted in (("poster", plan.poster), ("sprites", plan.sprites)) if not wanted]
    return first_tasks(bench, options, plan, index, needless)


# -- what is in it -------------------------------------------------------------------------------------


async def _scan_or_remux(bench: Bench, options: TranscodeOptions, origin: SourceLocation) -> ScannedSource:
    """Some sources cannot be sought in, or have no proper times: a copy of their streams can, and has."""
    seen = (bench.brief.results.get("plan") or {}).get("source")
    source = from_plain(Source, seen) if seen else await probe(bench, origin, options)
    if source.seekable:
        scanned = await _scan(bench, options, origin, source)
        if scanned.index is None or not scanned.index.needs_remux:
            return scanned
    source, kept = await _remux(bench, options, origin, source)
    origin = SourceLocation(artifact=REMUXED, size=kept.size or 0, sha256=origin.sha256)
    copied = await probe(bench, origin, options)
    warnings = clock_warnings(kept.facts.get("leaps") or [], kept.facts.get("leap_count"))
    told = _warned(retold(source, copied), [*(kept.facts.get("warnings") or []), *warnings])
    scanned = await _scan(bench, options, origin, told, remuxed=True)
    # The copy is whole by its own account: what the original lacked, only the remuxer has seen.
    lacks = scanned.lacks or kept.facts.get("lacks")
    return replace(scanned, damaged=scanned.damaged + int(kept.facts["damaged"]), lacks=lacks)


def _lacking(notes: list[str]) -> str | None:
    """What the child said about an end that is not there: it tells more than a count of packets."""
    return next((note for note in notes if note.startswith("the file lacks")), None)


async def _scan(
    bench: Bench, options: TranscodeOptions, origin: SourceLocation, source: Source, *, remuxed: bool = False
) -> ScannedSource:
    order = Scan(
        format=source.format,
        picture=source.picture,
        sounds=source.sounds,
        limits=options.limits(),
        size=origin.size,
    )
    notes: list[str] = []
    async with opened(bench, origin) as reading:
        told = await answer(bench, order, reading, of=origin.size, notes=notes)
    found = json.loads(await asyncio.to_thread(made_file(bench, "index.json").read_text))
    samples = {one.stream: one for one in (from_plain(Samples, item) for item in found["sounds"])}
    index = None
    if source.picture is not None:
        packets = from_plain(Packets, found["packets"])
        index = build_index(packets, declared=source.picture.rate, remuxed=remuxed)
        check_index(index, options.bounds)
    source = _warned(source, _head_warnings(told["undecodable"]))
    return ScannedSource(origin, source, index, samples, told["damaged"], _lacking(notes))


def _warned(source: Source, warnings: list[str]) -> Source:
    return replace(source, warnings=(*source.warnings, *warnings))


def _head_warnings(frames: int) -> list[str]:
    """What is said of a recording that begins between two keyframes."""
    if not frames:
        return []
    what = "frame, which cannot be decoded, is" if frames == 1 else f"{frames} frames, which cannot be decoded, are"
    return [f"the source begins between two keyframes: its first {what} left out"]


def clock_warnings(leaps: list[str], count: int | None = None) -> list[str]:
    """What is said of a recording whose clock jumps; the first of many stands for all. `count`: if not all are told."""
    others = (count or len(leaps)) - 1
    more = f", and {counted(others, 'more time')}" if others > 0 else ""
    return [f"{leap}{more}; the parts were joined" for leap in leaps[:1]]


async def _remux(
    bench: Bench, options: TranscodeOptions, origin: SourceLocation, source: Source
) -> tuple[Source, KeptArtifact]:
    """The copy, and the source with all its tracks: some begin in the middle, where only a thorough probe looks."""
    kept = await bench.kept(REMUXED, check=True)
    if kept is not None and kept.facts.get("source"):
        source = from_plain(Source, kept.facts["source"])
    elif source.unclear if kept is None else kept.facts.get("thorough"):  # which an older release has kept
        source = await probe(bench, origin, options, thorough=True)
    if kept is None:
        found, notes = await _copy(bench, options, origin, source)
        if LATE_STREAMS in notes and not source.thorough:
            source = await probe(bench, origin, options, thorough=True)
            found, notes = await _copy(bench, options, origin, source)
        path = made_file(bench, REMUXED)
        facts: dict[str, Json] = {"damaged": found["damaged"], "lacks": _lacking(notes), "leaps": found["leaps"]}
        facts |= {name: found[name] for name in ("leap_count", "warnings")} | {"late": LATE_STREAMS in notes}
        thorough = {"source": to_plain(source)} if source.thorough else {}  # for the next attempt: it took a long read
        kept = await bench.keep(REMUXED, path, **facts, **thorough)
        path.unlink()
        bench.log("the source cannot be sought in exactly, so its streams were copied into a file that can")
    if kept.facts.get("late"):
        source = _warned(source, [f"{LATE_STREAMS}: these are left out"])
    return source, kept


async def _copy(
    bench: Bench, options: TranscodeOptions, origin: SourceLocation, source: Source
) -> tuple[dict[str, Any], list[str]]:
    streams = [source.picture.stream] if source.picture else []
    streams += [sound.stream for sound in source.sounds]
    order = Remux(
        format=source.format,
        streams=tuple(streams),
        thorough=source.thorough,
        limits=options.limits(),
        size=origin.size,
    )
    notes: list[str] = []
    async with opened(bench, origin) as reading:
        return await answer(bench, order, reading, of=origin.size, notes=notes), notes


def _check_damage(scanned: ScannedSource, rule: str) -> tuple[str, ...]:
    """Half a film is never published in silence."""
    promised = next(iter(scanned.source.damage), None)
    if not scanned.damaged and promised is None:
        return ()
    what = promised or scanned.lacks or f"{scanned.damaged} of its packets cannot be read"
    sentence = f"the source is damaged: {what}"
    if rule == "fail":
        raise MediaRefused(f"{sentence}; repair it, or take what is left with --damaged warn", code="damaged")
    return (f"{sentence}; what could be read was used",)


# -- what becomes of it --------------------------------------------------------------------------------


def _plan(spec: TranscodeSpec, options: TranscodeOptions, scanned: ScannedSource) -> tuple[Index | None, TranscodePlan]:
    """What is made of the source; the index as the plan needs it."""
    segment = exact(spec.segment_seconds or options.segment_seconds)
    gop = min(exact(spec.gop_seconds or options.gop_seconds), segment)
    source, index = scanned.source, scanned.index
    heard = [scanned.samples[sound.stream] for sound in _chosen(spec, scanned)]
    climbed, warnings = ChosenRungs(rungs=()), _silent(scanned)
    if index is not None and source.picture is not None:
        alone = timing_for(index, segment=segment, gop=gop)
        extent = extent_of(index, alone, heard, exact(options.bounds.seconds))
        index, timing, span, warnings = extent.index, extent.timing, extent.span, warnings + extent.warnings
        climbed = climb(ladder_of(spec, options), source.picture, timing.rate)
    else:
        span = _span_of_sound(heard, options, segment)
        timing = timing_of(MILLISECONDS, ceil(span.length * MILLISECONDS), segment=segment, gop=gop)
    return index, TranscodePlan(
        origin=scanned.origin,
        format=source.format,
        picture=source.picture,
        timing=timing,
        length=span.length if index is None else timing.frames / timing.rate,
        sound_length=span.length,
        borders=span.borders,
        rungs=climbed.rungs,
        skipped=tuple(SkippedRung(name=one.name, reason=one.reason) for one in climbed.skipped),
        sounds=_soundings(spec, scanned, span),
        inits={},
        verify=spec.verify,
        mend=(spec.damaged or options.damaged) == "warn",
        poster=spec.poster and bool(climbed.rungs),
        sprites=spec.sprites and bool(climbed.rungs),
        lead=index.lead if index is not None else 0,
        warnings=warnings,
        pictures=PICTURES,
    )


def _silent(scanned: ScannedSource) -> tuple[str, ...]:
    """Tracks that a container announces and that hold nothing."""
    silent = [sound for sound in scanned.source.sounds if sound.stream not in scanned.samples]
    return tuple(f"audio stream {sound.stream} is left out: it holds no sound" for sound in silent)


def _span_of_sound(heard: list[Samples], options: TranscodeOptions, segment: Fraction) -> Span:
    if not heard:
        raise MediaRefused("the source has neither pictures nor a single sample of sound", code="no_streams")
    span = span_of_sound(*heard, segment=segment)
    check_length(span.length, options.bounds)
    return span


def ladder_of(spec: TranscodeSpec, options: TranscodeOptions) -> Ladder:
    ladder = read_ladder(spec.ladder or options.ladder, options.ladders)
    return tuple(
        replace(step, preset=spec.preset or step.preset, lossless=step.lossless or spec.lossless) for step in ladder
    )


def _chosen(spec: TranscodeSpec, scanned: ScannedSource) -> list[Sound]:
    """The tracks that are wanted. One without a single sample is left out: some containers only announce it."""
    sounds = [sound for sound in scanned.source.sounds if sound.stream in scanned.samples]
    if spec.audio == "none" and scanned.source.picture is not None:
        return []
    return sorted(sounds, key=lambda sound: not sound.default)[:1] if spec.audio == "first" else sounds


def _soundings(spec: TranscodeSpec, scanned: ScannedSource, span: Span) -> tuple[AudioPlan, ...]:
    sounds = _chosen(spec, scanned)
    chosen = next((sound for sound in sounds if sound.default), sounds[0] if sounds else None)
    return tuple(
        AudioPlan(
            track=AudioTrackOrder(name=f"audio-{number}"),
            sound=sound,
            start=round(span.start / sound.time_base),
            default=sound is chosen,
        )
        for number, sound in enumerate(sounds, 1)
    )
