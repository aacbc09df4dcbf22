"""Encode one whole track and cut it on the video's grid. Chunked AAC would drift: each chunk adds its own priming.

AAC frame 0 holds only priming. In the files its time is 0 and the film begins at tick 1024; the init's edit list says
so (`media_time` 1024). So a segment's `start` is its first frame × 1024, and it is heard 1024 ticks earlier.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.audio.frame import AudioFrame
from av.packet import Packet

from telecine.media.child.encode.muxer import MuxerOutput, options
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.sound.audio_timeline import BLOCK, AudioRange, AudioTimeline, blocks
from telecine.media.child.sound.downmix import TARGETS
from telecine.media.child.source import open_source
from telecine.media.orders import AudioTrackOrder, EncodeAudio, Segment

_BITEXACT = 1 << 23  # of a codec: no version of the encoder in the stream


def run(order: EncodeAudio, talk: ChildSession) -> Mapping[str, Any]:
    """Say each missing segment as it closes; at last how many there are, of how many samples.

    `damaged` packets of the source cannot be decoded: there is silence instead.
    """
    tape = AudioRange(
        start=order.start,
        time_base=order.sound.time_base,
        rate=order.track.sample_rate,
        channels=order.track.channels,
        samples=round(order.length * order.track.sample_rate),
    )
    borders = frame_borders(order.borders, tape.samples, tape.rate)
    missing = sorted(set(range(len(order.borders))) - set(order.have))
    made = damaged = 0
    if missing:
        with open_source.open_source(talk, order.format) as container:
            stream = open_source.stream_of(container, order.sound.stream)
            open_source.prepare(stream, order.limits.threads)
            hearing = AudioTimeline(container, stream, talk)
            for number, packets in _segments(_packets(hearing, order, tape, talk), borders, last=missing[-1]):
                if number in missing:
                    talk.may_close(order.track.name)
                    talk.segment(_written(order.track, number, packets, talk.scratch))
                    made += 1
            damaged = hearing.damaged
    return {
        "segments": len(order.borders),
        "made": made,
        "samples": tape.samples,
        "frames": borders[-1],
        "damaged": damaged,
    }


def warm_up(order: EncodeAudio) -> None:
    """Whatever is loaded on first use, before the doors close."""
    audio_init(order.track)


def audio_init(track: AudioTrackOrder) -> bytes:
    """The init segment of a track: of silence, so that it is the same for every source."""
    with _Encoder(track) as encoder:
        silence = _silent(track)
        packets = [packet for _ in range(3) for packet in encoder.encode(next(silence))]
        return encoder.init(packets[0])


def frame_borders(borders: Sequence[Fraction], samples: int, rate: int) -> list[int]:
    """The first AAC frame of each segment, and at the end their number: frames nearest to the film's borders.

    Every segment has at least one frame, and the rest of the film belongs to the last one.
    """
    total = -(-samples // BLOCK) + 1
    if total < len(borders):
        raise OrderRefused("bad_order", f"{len(borders)} segments of {total} AAC frames", permanent=True)
    firsts = [0]
    for number, border in enumerate(borders[1:], start=1):
        nearest = round((border * rate + BLOCK) / BLOCK)
        firsts.append(min(max(nearest, firsts[-1] + 1), total - (len(borders) - number)))
    return [*firsts, total]


def _packets(hearing: AudioTimeline, order: EncodeAudio, tape: AudioRange, talk: ChildSession) -> Iterator[Packet[Any]]:
    """The encoded track, packet by packet."""
    heard = 0
    with _Encoder(order.track) as encoder:
        for block in blocks(_counted(iter(hearing), order), tape):
            yield from encoder.encode(block)
            heard += block.samples
            talk.progress(heard)
        yield from encoder.encode(None)


def _counted(frames: Iterator[AudioFrame], order: EncodeAudio) -> Iterator[AudioFrame]:
    """The same frames; a stream without any is refused rather than made into silence."""
    first = next(frames, None)
    if first is None:
        message = f"audio stream {order.sound.stream} has no sound that can be decoded"
        raise OrderRefused("no_sound", message, permanent=True)
    yield first
    yield from frames


def _segments(
    packets: Iterator[Packet[Any]], borders: Sequence[int], *, last: int
) -> Iterator[tuple[int, list[Packet[Any]]]]:
    """Each segment's number and packets, up to the last one that is wanted."""
    number, held = 0, 0
    mine: list[Packet[Any]] = []
    for packet in packets:
        mine.append(packet)
        held += 1
        if held == borders[number + 1] and number < len(borders) - 2:
            yield number, mine
            if number == last:
                return
            number, mine = number + 1, []
    if held != borders[-1]:
        raise OrderRefused("encoder_failed", f"the encoder gave {held} AAC frames instead of {borders[-1]}")
    yield number, mine


def _written(track: AudioTrackOrder, number: int, packets: Sequence[Packet[Any]], folder: Path) -> Segment:
    """The segment as a file, whole and flushed before it is said."""
    data = _muxed(track, number, packets)
    path = folder / f"{track.name}_{number:05d}.m4s"
    partial = path.with_suffix(".part")
    with partial.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    partial.rename(path)
    head = len(data) - sum(packet.size for packet in packets)
    return Segment(
        rung=track.name,
        number=number,
        path=path.name,
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        frames=len(packets),
        start=_shifted(packets[0].pts),
        duration=sum(packet.duration or BLOCK for packet in packets),
        fragments=((0, len(data), len(packets), head + packets[0].size),),
    )


def _muxed(track: AudioTrackOrder, number: int, packets: Sequence[Packet[Any]]) -> bytes:
    """One moof and mdat, by a muxer that lives for this segment only."""
    sink = MuxerOutput()
    how = options(timescale=track.sample_rate, fragment=number + 1)
    with av.open(sink, "w", format="mp4", container_options=how) as out:
        stream = out.add_stream_from_template(packets[0].stream)
        for packet in packets:
            out.mux(_copied(packet, stream, track))
    fragments = sink.taken()
    if len(fragments) != 1:
        raise OrderRefused(
            "muxer_failed", f"the muxer made {len(fragments)} fragments of segment {number} of {track.name}"
        )
    return fragments[0]


def _copied(packet: Packet[Any], stream: Any, track: AudioTrackOrder) -> Packet[Any]:
    copy: Packet[Any] = Packet(bytes(packet))
    copy.stream = stream
    copy.time_base = Fraction(1, track.sample_rate)
    copy.pts = copy.dts = _shifted(packet.pts)
    copy.duration = packet.duration
    copy.is_keyframe = True
    return copy


def _shifted(pts: int | None) -> int:
    assert pts is not None
    return pts + BLOCK


def _silent(track: AudioTrackOrder) -> Iterator[AudioFrame]:
    tape = AudioRange(
        start=0,
        time_base=Fraction(1, track.sample_rate),
        rate=track.sample_rate,
        channels=track.channels,
        samples=8 * BLOCK,
    )
    return blocks(iter(()), tape)


class _Encoder:
    """AAC-LC, and the muxer whose stream it belongs to."""

    def __init__(self, track: AudioTrackOrder) -> None:
        self._sink = MuxerOutput()
        how = options(timescale=track.sample_rate, fragment=1, edits=True, discontinuous=False)
        self._out = av.open(self._sink, "w", format="mp4", container_options=how)
        self._stream: Any = self._out.add_stream("aac", rate=track.sample_rate, layout=TARGETS[track.channels][0])
        self._stream.codec_context.bit_rate = track.bitrate
        self._stream.codec_context.profile = "LC"
        self._stream.codec_context.flags |= _BITEXACT

    def __enter__(self) -> _Encoder:
        return self

    def __exit__(self, *error: object) -> None:
        self._out.close()

    def encode(self, frame: AudioFrame | None) -> list[Packet[Any]]:
        packets: list[Packet[Any]] = self._stream.encode(frame)
        return packets

    def init(self, first: Packet[Any]) -> bytes:
        """ftyp and moov, whose edit list comes from the first packet's negative time. Ends the muxer."""
        assert first.pts == -BLOCK
        self._out.mux(first)
        self._out.close()
        if self._sink.init is None:
            raise OrderRefused("muxer_failed", "the muxer wrote no init for a track")
        return self._sink.init
