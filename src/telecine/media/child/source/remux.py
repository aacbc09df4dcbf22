"""Copy the streams into a Matroska file in which one can seek exactly.

Normally nothing is decoded. Where a video stream lacks times, or repeats them, it is decoded once: only then is it
known in which order its frames are shown, and so which times the others leave for them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from itertools import islice
from typing import Any

import av
import av.error
import av.logging
from av.bitstream import BitStreamFilterContext
from av.container import InputContainer
from av.packet import Packet

from telecine.media.child.error_report import reason
from telecine.media.child.ffmpeg_log import FfmpegLog
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.source import open_source
from telecine.media.child.source.aac_header import MAX_PACKETS, core_rate, header_of
from telecine.media.child.source.file_kinds import missing_bytes
from telecine.media.child.source.source_passes import SourcePasses
from telecine.media.child.source.stream_copy import CopiedStream, RecodedStream, add_stream
from telecine.media.child.timing.frame_order import REORDERED, is_shown_in_order, is_suspicious
from telecine.media.child.timing.h264_fields import FieldPairs
from telecine.media.child.timing.leap_report import MAX_TOLD, describe_leap
from telecine.media.child.timing.retiming import retimed, with_decode_times
from telecine.media.child.timing.splices import Splices, find_splices
from telecine.media.child.timing.stream_clock import StreamClock
from telecine.media.child.timing.track_times import StreamTimes
from telecine.media.orders import LATE_STREAMS, Remux

REMUXED = "remuxed.mkv"
_TIMELESS = frozenset({"avi", "h264", "hevc", "vvc"})  # they count packets, as they are decoded
_MUXER = {"fflags": "+bitexact", "avoid_negative_ts": "make_zero"}


@cache
def copyable() -> frozenset[str]:
    """The decoders whose streams Matroska can hold."""
    with av.open(io.BytesIO(), "w", format="matroska") as out:
        return frozenset(out.supported_codecs - {"rawvideo"})


def run(order: Remux, talk: ChildSession) -> Mapping[str, Any]:
    """Where the file lies, which stream became which, and what had to be mended."""
    with SourcePasses(order, talk) as passes:
        return _run(passes)


def _run(passes: SourcePasses) -> Mapping[str, Any]:
    order, talk = passes.order, passes.talk
    warnings = _find_headers(passes) if order.format == "flv" else []
    clocks = _clocks(passes)
    damaged = _copied(passes, clocks)
    if all(clock.is_empty for clock in clocks.values()):
        raise OrderRefused("damaged", "nothing of the file can be read", permanent=True)
    splices = Splices() if order.format in _TIMELESS else find_splices({n: one.track for n, one in clocks.items()})
    for index, clock in clocks.items():
        clock.cuts = splices.cuts.get(index, ())
    broken = [n for n, one in clocks.items() if one.track.is_picture and not _has_times(passes, n, one)]
    if broken:
        talk.note("the file does not say when each frame is shown: decoding once to find their order")
    leaps = splices.all_leaps
    told = [describe_leap(leap, order.format) for leap in leaps[:MAX_TOLD]]
    for sentence in (*told, *([f"the clock jumps {len(leaps)} times in all"] if len(leaps) > len(told) else ())):
        talk.note(sentence)
    if broken or splices.cuts:
        times = {index: _shown(passes, index, clocks[index]) for index in broken}
        clocks = _clocks(passes, splices, times)
        damaged = _copied(passes, clocks)
    return {
        "path": REMUXED,
        "size": (talk.scratch / REMUXED).stat().st_size,
        "streams": {str(index): number for number, index in enumerate(order.streams)},
        "mended": sum(clock.mended for clock in clocks.values()),
        "damaged": damaged + sum(clock.damaged for clock in clocks.values()),
        "leaps": told,
        "leap_count": len(leaps),
        "warnings": warnings,
    }


def _find_headers(passes: SourcePasses) -> list[str]:
    """Headers of AAC that the file has lost, from the first packets of each such stream; what is to be said of them."""
    warnings = list[str]()
    for index in passes.order.streams:
        with passes.opened() as source:
            stream = open_source.stream_of(source, index)
            if open_source.codec_name(stream) != "aac" or open_source.extradata(stream):
                continue
            packets = [one for one in islice(open_source.demuxed(source, stream), MAX_PACKETS) if one.size]
            rate = core_rate([one.pts * one.time_base for one in packets if one.pts is not None])
        header = header_of(rate, bytes(packets[0])) if rate is not None else None
        if header is not None:
            passes.headers[index] = header
            warnings.append(f"audio stream {index} has no AAC header: by its packets, it was taken for {rate} Hz")
    return warnings


def _clocks(
    passes: SourcePasses, splices: Splices | None = None, times: Mapping[int, Mapping[int, int]] | None = None
) -> dict[int, StreamClock]:
    """A clock for each stream, with what is known of it."""
    clocks: dict[int, StreamClock] = {}
    order = passes.order
    with passes.opened() as source:
        for index in order.streams:
            stream = open_source.stream_of(source, index)
            clocks[index] = StreamClock(
                track=StreamTimes(stream.time_base or Fraction(1, 90_000), stream.type == "video"),
                is_timeless=order.format in _TIMELESS,
                times=with_decode_times((times or {}).get(index, {})),
                cuts=splices.cuts.get(index, ()) if splices is not None else (),
            )
    return clocks


def _copied(passes: SourcePasses, clocks: dict[int, StreamClock]) -> int:
    """Write the new file; how often the demuxer complained, and whether the file is whole."""
    try:
        return _copied_once(passes, clocks)
    except av.error.ArgumentError:
        # The muxer holds packets back, so that it does not say which one it refuses; AAC without a header, for one.
        passes.talk.note("its sound cannot be copied as it is, so it is coded again without loss")
        for index, clock in clocks.items():
            clocks[index] = clock.restarted()
        return _copied_once(passes, clocks, recode=True)


def _copied_once(passes: SourcePasses, clocks: Mapping[int, StreamClock], *, recode: bool = False) -> int:
    order, talk = passes.order, passes.talk
    path = talk.scratch / REMUXED
    broken: list[av.error.FFmpegError] = []
    late: list[bool] = []
    with (
        FfmpegLog(av.logging.ERROR) as complaints,
        passes.opened() as source,
        av.open(str(path), "w", format="matroska", container_options=_MUXER) as out,
    ):
        targets = {index: _target(out, open_source.stream_of(source, index), recode) for index in order.streams}
        for number, (index, packet) in enumerate(_packets(source, order, broken, late)):
            talk.progress(max(packet.pos or 0, 0))
            if clocks[index].mend(packet, number):
                _put(targets[index].take(packet), out, broken)
        for target in targets.values():
            _put(target.take(None), out, broken)
        said = complaints.of(order.format)
    damaged = sum(target.damaged for target in targets.values())
    if late:
        talk.note(LATE_STREAMS)
    for line in said:
        talk.note(line)
    for sentence in {f"not all of the file can be read: {reason(error)}" for error in broken}:
        talk.note(sentence)
    if missing := missing_bytes(talk.source):
        talk.note(f"the file lacks its last {missing} bytes")
    return len(broken) + len(said) + damaged + bool(missing)


def _target(out: Any, stream: Any, recode: bool) -> CopiedStream | RecodedStream:
    can_hold = open_source.decoder_name(stream) in copyable() and not (recode and stream.type == "audio")
    return add_stream(out, stream, can_hold=can_hold)


def _put(packets: Iterable[Packet[Any]], out: Any, broken: list[av.error.FFmpegError]) -> None:
    """A packet whose bytes the muxer cannot make sense of is left out. A disk that is full is another matter."""
    for packet in packets:
        try:
            out.mux(packet)
        except (av.error.InvalidDataError, av.error.PatchWelcomeError) as error:
            broken.append(error)


def _packets(
    source: InputContainer, order: Remux, broken: list[av.error.FFmpegError], late: list[bool] | None = None
) -> Iterator[tuple[int, Packet[Any]]]:
    """Filled packets, each with the number of the stream it came from; why they end too early goes into `broken`."""
    streams = [open_source.stream_of(source, index) for index in order.streams]
    unpackers = {one.index: _unpacker(one) for one in streams if open_source.codec_name(one) == "mpeg4"}
    pairs = {
        one.index: FieldPairs(open_source.extradata(one)) for one in streams if open_source.codec_name(one) == "h264"
    }
    try:
        for packet in open_source.demuxed(source, *streams, late=late):
            index = packet.stream_index
            if index in unpackers:
                unpacked = unpackers[index].filter(packet if packet.size else None)
                yield from ((index, one) for one in unpacked if one.size)
            elif index in pairs:
                yield from ((index, one) for one in pairs[index].take(packet if packet.size else None))
            elif packet.size:
                yield index, packet
    except av.error.FFmpegError as error:
        if not open_source.is_damage(error):
            raise
        broken.append(error)


def _unpacker(stream: Any) -> BitStreamFilterContext:
    """AVI packs a B-frame behind the frame it depends on, into one packet: one packet, two times, one of them lost."""
    return BitStreamFilterContext("mpeg4_unpack_bframes", stream)


def _has_times(passes: SourcePasses, index: int, clock: StreamClock) -> bool:
    """Does the file say when each frame is shown?"""
    order = passes.order
    if not clock.is_whole:
        return False
    with passes.opened() as source:
        stream = open_source.stream_of(source, index)
        if order.format in _TIMELESS and open_source.codec_name(stream) in REORDERED:
            return False
        if not is_suspicious(stream, ascends=clock.ascends):
            return True
    return is_shown_in_order(passes.talk, order.format, index)


def _shown(passes: SourcePasses, index: int, clock: StreamClock) -> dict[int, int]:
    """When each packet's frame is shown. Packets get their number as time: frames come out in order and tell it."""
    order, talk = passes.order, passes.talk
    numbers: list[int] = []
    step = 0
    with passes.opened() as source:
        stream: Any = open_source.stream_of(source, index)
        open_source.prepare(stream, order.limits.threads)
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
        if not open_source.is_damage(error):
            raise
        return []
