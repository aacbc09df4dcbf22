"""One chunk in a real child: exact frames, resumed at the segment, checked before it is said."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import pytest

from telecine.media.colour import BT601
from telecine.media.mp4.boxes import fragments, read_init
from telecine.media.orders import ChildLimits, EncodeVideo, MissingSegments, Rung, Segment, Timing
from telecine.media.timeline.grid import Chunk
from tests.media import child_driver
from tests.media.child_driver import Looked, Said
from tests.media.make_video import Film, Shot, shoot
from tests.media.patterns import paint, picture_hash, read_number

Inits = Callable[..., dict[str, bytes]]
GRID = Timing(rate=Fraction(25), frames=85, gop=25, per_segment=25)
BIG = Rung(
    name="big", width=320, height=180, crf=20, maxrate=900_000, bufsize=1_800_000, level="3.0", preset="ultrafast",
    colour=BT601,
)  # fmt: skip
SMALL = replace(BIG, name="small", width=160, height=90, crf=26)


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    home = tmp_path_factory.mktemp("film")
    path = shoot(home / "film.mp4", Film(options={"x264-params": "keyint=40:bframes=3:open-gop=1"}, voices=()))
    return child_driver.look(path, home)


@pytest.fixture(scope="module")
def inits(made_inits: Inits) -> dict[str, bytes]:
    return made_inits(GRID, (BIG, SMALL))


def chunk(film: Looked, wanted: dict[Rung, Iterable[int]], inits: dict[str, bytes] | None = None) -> EncodeVideo:
    """An order for these segments of these rungs."""
    whole, *_ = child_driver.video_orders(film, GRID, list(wanted), [Chunk(first=0, count=GRID.segments)], inits or {})
    known = {one.rung.name: one.init for one in whole.wanted}
    missing = (MissingSegments(rung=rung, segments=tuple(some), init=known[rung.name]) for rung, some in wanted.items())
    return replace(whole, wanted=tuple(missing))


def pairs(said: Said) -> list[tuple[str, int]]:
    return [(one.rung, one.number) for one in said.segments]


def numbers(init: bytes, *bodies: bytes) -> list[int]:
    with av.open(io.BytesIO(init + b"".join(bodies)), format="mp4") as shown:
        return [read_number(frame) for frame in shown.decode(video=0)]


def body(said: Said, rung: str, number: int) -> bytes:
    (found,) = (one for one in said.segments if (one.rung, one.number) == (rung, number))
    return (said.scratch / found.path).read_bytes()


def test_a_segment_is_what_its_line_says(film: Looked, inits: dict[str, bytes], tmp_path: Path) -> None:
    said = child_driver.run(chunk(film, {BIG: [1, 3]}, inits), tmp_path, source=film.path)

    assert said.done["frames"] == 60  # from the first missing frame to the last: segment 2 is decoded on the way
    for segment in said.segments:
        data = (tmp_path / segment.path).read_bytes()
        planned = GRID.frames_of(segment.number)
        (part,) = fragments(data, read_init(inits["big"]))
        assert part.times() == [n * 1000 for n in planned]
        assert part.sequence == segment.number + 1
        assert numbers(inits["big"], data) == list(planned)
        assert segment == Segment(
            rung="big", number=segment.number, path=segment.path, size=len(data),
            sha256=hashlib.sha256(data).hexdigest(), frames=len(planned), start=planned.start * 1000,
            duration=len(planned) * 1000, fragments=((0, len(data), len(planned), part.first_end),),
        )  # fmt: skip
    assert pairs(said) == [("big", 1), ("big", 3)]
    assert not list(tmp_path.glob("*.part"))


def test_each_rung_gets_only_what_it_lacks(film: Looked, inits: dict[str, bytes], tmp_path: Path) -> None:
    said = child_driver.run(chunk(film, {BIG: [0, 3], SMALL: [1, 2]}, inits), tmp_path, source=film.path)

    assert sorted(pairs(said)) == [("big", 0), ("big", 3), ("small", 1), ("small", 2)]
    assert numbers(inits["small"], body(said, "small", 1), body(said, "small", 2)) == list(range(25, 75))
    assert numbers(inits["big"], body(said, "big", 0), body(said, "big", 3)) == [*range(25), *range(75, 85)]


def test_a_rung_that_is_scaled_from_another_looks_the_same_when_that_one_is_there_already(
    film: Looked, made_inits: Inits, tmp_path: Path
) -> None:
    middle = replace(BIG, name="middle", width=256, height=144, lossless=True, profile="high444", crf=0)
    small = replace(middle, name="small", width=128, height=72, scaled_from=(256, 144))
    twin = replace(small, name="twin")
    init = made_inits(GRID, (small,))["small"]

    both = child_driver.run(chunk(film, {middle: [0], small: [0], twin: [0]}), tmp_path / "both", source=film.path)
    alone = child_driver.run(chunk(film, {small: [0]}), tmp_path / "alone", source=film.path)

    seen = pictures(init + body(both, "small", 0))
    assert seen == pictures(init + body(both, "twin", 0)) == pictures(init + body(alone, "small", 0))
    with av.open(str(film.path)) as source:
        frames = list(source.decode(video=0))[:25]
    assert seen == [picture_hash(smaller(frame, (256, 144), (128, 72))) for frame in frames]
    assert seen != [picture_hash(smaller(frame, (128, 72))) for frame in frames]


def pictures(data: bytes) -> list[str]:
    with av.open(io.BytesIO(data), format="mp4") as shown:
        return [picture_hash(frame) for frame in shown.decode(video=0) if isinstance(frame, av.VideoFrame)]


def smaller(frame: av.VideoFrame, *sizes: tuple[int, int]) -> av.VideoFrame:
    """Scaled from size to size, by nobody but FFmpeg."""
    graph = av.filter.Graph()
    ends = [graph.add_buffer(width=frame.width, height=frame.height, format=frame.format, time_base=Fraction(1, 25))]
    ends += [graph.add("scale", f"{width}:{height}:flags=bicubic") for width, height in sizes]
    graph.link_nodes(*ends, graph.add("buffersink")).configure()
    graph.push(frame)
    return graph.vpull()


def test_several_threads_make_the_same_frames(film: Looked, inits: dict[str, bytes], tmp_path: Path) -> None:
    order = replace(chunk(film, {BIG: range(4), SMALL: [1]}, inits), limits=ChildLimits(threads=3))

    said = child_driver.run(order, tmp_path, source=film.path)

    assert numbers(inits["big"], *(body(said, "big", n) for n in range(4))) == list(range(85))
    assert numbers(inits["small"], body(said, "small", 1)) == list(range(25, 50))


def test_what_a_killed_child_has_said_is_not_made_again(film: Looked, inits: dict[str, bytes], tmp_path: Path) -> None:
    order = chunk(film, {BIG: range(4), SMALL: range(4)}, inits)
    first = child_driver.run(order, tmp_path / "1", source=film.path, on_segment=lambda one: one.number < 2)
    kept = [pair for pair in pairs(first) if pair[1] < 2]

    left = {rung: [n for n in range(4) if (rung.name, n) not in kept] for rung in (BIG, SMALL)}
    second = child_driver.run(chunk(film, left, inits), tmp_path / "2", source=film.path)

    assert first.exit_code != 0
    assert not first.all("done")
    assert sorted(kept + pairs(second)) == [(rung, n) for rung in ("big", "small") for n in range(4)]
    bodies = [body(first if ("big", n) in kept else second, "big", n) for n in range(4)]
    assert numbers(inits["big"], *bodies) == list(range(85))


def test_an_encoder_that_makes_another_init_is_refused(film: Looked, inits: dict[str, bytes], tmp_path: Path) -> None:
    other = replace(BIG, family="x264-alt")  # the plan's init is that of x264

    said = child_driver.run(chunk(film, {other: [0]}, inits), tmp_path, source=film.path)

    assert said.error is not None
    assert (said.error["code"], said.error["permanent"]) == ("init_mismatch", True)
    assert said.segments == []
    assert said.exit_code == 1


def test_a_rung_that_fails_leaves_the_others_alone(film: Looked, inits: dict[str, bytes], tmp_path: Path) -> None:
    hopeless = replace(SMALL, level="99")

    said = child_driver.run(chunk(film, {BIG: [0, 1], hopeless: [0, 1]}, inits), tmp_path, source=film.path)

    assert said.done["failed"] == ["small"]
    (failed,) = said.all("rung_failed")
    assert (failed["rung"], failed["code"]) == ("small", "encoder_failed")
    assert pairs(said) == [("big", 0), ("big", 1)]


def test_an_encoder_that_this_machine_lacks_is_said(film: Looked, tmp_path: Path) -> None:
    said = child_driver.run(chunk(film, {replace(BIG, family="videotoolbox"): [0]}), tmp_path, source=film.path)

    assert said.error is not None
    assert said.error["code"] == "encoder_missing"


def test_a_frame_that_the_source_does_not_have_is_never_made_up(film: Looked, tmp_path: Path) -> None:
    order = chunk(film, {BIG: [0, 1]})
    times = list(order.times)
    times[30] -= 1

    said = child_driver.run(replace(order, times=tuple(times)), tmp_path, source=film.path)

    assert said.error is not None
    assert (said.error["code"], said.error["permanent"]) == ("frame_mismatch", True)
    assert "frame 30 of the film" in said.error["message"]


def test_a_frame_that_the_index_does_not_have_is_noticed(film: Looked, tmp_path: Path) -> None:
    order = chunk(film, {BIG: [0]})
    left_out = (*order.times[:10], *order.times[11:])

    said = child_driver.run(replace(order, times=left_out), tmp_path, source=film.path)

    assert said.error is not None
    assert said.error["code"] == "frame_mismatch"
    assert "its index lacks" in said.error["message"]


def test_frames_are_shown_twice_and_left_out_as_the_plan_says(
    film: Looked, inits: dict[str, bytes], tmp_path: Path
) -> None:
    order = chunk(film, {BIG: [0]}, inits)
    shown = [0, 0, 0, 3, 4, 6, *range(10, 28), 28]

    said = child_driver.run(
        replace(order, times=tuple(order.times[n] for n in shown), drops=True), tmp_path, source=film.path
    )

    assert numbers(inits["big"], body(said, "big", 0)) == shown


def test_a_key_that_is_none_is_survived_by_going_further_back(
    film: Looked, inits: dict[str, bytes], tmp_path: Path
) -> None:
    order = chunk(film, {BIG: [1]}, inits)

    said = child_driver.run(replace(order, keys=(order.times[20], order.times[24])), tmp_path, source=film.path)

    assert numbers(inits["big"], body(said, "big", 1)) == list(range(25, 50))


def test_a_memory_limit_is_named_when_it_is_hit(film: Looked, tmp_path: Path) -> None:
    huge = replace(BIG, width=3840, height=2160, level="5.2", preset="slow")
    limit = 400 << 20

    said = child_driver.run(
        replace(chunk(film, {huge: [0]}), limits=ChildLimits(memory=limit)), tmp_path, source=film.path
    )

    assert said.error is not None
    assert (said.error["code"], said.error["permanent"]) == ("out_of_memory", False)
    assert str(limit) in said.error["message"]


def test_a_cpu_limit_is_named_when_it_is_hit(film: Looked, tmp_path: Path) -> None:
    slow = replace(BIG, width=1280, height=720, level="5.2", preset="placebo")

    said = child_driver.run(
        replace(chunk(film, {slow: range(4)}), limits=ChildLimits(cpu_seconds=1)), tmp_path, source=film.path
    )

    assert said.error is not None
    assert said.error["code"] == "out_of_cpu_time"


def test_full_range_becomes_limited(inits: dict[str, bytes], tmp_path: Path) -> None:
    path = shoot(tmp_path / "full.mp4", Film(shots=(Shot(count=25),), settings={"color_range": 2}, voices=()))
    looked = child_driver.look(path, tmp_path)
    order = child_driver.video_orders(looked, replace(GRID, frames=25), [BIG], [Chunk(first=0, count=1)], {})[0]
    white = max(bytes(paint(0).planes[0]))

    said = child_driver.run(order, tmp_path / "out", source=path)

    with av.open(io.BytesIO(inits["big"] + body(said, "big", 0)), format="mp4") as shown:
        (frame, *_) = shown.decode(video=0)
    assert looked.picture.full_range
    assert white == 235
    # 235 of 255 becomes 16 + 235 · 219 / 255 = 218.
    assert abs(max(bytes(frame.planes[0])) - 218) <= 6
