"""Copy the streams into a Matroska file in which one can seek exactly.

Normally nothing is decoded. Where a video stream lacks times, or repeats them, it is decoded once: only then is it
known in which order its frames are shown, and so which times the others leave for them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import av
import av.error
import av.logging
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.bitstream import BitStreamFilterContext
from av.container import InputContainer
from av.packet import Packet

from telecine.media.child import opening
from telecine.media.child.complaints import Complaints
from telecine.media.child.kinds import missing_bytes
from telecine.media.child.retiming import is_whole, retimed
from telecine.media.child.talk import Refused, Talk
from telecine.media.orders import Remux

REMUXED = "remuxed.mkv"
_TIMELESS = frozenset({"avi", "h264", "hevc", "vvc"})  # they count packets, as they are decoded
_REORDERED = frozenset({"h264", "hevc", "vvc"})  # of older codecs, FFmpeg's parsers know the order
_MUXER = {"fflags": "+bitexact", "avoid_negative_ts": "make_non_negative"}


@dataclass(slots=True)
class _Clock:
    """Times of one stream as a muxer accepts them: each packet has one, and decoding order never goes back."""

    times: Mapping[int, int] = field(default_factory=dict)  # by the packet's number: what decoding has shown
    seen: list[int | None] = field(default_factory=list)  # as the file has them
    last: int | None = None
    mended: int = 0
    damaged: int = 0

    def mend(self, packet: Packet[Any]) -> None:
        self.damaged += packet.is_corrupt
        pts, dts = self.times.get(len(self.seen), packet.pts), packet.dts
        self.seen.append(packet.pts)
        if pts is None:
            pts = dts if dts is not None else (self.last or 0) + (packet.duration or 1)
        if dts is None:
            dts = pts if self.last is None else self.last
        dts = min(dts, pts) if self.last is None else max(min(dts, pts), self.last)
        self.mended += pts != packet.pts
        self.last = packet.dts = dts
        packet.pts = max(pts, dts)


@cache
def copyable() -> frozenset[str]:
    """The decoders whose streams Matroska can hold."""
    with av.open(io.BytesIO(), "w", format="matroska") as out:
        return frozenset(out.supported_codecs - {"rawvideo"})


def run(order: Remux, talk: Talk) -> Mapping[str, Any]:
    """Where the file lies, which stream became which, and what had to be mended."""
    clocks = {index: _Clock() for index in order.streams}
    damaged = _copied(order, talk, clocks)
    if all(clock.last is None for clock in clocks.values()):
        raise Refused("damaged", "nothing of the file can be read", permanent=True)
    broken = [index for index, sure in _pictures(order, talk) if not (sure and is_whole(clocks[index].seen))]
    if broken:
        talk.note("the file does not say when each frame is shown: decoding once to find their order")
        times = {index: _shown(order, talk, index, clocks[index]) for index in broken}
        clocks = {index: _Clock(times.get(index, {})) for index in order.streams}
        damaged = _copied(order, talk, clocks)
    return {
        "path": REMUXED,
        "size": (talk.scratch / REMUXED).stat().st_size,
        "streams": {str(index): number for number, index in enumerate(order.streams)},
        "mended": sum(clock.mended for clock in clocks.values()),
        "damaged": damaged + sum(clock.damaged for clock in clocks.values()),
    }


def _copied(order: Remux, talk: Talk, clocks: Mapping[int, _Clock]) -> int:
    """Write the new file; how often the demuxer complained, and whether the file is whole."""
    path = talk.scratch / REMUXED
    broken: list[av.error.FFmpegError] = []
    with (
        Complaints(av.logging.ERROR) as complaints,
        _opened(order, talk) as source,
        av.open(str(path), "w", format="matroska", container_options=_MUXER) as out,
    ):
        targets = {index: _target(out, opening.stream_of(source, index)) for index in order.streams}
        for index, packet in _packets(source, order, broken):
            clocks[index].mend(packet)
            talk.progress(max(packet.pos or 0, 0))
            _put(targets[index].taken(packet), out, broken)
        for target in targets.values():
            _put(target.taken(None), out, broken)
        said = complaints.of(order.format)
    for line in said:
        talk.note(line)
    for sentence in {f"not all of the file can be read: {error.strerror}" for error in broken}:
        talk.note(sentence)
    if missing := missing_bytes(talk.source):
        talk.note(f"the file lacks its last {missing} bytes")
    return len(broken) + len(said) + bool(missing)


def _put(packets: Iterable[Packet[Any]], out: Any, broken: list[av.error.FFmpegError]) -> None:
    """A packet whose bytes the muxer cannot make sense of is left out. A disk that is full is another matter."""
    for packet in packets:
        try:
            out.mux(packet)
        except (av.error.InvalidDataError, av.error.PatchWelcomeError) as error:
            broken.append(error)


def _opened(order: Remux, talk: Talk) -> InputContainer:
    return opening.open_source(talk, order.format, fflags="+genpts")


def _target(out: Any, stream: Any) -> _Copied | _Recoded:
    """The same stream in the new file, with its language, title, flags and display matrix."""
    if opening.decoder_name(stream) in copyable():
        target: _Copied | _Recoded = _Copied(out, stream)
    elif stream.type == "audio":
        target = _Recoded(out, stream)
    else:
        message = f"{opening.codec_name(stream)} cannot be copied into a file in which one can seek"
        raise Refused("unsupported", message, permanent=True)
    for name in ("language", "title"):
        if name in stream.metadata:
            target.stream.metadata[name] = stream.metadata[name]
    target.stream.disposition = stream.disposition
    return target


class _Copied:
    """Packets as they are."""

    def __init__(self, out: Any, stream: Any) -> None:
        self.stream: Any = out.add_stream_from_template(stream, opaque=True)  # else it needs an encoder of that name

    def taken(self, packet: Packet[Any] | None) -> list[Packet[Any]]:
        if packet is None:
            return []
        packet.stream = self.stream
        return [packet]


class _Recoded:
    """Sound that Matroska cannot hold (LATM, Blu-ray's PCM): decoded, and kept without loss."""

    def __init__(self, out: Any, stream: Any) -> None:
        opening.prepare(stream)
        self._source = stream
        context = stream.codec_context
        self.stream: Any = out.add_stream("flac", rate=context.sample_rate, layout=context.layout.name)
        self.stream.codec_context.format = "s32"
        self._kind = AudioResampler(format="s32", layout=context.layout.name, rate=context.sample_rate)

    def taken(self, packet: Packet[Any] | None) -> list[Packet[Any]]:
        try:
            frames = self._source.decode(packet)
        except av.error.FFmpegError as error:
            if not opening.is_damage(error):
                raise
            return []  # a gap: whoever listens fills it
        even: list[AudioFrame | None] = [one for frame in frames for one in self._kind.resample(frame)]
        if packet is None:
            even += [*self._kind.resample(None), None]
        return [one for frame in even for one in self.stream.encode(frame)]


def _packets(
    source: InputContainer, order: Remux, broken: list[av.error.FFmpegError]
) -> Iterator[tuple[int, Packet[Any]]]:
    """Filled packets, each with the number of the stream it came from; why they end too early goes into `broken`."""
    streams = [opening.stream_of(source, index) for index in order.streams]
    unpackers = {one.index: _unpacker(one) for one in streams if opening.codec_name(one) == "mpeg4"}
    try:
        for packet in opening.demuxed(source, *streams):
            index = packet.stream_index
            if index in unpackers:
                unpacked = unpackers[index].filter(packet if packet.size else None)
                yield from ((index, one) for one in unpacked if one.size)
            elif packet.size:
                yield index, packet
    except av.error.FFmpegError as error:
        if not opening.is_damage(error):
            raise
        broken.append(error)


def _unpacker(stream: Any) -> BitStreamFilterContext:
    """AVI packs a B-frame behind the frame it depends on, into one packet: one packet, two times, one of them lost."""
    return BitStreamFilterContext("mpeg4_unpack_bframes", stream)


def _pictures(order: Remux, talk: Talk) -> Iterator[tuple[int, bool]]:
    """The video streams; False: this container has no room for the order in which their frames are shown."""
    with _opened(order, talk) as source:
        for index in order.streams:
            stream = opening.stream_of(source, index)
            if stream.type == "video":
                yield index, not (order.format in _TIMELESS and opening.codec_name(stream) in _REORDERED)


def _shown(order: Remux, talk: Talk, index: int, clock: _Clock) -> dict[int, int]:
    """When each packet's frame is shown. Packets get their number as time: frames come out in order and tell it."""
    numbers: list[int] = []
    step = 0
    with _opened(order, talk) as source:
        stream: Any = opening.stream_of(source, index)
        opening.prepare(stream, order.limits.threads)
        counted = 0
        for mine, packet in _packets(source, order, []):
            if mine != index:
                continue
            packet.pts, packet.dts = counted, None
            step = max(step, packet.duration or 0)
            counted += 1
            numbers += _numbers(stream, packet)
            talk.progress(max(packet.pos or 0, 0))
        numbers += _numbers(stream, None)
    return retimed(numbers, clock.seen, step)


def _numbers(stream: Any, packet: Packet[Any] | None) -> list[int]:
    try:
        return [frame.pts for frame in stream.decode(packet) if frame.pts is not None]
    except av.error.FFmpegError as error:
        if not opening.is_damage(error):
            raise
        return []
