"""The long stages: chunks of video for all rungs, and whole audio tracks. What is recorded is never made again."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from typing import Any

from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.plan import AudioPlan, TranscodePlan, piece_name
from telecine.apps.transcode.stages.child_calls import made_file
from telecine.apps.transcode.stages.encode_tasks import family_of
from telecine.apps.transcode.stages.source_feed import opened
from telecine.apps.transcode.stages.stage_inputs import index_of, plan_of
from telecine.errors import ChildFailed
from telecine.facts import Done, Failed, Json, Outcome
from telecine.flow import Bench, MediaChild
from telecine.media.orders import EncodeAudio, Segment, plain_order
from telecine.media.plain_json import from_plain
from telecine.media.planner import missing, video_order
from telecine.media.timeline.grid import Chunk

AT_ONCE = 32
LOOKING_SHARE = 0.001


class SegmentRecorder:
    """What a child makes, kept piece by piece; the child hears of each, and may then close the next."""

    def __init__(self, bench: Bench, child: MediaChild, before: int, total: int) -> None:
        self._bench = bench
        self._child = child
        self._before = before
        self._total = total
        self.made = 0
        self.bytes = 0
        self.failed: dict[str, dict[str, Json]] = {}
        self.result: Json = None

    async def listen(self) -> None:
        async for message in self._child:
            match message:
                case {"segment": said}:
                    await self._keep(from_plain(Segment, said))
                case {"progress": frames}:
                    self._bench.progress(self._before + frames, self._total)
                case {"note": text}:
                    self._bench.log(text)
                case {"rung_failed": told}:
                    self.failed[told["rung"]] = told
                    self._bench.log(f"{told['rung']}: {told['message']}", level="warning", code=told["code"])
                case {"done": result}:
                    self.result = result

    async def _keep(self, segment: Segment) -> None:
        path = made_file(self._bench, segment.path)
        name = piece_name(segment.rung, segment.number)
        kept = await self._bench.keep(name, path, sha256=segment.sha256, **facts_of(segment))
        if kept.sha256 != segment.sha256:
            raise ChildFailed(f"{segment.path} was changed between the child and its record", code="bytes_changed")
        path.unlink(missing_ok=True)
        self.made += 1
        self.bytes += segment.size
        await self._child.say({"ack": [segment.rung, segment.number]})


def facts_of(segment: Segment) -> dict[str, Any]:
    """What playlists and checks need to know of a segment beside its bytes."""
    facts = asdict(segment)
    for name in ("path", "size", "sha256"):
        del facts[name]
    return facts


async def recorded(bench: Bench, options: TranscodeOptions) -> set[tuple[str, int]]:
    """The (rung, segment) pairs that earlier attempts have kept and whose bytes are still there."""
    found: set[tuple[str, int]] = set()
    since = 0 if options.keep_completed_rungs else bench.brief.retried
    names = [name for name, kept in bench.brief.kept.items() if name.endswith(".m4s") and kept.token > since]
    # A film has thousands of them, and a bucket takes its time to answer.
    for start in range(0, len(names), AT_ONCE):
        bench.progress(LOOKING_SHARE * start, len(names))
        some = await asyncio.gather(*(bench.kept(name) for name in names[start : start + AT_ONCE]))
        found.update((str(kept.facts["rung"]), int(kept.facts["number"])) for kept in some if kept is not None)
    return found


async def encode_chunk(bench: Bench, options: TranscodeOptions) -> Outcome:
    """Encode what this chunk lacks, for every rung, from one decode."""
    plan = plan_of(bench)
    chunk = from_plain(Chunk, bench.input)
    inits = {name: init.sha256 for name, init in plan.inits.items()}
    wanted = missing(chunk, plan.made, await recorded(bench, options), inits)
    if not wanted or plan.picture is None:
        return Done(result={"made": 0})
    limits = options.limits(plan.picture)
    index = await index_of(bench)
    order = video_order(index, plan.timing, plan.picture, wanted, format=plan.format, limits=limits, mend=plan.mend)
    order = replace(order, size=plan.origin.size)
    frames = chunk.frames_of(plan.timing)
    async with opened(bench, plan.origin) as source, bench.child(plain_order(order), **source) as child:
        recording = SegmentRecorder(bench, child, max(0, order.first - frames.start), len(frames))
        try:
            await recording.listen()
        except ChildFailed:
            # A child none of whose rungs is left has nothing more to do: what became of each was said before.
            if set(recording.failed) != {one.rung.name for one in wanted}:
                raise
    found = recording.result or {}
    bad = (found.get("corrupt") or 0) + (found.get("mended") or 0)
    return _damage(bench, plan, bad, "of its pictures cannot be decoded rightly") or _judge(bench, plan, recording)


def _damage(bench: Bench, plan: TranscodePlan, bad: int, what: str) -> Failed | None:
    """What the decoder could not make whole of what is shown or heard: only decoding finds it. Fails, or warns."""
    if not bad:
        return None
    wrong = f"the source is damaged: {bad} {what}"
    if not plan.mend:
        return Failed(f"{wrong}; repair it, or take it as it is with --damaged warn", code="damaged", permanent=True)
    bench.log(wrong, level="warning")
    return None


def _judge(bench: Bench, plan: TranscodePlan, recording: SegmentRecorder) -> Outcome:
    """A rung that failed is tried again like any task; out of attempts, an optional one is given up, for all chunks."""
    told = {"made": recording.made, "bytes": recording.bytes}
    if not recording.failed:
        return Done(result=told)
    # Hardware gives up nothing by itself: software makes the whole rendition then.
    required = [name for name in recording.failed if _is_required(plan, name) or family_of(plan).label is not None]
    if required or bench.attempt < bench.max_attempts:
        name = (required or sorted(recording.failed))[0]
        why = recording.failed[name]
        return Failed(f"{name}: {why['message']}", code=str(why["code"]))
    return Done(result={**told, "dropped": {name: why["message"] for name, why in recording.failed.items()}})


def _is_required(plan: TranscodePlan, name: str) -> bool:
    return next(rung.required for rung in plan.rungs if rung.name == name)


async def encode_track(bench: Bench, options: TranscodeOptions) -> Outcome:
    """Encode one audio track as a whole: AAC that is cut into pieces before it is encoded drifts."""
    plan = plan_of(bench)
    sounding = from_plain(AudioPlan, bench.input["sounding"])
    track = sounding.track
    have = {number for name, number in await recorded(bench, options) if name == track.name}
    if len(have) == plan.segments:
        return Done(result={"made": 0})
    order = EncodeAudio(
        sound=sounding.sound,
        format=plan.format,
        track=track,
        start=sounding.start,
        length=plan.heard,
        borders=plan.borders,
        have=tuple(sorted(have)),
        limits=options.limits(),
        size=plan.origin.size,
    )
    async with opened(bench, plan.origin) as source, bench.child(plain_order(order), **source) as child:
        recording = SegmentRecorder(bench, child, 0, round(plan.heard * track.sample_rate))
        await recording.listen()
    bad = (recording.result or {}).get("damaged") or 0
    told = {"made": recording.made, "bytes": recording.bytes}
    return _damage(bench, plan, bad, f"packets of {track.name} cannot be decoded") or Done(result=told)
