"""Whatever the source and however it is cut: every frame once, in order, at its time, and the sound beside it.

Segments of one second in chunks of two, each chunk in a process of its own, against one plain decode of the source, or
one pass over the whole film where its pictures are changed on the way. The numbers are read from the pictures; which
ones should be seen is known from how the film was shot, not from the plan.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import av
import pytest

from telecine.media.colour import BT709
from telecine.media.ladders.ladder import Ladder, LadderStep, climb
from telecine.media.mp4.boxes import read_init
from telecine.media.orders import Rung, Timing
from telecine.media.timeline.grid import Span
from tests.media import child_driver
from tests.media.child_driver import Looked, Made
from tests.media.patterns import Unreadable, bursts, heard, picture_hash, read_number
from tests.media.sources import FILMS, Kind
from tests.media.twins import PICTURES, SOUNDS, unlike
from tests.support.thorough import some_of

Films = Callable[[str], Path]
Looks = Callable[[str], Looked]
Inits = Callable[..., dict[str, bytes]]
SOME_GRID = Timing(rate=Fraction(25), frames=1, gop=25, per_segment=25)  # audio has none of its own
LADDER: Ladder = (
    LadderStep(name="lossless", lossless=True, preset="ultrafast"),
    LadderStep(name="small", height=90, kbps=300, preset="ultrafast"),
)
PER_CHUNK = 2
AUDIO_FRAME = Fraction(1024, 48_000)
WHOLE = [name for name, kind in FILMS.items() if kind.numbers and not kind.damaged]
DAMAGED = [name for name, kind in FILMS.items() if kind.damaged and kind.numbers]
SOUNDING = [name for name, kind in FILMS.items() if kind.voices and not kind.damaged]
UNCUT = ["mp4-h264", "ts-starts-at-10-s", "webm-vp9", "mkv-23.976", "mkv-5.1", "mkv-three-languages", "m4a-audio-only"]
# Where decoded source pictures can be compared with the lossless rung: nothing is scaled, turned or left out.
UNTOUCHED = {name for name, kind in FILMS.items() if kind.untouched and kind.rate is not None and name != "mp4-120"}


# Seconds for the tables of its colours, in every child: here one makes it all, and the long proof cuts and compares it.
SLOW = {"mkv-hevc-hdr"}


@dataclass(frozen=True)
class Shown:
    """What a decoder shows of one rung."""

    numbers: tuple[int, ...]
    times: tuple[int, ...]
    size: tuple[int, int]
    hashes: tuple[str, ...]


@pytest.mark.parametrize("name", some_of(WHOLE, unlike(WHOLE, PICTURES)))
def test_every_frame_comes_once_and_in_order(
    source: Films, looked: Looks, made_inits: Inits, tmp_path: Path, name: str
) -> None:
    kind, film = FILMS[name], looked(name)
    grid = child_driver.timing(film)
    rungs = climb(LADDER, film.picture, grid.rate).rungs
    inits = made_inits(grid, rungs)
    chunks = child_driver.chunks_of(film, grid, grid.segments if name in SLOW else PER_CHUNK)

    made = child_driver.gather(
        child_driver.each(film, child_driver.video_orders(film, grid, rungs, chunks, inits), tmp_path)
    )
    shown = {name: show(one.after(inits[name])) for name, one in made.items()}

    assert film.picture.shown == kind.shown
    assert set(shown) == {"lossless", "small"}
    for rung in rungs:
        check_pieces(made[rung.name], grid)
        seen = shown[rung.name]
        check_numbers(seen.numbers, kind, grid)
        assert [time - seen.times[0] for time in seen.times] == [n * grid.step for n in range(grid.frames)]
        assert seen.size == (rung.width, rung.height) == size_of(rung, kind)
    assert film.picture.is_hdr == ("hdr" in name)
    if film.picture.is_hdr:
        assert {rung.colour for rung in rungs} == {BT709}
        assert {read_init(init).colour for init in inits.values()} == {(*BT709, False)}
    if name in UNTOUCHED:
        assert shown["lossless"].hashes == pictures(source(name)), "the source's own pictures, bit by bit"
    elif name not in SLOW:
        assert shown["lossless"] == in_one_pass(film, grid, rungs[-1], inits, tmp_path)


@pytest.mark.parametrize("name", some_of(SOUNDING, unlike(SOUNDING, SOUNDS)))
def test_sound_is_cut_on_the_films_grid_and_stays_beside_it(
    looked: Looks, made_inits: Inits, tmp_path: Path, name: str
) -> None:
    kind, film = FILMS[name], looked(name)
    span = child_driver.span(film)
    orders = child_driver.audio_orders(film, span)
    inits = made_inits(SOME_GRID, (), [order.track for order in orders])

    told = child_driver.each(film, orders, tmp_path)
    made = child_driver.gather(told)

    assert {one.done["damaged"] for one in told} == {0}
    assert [order.sound.language for order in orders] == [voice.language for voice in kind.voices]
    for order, voice in zip(orders, kind.voices, strict=True):
        check_borders(made[order.track.name], span)
        samples = listen(made[order.track.name].after(inits[order.track.name]))
        assert abs(len(samples) - span.length * 48_000) < 1024
        found = bursts(samples, 48_000)
        assert sorted(found) == kind.heard(voice)
        for second, at in found.items():
            assert abs(at - (second - kind.begins)) <= AUDIO_FRAME + kind.late, f"second {second} is heard at {at}"


@pytest.mark.parametrize("name", UNCUT)
def test_sound_that_is_cut_is_the_sound_that_is_not(
    looked: Looks, made_inits: Inits, tmp_path: Path, name: str
) -> None:
    film = looked(name)
    order = child_driver.audio_orders(film, child_driver.span(film))[-1]
    [init] = made_inits(SOME_GRID, (), [order.track]).values()

    cut, uncut = child_driver.each(film, [order, replace(order, borders=order.borders[:1])], tmp_path)

    assert len(cut.segments) == len(order.borders) > 1
    [pieces], [whole] = child_driver.gather([cut]).values(), child_driver.gather([uncut]).values()
    assert listen(pieces.after(init)) == listen(whole.after(init))


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_film_is_told_and_what_is_left_of_it_is_shown(
    looked: Looks, made_inits: Inits, tmp_path: Path, name: str
) -> None:
    film = looked(name)
    grid = child_driver.timing(film)
    rungs = climb(LADDER, film.picture, grid.rate).rungs
    inits = made_inits(grid, rungs)
    chunks = child_driver.chunks_of(film, grid, PER_CHUNK)

    strict = child_driver.each(film, child_driver.video_orders(film, grid, rungs, chunks, inits), tmp_path / "strict")
    mending = child_driver.each(
        film, child_driver.video_orders(film, grid, rungs, chunks, inits, mend=True), tmp_path / "mending"
    )

    refusals = [said.error for said in strict if said.error]
    assert film.times.damaged or refusals, "nobody would know"
    assert all(error["code"] == "frame_mismatch" and error["permanent"] for error in refusals)
    made = child_driver.gather(mending)
    check_pieces(made["small"], grid)
    assert grid.rate == 25
    whole = [number for number in range(40) if number < 36 or "tail" in name]
    assert numbers_where_readable(made["lossless"].after(inits["lossless"]))[: len(whole)] == whole


# --- what should come out ----------------------------------------------------------------------------------------


def check_numbers(numbers: tuple[int, ...], kind: Kind, grid: Timing) -> None:
    """Every picture once and in order. Without a constant rate, each near its time: none is lost or repeated but where
    the next one comes within a frame, or later than that."""
    if kind.rate is not None:
        assert grid.rate == kind.rate
        assert numbers == kind.numbers
        return
    shot = kind.length - kind.begins
    assert abs(grid.frames / grid.rate - shot) <= 1 / grid.rate + Fraction(1, 30)
    assert list(numbers) == sorted(numbers)
    rounded = Fraction(1, 500) * grid.rate  # what two roundings to milliseconds are in frames
    ticks = [second * grid.rate for second in kind.seconds]
    for number, at, after in zip(kind.numbers, ticks, [*ticks[1:], None], strict=True):
        shown = numbers.count(number)
        assert shown == 0 or abs(numbers.index(number) - at) <= Fraction(3, 4) + rounded
        if after is not None:
            assert shown >= 1 or after - at < 1 + rounded
            assert shown <= 1 or after - at > 1 - rounded


def size_of(rung: Rung, kind: Kind) -> tuple[int, int]:
    """H.264 with 4:2:0 has even sides; the small rung has 90 pixels at its short one."""
    wide, high = kind.shown
    short = min(wide, high)
    if rung.name == "lossless":
        return wide - wide % 2, high - high % 2
    return 2 * round(wide * 45 / short), 2 * round(high * 45 / short)


def check_pieces(made: Made, grid: Timing) -> None:
    """Segments are those of the grid: their frames, their times, and what stands in their own boxes."""
    assert [segment.number for segment in made.segments] == list(range(grid.segments))
    for segment, body in zip(made.segments, made.bodies, strict=True):
        frames = grid.frames_of(segment.number)
        assert segment.size == len(body)
        assert segment.frames == len(frames)
        assert segment.start == frames.start * grid.step == tfdt(body)
        assert segment.duration == len(frames) * grid.step


def check_borders(made: Made, film: Span) -> None:
    """Audio is cut at the AAC frame nearest to the video's border, and no frame is lost between two segments."""
    assert [segment.number for segment in made.segments] == list(range(len(film.borders)))
    at = 0
    for segment, body, border in zip(made.segments, made.bodies, film.borders, strict=True):
        assert segment.start == tfdt(body) == at
        if segment.number:
            assert abs(segment.start - 1024 - border * 48_000) <= 1024
        at += segment.duration
    assert at == round(film.length * 48_000) + 1024, "to the sample, and one frame of priming"


def tfdt(body: bytes) -> int:
    """When the first fragment begins, as it says itself."""
    at = body.index(b"tfdt") + 4
    (start,) = struct.unpack_from(">Q" if body[at] == 1 else ">I", body, at + 4)
    return int(start)


# --- what a decoder makes of it ----------------------------------------------------------------------------------


def show(joined: bytes) -> Shown:
    with av.open(io.BytesIO(joined), format="mp4") as film:
        frames = list(film.decode(video=0))
    return Shown(
        numbers=tuple(map(read_number, frames)),
        times=tuple(frame.pts for frame in frames if frame.pts is not None),
        size=(frames[0].width, frames[0].height),
        hashes=tuple(map(picture_hash, frames)),
    )


def numbers_where_readable(joined: bytes) -> list[int | None]:
    with av.open(io.BytesIO(joined), format="mp4") as film:
        return [number_of(frame) for frame in film.decode(video=0)]


def number_of(frame: av.VideoFrame) -> int | None:
    try:
        return read_number(frame)
    except Unreadable:
        return None


def in_one_pass(film: Looked, grid: Timing, rung: Rung, inits: dict[str, bytes], folder: Path) -> Shown:
    """The rung as one child makes it that decodes the film from begin to end."""
    assert rung.lossless
    whole = child_driver.chunks_of(film, grid, grid.segments)
    made = child_driver.gather(
        child_driver.each(film, child_driver.video_orders(film, grid, [rung], whole, inits), folder / "whole")
    )
    check_pieces(made[rung.name], grid)
    return show(made[rung.name].after(inits[rung.name]))


def pictures(path: Path) -> tuple[str, ...]:
    """The source's own pictures, by one plain decode from begin to end."""
    with av.open(str(path)) as film:
        real = next(one for one in film.streams.video if not one.disposition & 0x400)
        return tuple(map(picture_hash, film.decode(real)))


def listen(joined: bytes) -> Sequence[float]:
    with av.open(io.BytesIO(joined), format="mp4") as film:
        return heard(film.decode(audio=0))
