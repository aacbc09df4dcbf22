"""Encode the missing segments of one chunk, for every rung, from one decode.

Frames ──▶ Scaler ──▶ rung 1080p: life ─ life …      a life: one encoder, one run of missing segments
                 └──▶ rung 360p:  life …
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from av.error import FFmpegError
from av.video.frame import VideoFrame

from telecine.media.child.encode.encoder import Encoder, black, timing_of
from telecine.media.child.encode.segments import SegmentWriter
from telecine.media.child.error_report import reason
from telecine.media.child.pictures.deinterlace import deinterlaced
from telecine.media.child.pictures.frames import FrameSelector
from telecine.media.child.pictures.scale import Scaler
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.sandbox import lockdown
from telecine.media.ladders.encoder_families import family_of
from telecine.media.mp4.boxes import DamagedBoxes
from telecine.media.orders import EncodeVideo, MissingSegments, Rung, Timing

_WARM_FRAMES = 3
# An encoder that gets several pictures in a row finds its own memory in the caches (decision 0013). They wait in memory
# meanwhile.
_IN_A_ROW = 8
_WAITING_BYTES = 48 << 20


def run(order: EncodeVideo, talk: ChildSession) -> Mapping[str, Any]:
    """Every closed segment is said at once; a rung that fails is said and left, and the others go on."""
    works = [_Work(wanted, order, talk) for wanted in order.wanted if wanted.segments]
    if not works:
        return {"frames": 0, "failed": []}
    chunk = _Chunk(order, talk, works)
    first, last = min(work.first for work in works), max(work.last for work in works)
    frames = FrameSelector(order, talk, first, last)
    pictures: Iterable[tuple[range, VideoFrame]] = frames
    if order.picture.interlaced:
        frames = FrameSelector(order, talk, order.first, order.first + len(order.times))
        pictures = deinterlaced(frames, order.limits.threads)
    for numbers, picture in pictures:
        if wanted := range(max(first, numbers.start), min(last, numbers.stop)):
            chunk.take(wanted, picture)
    chunk.end()
    _tell_damage(frames, talk)
    if len(chunk.failed) == len(works):
        raise next(iter(chunk.failed.values()))
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "frames": chunk.frames,
        "failed": list(chunk.failed),
        "damaged": frames.damaged,
        "corrupt": frames.corrupt,
        "mended": frames.mended,
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 3),
        "peak_memory": lockdown.peak("VmHWM"),
    }


def warm_up(order: EncodeVideo) -> None:
    warm_up_encoders([wanted.rung for wanted in order.wanted], order.limits.threads)


def warm_up_encoders(rungs: Iterable[Rung], threads: int) -> None:
    """Push a few frames through each family: what it loads lazily must be there before the doors are shut."""
    timing = timing_of(Fraction(25), 25)
    for rung in {rung.family: rung for rung in rungs}.values():
        small = replace(rung, width=320, height=180)
        try:
            encoder = Encoder(small, timing, threads=threads)
            for number in range(_WARM_FRAMES):
                encoder.encode(black(small), number)
            encoder.finish()
        except (FFmpegError, OrderRefused):
            continue  # the order itself will meet this again, and tell


class _Chunk:
    """Hands each frame to the rungs that lack it."""

    def __init__(self, order: EncodeVideo, talk: ChildSession, works: Sequence[_Work]) -> None:
        self._order = order
        self._talk = talk
        self._works = {work.rung.name: work for work in works}
        self._scaler: Scaler | None = None
        self._waiting: dict[str, list[tuple[range, VideoFrame]]] = {}
        self._turns = 0
        self.failed: dict[str, OrderRefused] = {}
        self.frames = 0

    def take(self, numbers: range, frame: VideoFrame) -> None:
        self.frames += len(numbers)
        rungs = self._lacking(numbers)
        if self._scaler is not None and not (rungs and self._scaler.fits(frame, rungs)):
            self.end()
            rungs = self._lacking(numbers)  # one may have failed by what came out
        if rungs:
            if self._scaler is None:
                self._scaler = Scaler(
                    self._order.picture,
                    rungs,
                    frame,
                    threads=self._order.limits.threads,
                    scratch=self._talk.scratch,
                )
            self._hold(self._scaler.put(frame, numbers))
            self._turns += len(numbers)  # a still stands for many: it is given at once, as ever
            if self._turns >= in_a_row(rungs, self._order):
                self._encode()
        self._talk.progress(self.frames)

    def _lacking(self, numbers: range) -> list[Rung]:
        return [work.rung for name, work in self._works.items() if name not in self.failed and work.lacks(numbers)]

    def end(self) -> None:
        """Let out what is still inside the filters, and what waits."""
        if self._scaler is not None:
            self._hold(self._scaler.end())
            self._scaler = None
        self._encode()

    def _hold(self, pictures: Iterable[tuple[Rung, range, VideoFrame]]) -> None:
        for rung, numbers, picture in pictures:
            self._waiting.setdefault(rung.name, []).append((numbers, picture))

    def _encode(self) -> None:
        """All that waits, rung by rung."""
        waiting, self._waiting, self._turns = self._waiting, {}, 0
        for name, pictures in waiting.items():
            for numbers, picture in pictures:
                if name not in self.failed:
                    self._give(self._works[name], numbers, picture)
            self._talk.alive()

    def _give(self, work: _Work, numbers: range, picture: VideoFrame) -> None:
        try:
            work.take(numbers, picture)
        except (FFmpegError, DamagedBoxes, OrderRefused) as error:
            self._fail(work.rung, error)

    def _fail(self, rung: Rung, error: Exception) -> None:
        if lockdown.is_out_of_memory(error, self._order.limits.memory):
            raise error  # the limit is the whole child's
        told = (
            error
            if isinstance(error, OrderRefused)
            else OrderRefused("encoder_failed", f"the encoder failed: {reason(error)}")
        )
        self.failed[rung.name] = told
        self._works[rung.name].abandon()
        self._talk.rung_failed(rung.name, told.code, told.message)


class _Work:
    """What one rung still lacks, as lives of its encoder."""

    def __init__(self, wanted: MissingSegments, order: EncodeVideo, talk: ChildSession) -> None:
        self.rung = wanted.rung
        self._wanted = wanted
        self._timing = order.timing
        self._threads = order.limits.threads
        self._talk = talk
        self._runs = runs(wanted.segments, order.timing)
        self._encoder: Encoder | None = None
        self._segments: SegmentWriter | None = None
        self.first, self.last = self._runs[0].start, self._runs[-1].stop

    def lacks(self, numbers: range) -> bool:
        return any(run.start < numbers.stop and numbers.start < run.stop for run in self._runs)

    def take(self, numbers: range, picture: VideoFrame) -> None:
        for number in numbers:
            if self._runs and number in self._runs[0]:
                self._give(picture, number)

    def abandon(self) -> None:
        self._runs.clear()
        self._encoder = None
        if self._segments is not None:
            self._segments.abandon()

    def _give(self, picture: VideoFrame, number: int) -> None:
        run = self._runs[0]
        if self._encoder is None or self._segments is None:
            if number != run.start:
                raise OrderRefused("frame_mismatch", f"{self.rung.name} begins at {number}, not at {run.start}")
            segment = number // self._timing.per_segment
            self._encoder = Encoder(self.rung, self._timing, segment=segment, threads=self._threads)
            self._segments = SegmentWriter(self._wanted, self._timing, self._talk, segment)
        self._keep(self._encoder.encode(picture, number), self._encoder, self._segments)
        if number == run.stop - 1:
            self._keep(self._encoder.finish(), self._encoder, self._segments)
            self._end_life(self._segments)

    def _keep(self, fragments: list[bytes], encoder: Encoder, segments: SegmentWriter) -> None:
        for fragment in fragments:
            segments.add(fragment, encoder.init)

    def _end_life(self, segments: SegmentWriter) -> None:
        run = self._runs.pop(0)
        expected = -(-run.stop // self._timing.per_segment)
        if segments.next != expected:
            raise OrderRefused("segment_mismatch", f"{self.rung.name} ended before segment {expected}")
        self._encoder = self._segments = None


def in_a_row(rungs: Sequence[Rung], order: EncodeVideo) -> int:
    """How many pictures a rung gets before the next one's turn: one where encoders go on by themselves meanwhile."""
    if order.limits.threads > 1 or any(family_of(rung).hardware for rung in rungs):
        return 1
    size = sum(rung.width * rung.height * 3 // 2 for rung in rungs)
    return max(1, min(_IN_A_ROW, order.timing.per_segment, _WAITING_BYTES // size))


def runs(segments: Sequence[int], timing: Timing) -> list[range]:
    """Missing segments as runs of frames without a gap."""
    found: list[range] = []
    for number in sorted(set(segments)):
        frames = timing.frames_of(number)
        if found and found[-1].stop == frames.start:
            found[-1] = range(found[-1].start, frames.stop)
        else:
            found.append(frames)
    return found


def _tell_damage(frames: FrameSelector, talk: ChildSession) -> None:
    if frames.damaged or frames.corrupt:
        talk.note(f"the decoder refused {frames.damaged} packets and calls {frames.corrupt} frames corrupt")
    if frames.mended:
        talk.note(f"{frames.mended} frames could not be decoded: the ones before them are shown instead")
