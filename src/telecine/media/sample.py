"""A little film to try things with: a moving test picture and a tone. Made here, so that nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
from av.filter import Graph

RATE = 25
SOUND_RATE = 48_000


def make_sample(path: Path, seconds: int, width: int, height: int, container: str = "mp4") -> None:
    """Write the film, H.264 and AAC, into a container by FFmpeg's name for it; a few seconds of work."""
    with av.open(str(path), "w", format=container) as film:
        options = {"preset": "ultrafast", "crf": "23", "g": "250"}
        picture = film.add_stream("libx264", rate=RATE, options=options)
        picture.width, picture.height, picture.pix_fmt = width, height, "yuv420p"
        sound = film.add_stream("aac", rate=SOUND_RATE, layout="stereo")
        sound.bit_rate = 128_000
        source = f"size={width}x{height}:rate={RATE}:duration={seconds}"
        pictures = [("testsrc2", source), ("format", "yuv420p"), ("buffersink", None)]
        tone = f"frequency=220:beep_factor=4:sample_rate={SOUND_RATE}:duration={seconds}"
        sounds = [("sine", tone), ("aformat", "sample_fmts=fltp:channel_layouts=stereo"), ("abuffersink", None)]
        for stream, chain in ((picture, pictures), (sound, sounds)):
            for frame in _frames(chain):
                film.mux(stream.encode(frame))
            film.mux(stream.encode(None))


def _frames(chain: list[tuple[str, str | None]]) -> Iterator[Any]:
    """Everything that a graph without inputs gives."""
    graph = Graph()
    graph.link_nodes(*(graph.add(name, options) for name, options in chain)).configure()
    count = 0
    while True:
        try:
            frame: Any = graph.pull()
        except (av.EOFError, BlockingIOError):
            return
        samples = getattr(frame, "samples", 0)
        frame.pts, frame.time_base = count, Fraction(1, SOUND_RATE if samples else RATE)
        count += samples or 1
        yield frame
