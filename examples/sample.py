"""A little film to try things with: a moving test picture and a tone. Made here, so that nothing is fetched."""

from fractions import Fraction
from pathlib import Path

import av
from av.filter import Graph

RATE = 25


def make(path: Path, seconds: int = 24, size: str = "1280x720") -> Path:
    """Write the film, H.264 and AAC in MP4; some seconds of work."""
    with av.open(str(path), "w") as film:
        width, height = (int(side) for side in size.split("x"))
        options = {"preset": "ultrafast", "crf": "20", "g": "250"}
        picture = film.add_stream("libx264", rate=RATE, width=width, height=height, pix_fmt="yuv420p", options=options)
        sound = film.add_stream("aac", rate=48_000, layout="stereo", bit_rate=128_000)
        for packet in _encoded(picture, f"testsrc2=size={size}:rate={RATE}:duration={seconds},format=yuv420p"):
            film.mux(packet)
        tone = f"sine=frequency=220:beep_factor=4:sample_rate=48000:duration={seconds}"
        for packet in _encoded(sound, f"{tone},aformat=sample_fmts=fltp:channel_layouts=stereo"):
            film.mux(packet)
    return path


def _encoded(stream, description):
    """Everything that a filter graph without inputs gives, encoded."""
    graph = Graph()
    names = description.split(",")
    is_sound = names[0].startswith("sine")
    chain = [graph.add(*name.split("=", 1)) for name in names]
    chain.append(graph.add("abuffersink" if is_sound else "buffersink"))
    graph.link_nodes(*chain).configure()
    count = 0
    while True:
        try:
            frame = graph.pull()
        except (av.EOFError, BlockingIOError):
            break
        if is_sound:
            frame.pts, frame.time_base = count, Fraction(1, 48_000)
            count += frame.samples
        else:
            frame.pts, frame.time_base = count, Fraction(1, RATE)
            count += 1
        yield from stream.encode(frame)
    yield from stream.encode(None)
