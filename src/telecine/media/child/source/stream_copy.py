"""One stream of a source as one of the remuxed file: its packets as they are, or its sound coded again without loss."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import av.error
from av.audio.frame import AudioFrame
from av.audio.resampler import AudioResampler
from av.packet import Packet

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.source import open_source

_MAX_DRIFT = 2  # frames that a stream's times may be off before they count as a gap
_MAX_EDGE = 2  # broken packets at the start and at the end that are no damage: the track was cut out of a longer one


class CopiedStream:
    """Packets as they are."""

    def __init__(self, out: Any, stream: Any) -> None:
        self.stream: Any = out.add_stream_from_template(stream, opaque=True)  # else it needs an encoder of that name
        self.damaged = 0

    def take(self, packet: Packet[Any] | None) -> list[Packet[Any]]:
        if packet is None:
            return []
        packet.stream = self.stream
        return [packet]


class RecodedStream:
    """Sound that the container cannot hold (WMA, LATM, Blu-ray's PCM, AAC without a header), kept as FLAC."""

    def __init__(self, out: Any, stream: Any) -> None:
        open_source.prepare(stream)
        self._source = stream
        context = stream.codec_context
        self._rate = context.sample_rate
        self.stream: Any = out.add_stream("flac", rate=self._rate, layout=context.layout.name)
        self.stream.codec_context.format = "s32"
        self._kind = AudioResampler(format="s32", layout=context.layout.name, rate=self._rate)
        self._next: int | None = None  # the sample at which the next frame begins
        self._broken = 0

    @property
    def damaged(self) -> int:
        """Packets that cannot be decoded, unless they are so few that they may lie at the edges."""
        return self._broken if self._broken > 2 * _MAX_EDGE else 0

    def take(self, packet: Packet[Any] | None) -> list[Packet[Any]]:
        try:
            frames = self._source.decode(packet)
        except av.error.FFmpegError as error:
            if not open_source.is_damage(error):
                raise
            self._broken += 1
            return []  # a gap: whoever listens fills it
        even: list[AudioFrame] = [one for frame in frames for one in self._kind.resample(frame)]
        if packet is None:
            even += self._kind.resample(None)
        for frame in even:
            self._stamp(frame)
        coded = [one for frame in (*even, *([None] if packet is None else [])) for one in self.stream.encode(frame)]
        return [one for one in coded if one.size]  # the last one has no sound and no time

    def _stamp(self, frame: AudioFrame) -> None:
        """Some decoders give a time to the first frame of a packet only: the others follow on it."""
        said = None if frame.pts is None else round(frame.pts * (frame.time_base or 0) * self._rate)
        if self._next is None:
            self._next = said or 0
        elif said is not None and abs(said - self._next) > _MAX_DRIFT * max(frame.samples, 512):
            self._next = max(said, self._next)
        frame.pts, frame.time_base = self._next, Fraction(1, self._rate)
        self._next += frame.samples


def add_stream(out: Any, stream: Any, *, can_hold: bool) -> CopiedStream | RecodedStream:
    """The same stream in the new file, with its language, title, flags and display matrix."""
    if can_hold:
        target: CopiedStream | RecodedStream = CopiedStream(out, stream)
    elif stream.type == "audio":
        target = RecodedStream(out, stream)
    else:
        message = f"{open_source.codec_name(stream)} cannot be copied into a file in which one can seek"
        raise OrderRefused("unsupported", message, permanent=True)
    for name in ("language", "title"):
        if name in stream.metadata:
            target.stream.metadata[name] = stream.metadata[name]
    target.stream.disposition = stream.disposition
    return target
