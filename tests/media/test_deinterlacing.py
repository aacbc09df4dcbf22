"""Interlaced film: whole pictures, near to what was filmed, and the same ones however the film is cut into chunks."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import pytest
from av.filter import Graph

from telecine.media.colour import BT601
from telecine.media.orders import MissingSegments, Rung, Timing
from telecine.media.timeline.grid import Chunk
from tests.media import child_driver
from tests.media.child_driver import Looked, Said
from tests.media.patterns import paint, picture_hash

Inits = Callable[..., dict[str, bytes]]
SIZE = (320, 176)
FRAMES = 40
GRID = Timing(rate=Fraction(25), frames=FRAMES, gop=5, per_segment=5)
WHOLE = Rung(
    name="whole", width=320, height=176, crf=0, maxrate=1, bufsize=1, level="3.0", preset="ultrafast", lossless=True,
    profile="high444", colour=BT601,
)  # fmt: skip
SMALL = replace(WHOLE, name="small", width=160, height=88)
CODECS = {
    "mp4": ("libx264", {"x264-params": "tff=1:keyint=12:min-keyint=12:scenecut=0:bframes=2:open-gop=1:qp=10"}),
    "mkv": (
        "mpeg2video",
        {"flags": "+ildct+ilme", "qmin": "2", "qmax": "2", "bf": "2", "g": "12", "field_order": "tt"},
    ),
}


def filmed(number: int) -> av.VideoFrame:
    """Fifty pictures a second."""
    return paint(number, *SIZE)


def woven(number: int) -> av.VideoFrame:
    """The even rows of one picture, the odd rows of the next."""
    upper, lower = filmed(2 * number), filmed(2 * number + 1)
    frame = av.VideoFrame(*SIZE, "yuv420p")
    for into, even, odd in zip(frame.planes, upper.planes, lower.planes, strict=True):
        width, rows = into.line_size, (bytes(even), bytes(odd))
        into.update(b"".join(rows[row % 2][row * width : (row + 1) * width] for row in range(into.height)))
    return frame


@pytest.fixture(scope="module", params=CODECS)
def film(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Looked:
    home = tmp_path_factory.mktemp("film")
    path = home / f"film.{request.param}"
    codec, options = CODECS[request.param]
    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=25, options=options)
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        for number in range(FRAMES):
            frame = woven(number)
            frame.pts, frame.time_base = number, Fraction(1, 25)
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    looked = child_driver.look(path, home)
    assert looked.picture.interlaced
    return looked


@pytest.fixture(scope="module")
def one_pass(film: Looked) -> list[av.VideoFrame]:
    """The whole film through FFmpeg's filter alone."""
    with av.open(str(film.path)) as source:
        graph = Graph()
        nodes = [graph.add_buffer(template=source.streams.video[0]), graph.add("bwdif", "send_frame:auto:interlaced")]
        graph.link_nodes(*nodes, graph.add("buffersink")).configure()
        for frame in source.decode(video=0):
            graph.push(frame)
    graph.push(None)
    return [graph.vpull() for _ in range(FRAMES)]


@pytest.fixture(scope="module")
def init(made_inits: Inits) -> bytes:
    return made_inits(GRID, (WHOLE,))["whole"]


def pictures(init: bytes, spoken: Sequence[Said], rung: str = "whole") -> list[str]:
    made = sorted((one.number, said.scratch / one.path) for said in spoken for one in said.segments if one.rung == rung)
    assert [number for number, _ in made] == list(range(GRID.segments))
    data = init + b"".join(path.read_bytes() for _, path in made)
    with av.open(io.BytesIO(data), format="mp4") as shown:
        return [picture_hash(frame) for frame in shown.decode(video=0)]


@pytest.mark.parametrize("segments", [1, 3, 8])
def test_chunks_give_the_pictures_of_one_pass(
    segments: int, film: Looked, one_pass: list[av.VideoFrame], init: bytes, tmp_path: Path
) -> None:
    chunks = [Chunk(first=at, count=min(segments, 8 - at)) for at in range(0, 8, segments)]
    orders = child_driver.video_orders(film, GRID, [WHOLE], chunks, {})

    spoken = [child_driver.run(order, tmp_path / str(nth), source=film.path) for nth, order in enumerate(orders)]

    assert pictures(init, spoken) == [picture_hash(frame) for frame in one_pass]
    assert [said.done["frames"] for said in spoken] == [5 * chunk.count for chunk in chunks]


def test_rungs_that_lack_different_segments_get_the_same_pictures(
    film: Looked, one_pass: list[av.VideoFrame], init: bytes, tmp_path: Path
) -> None:
    [order] = child_driver.video_orders(film, GRID, [WHOLE, SMALL], [Chunk(first=0, count=8)], {})
    even, odd = (0, 3, 4, 7), (1, 2, 5, 6)

    first = replace(
        order, wanted=(MissingSegments(rung=WHOLE, segments=even), MissingSegments(rung=SMALL, segments=odd))
    )
    second = replace(
        order, wanted=(MissingSegments(rung=WHOLE, segments=odd), MissingSegments(rung=SMALL, segments=even))
    )
    spoken = [child_driver.run(one, tmp_path / str(nth), source=film.path) for nth, one in enumerate((first, second))]

    assert pictures(init, spoken) == [picture_hash(frame) for frame in one_pass]


def test_deinterlaced_pictures_are_near_to_what_was_filmed(film: Looked, init: bytes, tmp_path: Path) -> None:
    [order] = child_driver.video_orders(film, GRID, [WHOLE], [Chunk(first=0, count=8)], {})

    said = child_driver.run(order, tmp_path, source=film.path)

    data = init + b"".join((tmp_path / one.path).read_bytes() for one in said.segments)
    with av.open(io.BytesIO(data), format="mp4") as shown:
        frames = list(shown.decode(video=0))
    ratios = [likeness(frame, filmed(2 * number)) for number, frame in enumerate(frames)]
    assert sum(ratios) / len(ratios) > 29  # a filter that looks at one frame alone comes to 28.2


def likeness(one: av.VideoFrame, other: av.VideoFrame) -> float:
    """PSNR of luma in dB, beneath the blocks that say a picture's number: those flicker as no film does."""
    squares = [(a - b) ** 2 for a, b in zip(scene(one), scene(other), strict=True)]
    error = sum(squares) / len(squares)
    return 10 * math.log10(255 * 255 / error) if error else 100.0


def scene(frame: av.VideoFrame) -> bytes:
    data, stride = bytes(frame.planes[0]), frame.planes[0].line_size
    return b"".join(data[row * stride : row * stride + frame.width] for row in range(frame.height // 4, frame.height))
