"""One life of a rung's encoder and muxer: frames in, init and fragments out."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import av
from av.codec.context import ThreadType
from av.container import OutputContainer
from av.error import FFmpegError
from av.packet import Packet
from av.video.codeccontext import VideoCodecContext
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from telecine.media.child.encode import muxer
from telecine.media.child.error_report import reason
from telecine.media.child.protocol import OrderRefused
from telecine.media.ladders.encoder_families import EncoderFamily, UnknownFamily, family_of, options_for
from telecine.media.mp4.decode_times import decode_times
from telecine.media.orders import Rung, Timing

_LIMITED = 1  # AVCOL_RANGE_MPEG


class Encoder:
    """Opened in the same way for the plan's init, for each chunk and for each retry: so their inits are equal."""

    def __init__(self, rung: Rung, timing: Timing, *, segment: int = 0, threads: int = 1) -> None:
        self.rung = rung
        self._rate = timing.rate
        self._tick = 1 / timing.rate
        self._step = timing.step
        self._group: list[Packet[Any]] = []  # a keyframe, which is muxed already, and what follows it
        self._sink = muxer.MuxerOutput()
        fragment = segment * (timing.per_segment // timing.gop) + 1
        self._container: OutputContainer = av.open(
            self._sink,
            "w",
            format="mp4",
            # As `options` they would be offered to the encoder, too.
            container_options=muxer.options(timescale=timing.timescale, fragment=fragment),
        )
        self._stream = self._opened(timing, threads)

    @property
    def init(self) -> bytes | None:
        """`ftyp` and `moov`; there once the first fragment is, or after `finish`."""
        return self._sink.init

    def encode(self, frame: VideoFrame, number: int) -> list[bytes]:
        """Take frame `number` of the film; answer the fragments that are finished by now."""
        frame.pts = number
        frame.time_base = self._tick
        frame.duration = 1
        frame.pict_type = 0  # else keyframes of the source become keyframes here
        self._take(self._stream.encode(frame))
        return self._sink.taken()

    def finish(self) -> list[bytes]:
        """No frame comes any more; answer the last fragments."""
        self._take(self._stream.encode(None))
        self._end_group()
        self._container.close()
        last = self._sink.taken()
        if not self._sink.is_empty:
            raise OrderRefused("muxer_failed", "the muxer ended in the middle of a fragment")
        return last

    def _take(self, packets: Iterable[Packet[Any]]) -> None:
        """Mux each group of pictures when the next one begins: decode times need all of it."""
        for packet in packets:
            if packet.is_keyframe:
                self._end_group()
                self._mux(packet, self._shown(packet), self._step)
            self._group.append(packet)

    def _end_group(self) -> None:
        group, self._group = self._group, []
        if not group:
            return
        shown = [self._shown(packet) for packet in group]
        try:
            times = decode_times(shown, self._step)
        except ValueError as error:
            raise OrderRefused("encoder_failed", f"{self.rung.name}: {error}", permanent=True) from error
        ends = [*times[1:], min(shown) + len(group) * self._step]
        for packet, begin, end in zip(group[1:], times[1:], ends[1:], strict=True):
            self._mux(packet, begin, end - begin)

    def _shown(self, packet: Packet[Any]) -> int:
        if packet.pts is None:
            raise OrderRefused("encoder_failed", f"{self.rung.name}: a picture came without its time")
        return int(packet.pts * packet.time_base / self._tick) * self._step

    def _mux(self, packet: Packet[Any], decoded: int, duration: int) -> None:
        pts = self._shown(packet)
        packet.time_base = self._tick / self._step
        packet.pts, packet.dts, packet.duration = pts, decoded, duration
        self._container.mux(packet)

    def _opened(self, timing: Timing, threads: int) -> VideoStream:
        family = _family(self.rung)
        try:
            stream = self._container.add_stream(
                family.codec, rate=timing.rate, options=options_for(self.rung, timing.gop)
            )
        except (FFmpegError, ValueError) as error:
            raise OrderRefused("encoder_missing", f"this machine has no encoder {family.codec}") from error
        if not isinstance(stream, VideoStream):
            raise OrderRefused("encoder_missing", f"{family.codec} does not encode pictures")
        self._describe(stream.codec_context, family, threads)
        try:
            stream.codec_context.open()
        except FFmpegError as error:
            raise OrderRefused(
                "encoder_failed", f"{family.codec} does not open for {self.rung.name}: {reason(error)}"
            ) from error
        if stream.codec_context.options:
            unknown = ", ".join(stream.codec_context.options)
            raise OrderRefused("unknown_option", f"{family.codec} has no option {unknown}", permanent=True)
        return stream

    def _describe(self, context: VideoCodecContext, family: EncoderFamily, threads: int) -> None:
        context.width, context.height = self.rung.width, self.rung.height
        context.pix_fmt = family.pixels
        context.time_base = self._tick
        context.framerate = self._rate
        # On the context: only then does the muxer write `colr`.
        context.color_primaries, context.color_trc, context.colorspace = self.rung.colour
        context.color_range = _LIMITED
        # Rungs have square pixels; CMAF wants that said in a `pasp` box.
        context.sample_aspect_ratio = Fraction(1)
        context.thread_count = threads
        # Not SLICE, which is PyAV's own choice: a picture cut into slices costs quality.
        context.thread_type = ThreadType.FRAME


def timing_of(rate: Fraction, gop: int) -> Timing:
    """Enough of a grid for an encoder that makes only an init."""
    return Timing(rate=rate, frames=gop, gop=gop, per_segment=gop)


def black(rung: Rung) -> VideoFrame:
    """A black picture as this rung's encoder takes it."""
    frame = VideoFrame(rung.width, rung.height, _family(rung).pixels)
    for number, plane in enumerate(frame.planes):
        plane.update(bytes([16 if number == 0 else 128]) * plane.buffer_size)
    return frame


def _family(rung: Rung) -> EncoderFamily:
    try:
        return family_of(rung)
    except UnknownFamily as error:
        raise OrderRefused("encoder_missing", str(error), permanent=True) from error
