"""An audio stream as one unbroken tape: it begins with the film, ends with it, and every sample is at its time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av.error
from av.audio.fifo import AudioFifo
from av.audio.frame import AudioFrame
from av.container import InputContainer
from av.filter import Graph

from telecine.media.child.error_report import reason
from telecine.media.child.protocol import ChildSession
from telecine.media.child.sound.downmix import TARGETS, pan
from telecine.media.child.source import open_source

BLOCK = 1024  # samples of an AAC frame
_SILENCE = 4096
_JITTER = 2  # frames that a stream's times may be off before it counts as a gap
_EDGE = 2  # broken packets before the first sound or after the last one that are no damage
_TOLD = 5  # broken packets that are noted one by one


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioRange:
    """What is wanted: so many samples, from PTS `start` on."""

    start: int
    time_base: Fraction
    rate: int
    channels: int
    samples: int

    def position(self, pts: int) -> int:
        """The sample at which this PTS belongs."""
        return round((pts - self.start) * self.time_base * self.rate)


def blocks(frames: Iterator[AudioFrame], tape: AudioRange) -> Iterator[AudioFrame]:
    """The tape in frames of 1024 samples, the last one shorter; stamped with the running count."""
    fifo = AudioFifo()
    made = 0
    for piece in _pieces(frames, tape):
        fifo.write(piece)
        while made < tape.samples and (block := fifo.read(min(BLOCK, tape.samples - made))) is not None:
            block.pts, block.time_base = made, Fraction(1, tape.rate)
            made += block.samples
            yield block
        if made >= tape.samples:
            return


class AudioTimeline:
    """Every frame of the stream. A broken packet leaves a gap, a broken file an early end: both are noted and counted.

    A track that was cut out of a longer one begins and ends in mid-frame: a few broken packets there are no damage.
    """

    def __init__(self, container: InputContainer, stream: Any, talk: ChildSession) -> None:
        self._container = container
        self._stream = stream
        self._talk = talk
        self._broken = 0
        self._in_a_row = 0
        self._has_begun = False
        self.damaged = 0  # packets that cannot be decoded, or only with faults, and an end that is missing

    def __iter__(self) -> Iterator[AudioFrame]:
        try:
            for packet in open_source.demuxed(self._container, self._stream):
                yield from self._out_of(packet)
        except av.error.FFmpegError as error:
            if not open_source.is_damage(error):
                raise
            self.damaged += 1
            self._note(f"cannot be read to its end: {reason(error)}")
        self._end_row(is_edge=True)
        if self._broken > _TOLD:
            self._note(f"has {self._broken} packets that cannot be decoded")

    def _out_of(self, packet: Any) -> Iterator[AudioFrame]:
        self._talk.alive()
        try:
            frames: list[AudioFrame] = packet.decode()
        except av.error.FFmpegError as error:
            if not open_source.is_damage(error):
                raise
            self._broken += 1
            self._in_a_row += 1
            if self._broken <= _TOLD:
                self._note(f"has a packet that cannot be decoded: {reason(error)}")
            return
        for frame in frames:
            self._end_row(is_edge=not self._has_begun)
            self._has_begun = True
            self.damaged += frame.is_corrupt
            yield frame

    def _end_row(self, *, is_edge: bool) -> None:
        if not (is_edge and self._in_a_row <= _EDGE):
            self.damaged += self._in_a_row
        self._in_a_row = 0

    def _note(self, what: str) -> None:
        self._talk.note(f"audio stream {self._stream.index} {what}")


def _pieces(frames: Iterator[AudioFrame], tape: AudioRange) -> Iterator[AudioFrame]:
    """Sound and silence in turn, without a gap; may be longer than the tape."""
    at = 0
    for run, frame in _runs(frames, tape):
        if run.is_new:
            run.is_new = False
            target = run.begin if run.begin is not None else at
            yield from _silence(tape, min(target, tape.samples) - at)
            at = max(at, target)
            run.skip = at - target
        for piece in run.converted(frame):
            at += piece.samples
            yield piece
    yield from _silence(tape, tape.samples - at)


def _runs(frames: Iterator[AudioFrame], tape: AudioRange) -> Iterator[tuple[_Run, AudioFrame | None]]:
    """Each frame with the run that it belongs to, and a None at the end of every run."""
    run: _Run | None = None
    for frame in frames:
        if run is None or not run.goes_on_with(frame):
            if run is not None:
                yield run, None
            run = _Run(frame, tape)
        yield run, frame
    if run is not None:
        yield run, None


class _Run:
    """Frames of one kind that follow on each other, and the filters that turn them into the tape's kind."""

    def __init__(self, first: AudioFrame, tape: AudioRange) -> None:
        self.begin = None if first.pts is None else tape.position(first.pts)
        self.is_new = True
        self.skip = 0  # samples that lie before what is on the tape already
        self._kind = _kind(first)
        self._first = first.pts
        self._base = tape.time_base
        self._heard = 0
        self._graph = _graph(first, tape)

    def goes_on_with(self, frame: AudioFrame) -> bool:
        if _kind(frame) != self._kind:
            return False
        if frame.pts is None or self._first is None:
            return True
        # In samples × denominator, so that integers do.
        passed = (frame.pts - self._first) * self._base.numerator * frame.sample_rate
        off = abs(passed - self._heard * self._base.denominator)
        return off <= _JITTER * max(frame.samples, BLOCK // 2) * self._base.denominator

    def converted(self, frame: AudioFrame | None) -> Iterator[AudioFrame]:
        """What comes out when this frame goes in; None: the rest."""
        if frame is not None:
            self._heard += frame.samples
            frame.pts = None
        self._graph.push(frame)
        while (piece := self._pulled()) is not None:
            if self.skip >= piece.samples:
                self.skip -= piece.samples
                continue
            yield _without(piece, self.skip)
            self.skip = 0

    def _pulled(self) -> AudioFrame | None:
        try:
            piece = self._graph.pull()
        except (av.error.BlockingIOError, av.error.EOFError):
            return None
        assert isinstance(piece, AudioFrame)
        piece.pts = None
        return piece


def _kind(frame: AudioFrame) -> tuple[str, str, int]:
    return frame.format.name, frame.layout.name, frame.sample_rate


def _graph(frame: AudioFrame, tape: AudioRange) -> Graph:
    format, layout, rate = _kind(frame)
    graph = Graph()
    graph.threads = 1
    nodes = [graph.add_abuffer(sample_rate=rate, format=format, layout=layout, time_base=Fraction(1, rate))]
    if mix := pan([channel.name for channel in frame.layout.channels], tape.channels):
        nodes.append(graph.add("pan", mix))
    nodes.append(graph.add("aresample", str(tape.rate)))
    target = TARGETS[tape.channels][0]
    nodes.append(graph.add("aformat", f"sample_fmts=fltp:sample_rates={tape.rate}:channel_layouts={target}"))
    nodes.append(graph.add("abuffersink"))
    graph.link_nodes(*nodes)
    graph.configure()
    return graph


def _without(frame: AudioFrame, samples: int) -> AudioFrame:
    """The frame without its first samples."""
    if not samples:
        return frame
    fifo = AudioFifo()
    fifo.write(frame)
    fifo.read(samples)
    rest = fifo.read()
    assert rest is not None
    rest.pts = None
    return rest


def _silence(tape: AudioRange, samples: int) -> Iterator[AudioFrame]:
    while samples > 0:
        count = min(samples, _SILENCE)
        frame = AudioFrame(format="fltp", layout=TARGETS[tape.channels][0], samples=count)
        frame.sample_rate = tape.rate
        for plane in frame.planes:
            plane.update(bytes(plane.buffer_size))
        yield frame
        samples -= count
