"""Whatever the source and however it is cut: every frame once, in order, at its time, and the sound beside it.

Segments of one second in chunks of two, each chunk in a process of its own, against one pass over the whole film.
The numbers are read from the pictures; what should be seen is known from how the film was shot, not from the plan.
"""

from __future__ import annotations

import io
import struct
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import av
import pytest

from telecine.media.grid import Film
from telecine.media.ladder import Ladder, Step, climb
from telecine.media.orders import EncodeAudio, Rung, Timing
from tests.media import drive
from tests.media.drive import Made
from tests.media.paint import bursts, heard, picture_hash, read_number
from tests.media.sources import FILMS, Kind

Films = Callable[[str], Path]
Inits = Callable[..., dict[str, bytes]]
SOME_GRID = Timing(rate=Fraction(25), frames=1, gop=25, per_segment=25)  # audio has none of its own
LADDER: Ladder = (
    Step(name="lossless", lossless=True, preset="ultrafast"),
    Step(name="small", height=90, kbps=300, preset="ultrafast"),
)
PER_CHUNK = 2
AUDIO_FRAME = Fraction(1024, 48_000)
WHOLE = [name for name, kind in FILMS.items() if kind.numbers and not kind.damaged and name != "mkv-repeated-pts"]
SOUNDING = [name for name, kind in FILMS.items() if kind.voices and not kind.damaged]
# Where decoded source pictures can be compared with the lossless rung: nothing is scaled, turned or left out.
UNTOUCHED = {name for name, kind in FILMS.items() if kind.untouched and kind.rate is not None and name != "mp4-120"}


@dataclass(frozen=True)
class Shown:
    """What a decoder shows of one rung."""

    numbers: tuple[int, ...]
    hashes: tuple[str, ...]
    times: tuple[int, ...]
    size: tuple[int, int]


@pytest.mark.parametrize("name", WHOLE)
def test_every_frame_comes_once_and_in_order(source: Films, made_inits: Inits, tmp_path: Path, name: str) -> None:
    kind, looked = FILMS[name], drive.look(source(name), tmp_path)
    grid = drive.timing(looked)
    rungs = climb(LADDER, looked.picture, grid.rate).rungs
    inits = made_inits(grid, rungs)
    chunks = drive.chunks_of(looked, grid, PER_CHUNK)

    orders = drive.video_orders(looked, grid, rungs, [*chunks, *drive.chunks_of(looked, grid, grid.segments)], inits)
    *pieces, whole = drive.each(looked, orders, tmp_path)
    cut, single = drive.gather(pieces), drive.gather([whole])

    should = expected(kind, grid)
    assert looked.picture.shown == kind.shown
    assert set(cut) == set(single) == {rung.name for rung in rungs} == {"lossless", "small"}
    for rung in rungs:
        check_pieces(cut[rung.name], grid)
        check_pieces(single[rung.name], grid)
        seen = show(cut[rung.name].after(inits[rung.name]))
        assert seen.numbers == should
        assert [time - seen.times[0] for time in seen.times] == [n * grid.step for n in range(grid.frames)]
        assert seen.size == (rung.width, rung.height) == size_of(rung, kind)
    lossless = show(cut["lossless"].after(inits["lossless"]))
    assert lossless == show(single["lossless"].after(inits["lossless"]))
    if name in UNTOUCHED:
        assert lossless.hashes == pictures(source(name))


@pytest.mark.parametrize("name", SOUNDING)
def test_sound_that_is_cut_is_the_sound_that_is_not(
    source: Films, made_inits: Inits, tmp_path: Path, name: str
) -> None:
    kind, looked = FILMS[name], drive.look(source(name), tmp_path)
    film = drive.span(looked)
    orders = drive.audio_orders(looked, film)
    inits = made_inits(SOME_GRID, (), [order.track for order in orders])

    said = drive.each(looked, [*orders, *(replace(one, borders=film.borders[:1]) for one in orders)], tmp_path)
    cut, uncut = drive.gather(said[: len(orders)]), drive.gather(said[len(orders) :])

    assert len(cut) == len(kind.voices)
    for order, voice in zip(orders, kind.voices, strict=True):
        made, whole = cut[order.track.name], uncut[order.track.name]
        check_borders(made, order, film)
        samples = listen(made.after(inits[order.track.name]))
        assert samples == listen(whole.after(inits[order.track.name]))
        assert abs(len(samples) - film.length * 48_000) < 1024
        found = bursts(samples, 48_000)
        assert sorted(found) == kind.heard(voice)
        for second, at in found.items():
            assert abs(at - (second - kind.begins)) <= AUDIO_FRAME + kind.late, f"second {second} is heard at {at}"
    assert [one.sound.language for one in orders] == [voice.language for voice in kind.voices]


# --- what should come out ----------------------------------------------------------------------------------------


def expected(kind: Kind, grid: Timing) -> tuple[int, ...]:
    """The numbers that a viewer sees. Without a constant rate: at every tick the latest frame that is not later."""
    if kind.rate is not None:
        assert grid.rate == kind.rate
        assert grid.frames == len(kind.numbers)
        return kind.numbers
    shot = kind.length - kind.begins
    assert abs(grid.frames / grid.rate - shot) <= 1 / grid.rate + Fraction(1, 30)
    return tuple(kind.numbers[bisect_right(kind.seconds, k / grid.rate) - 1] for k in range(grid.frames))


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


def check_borders(made: Made, order: EncodeAudio, film: Film) -> None:
    """Audio is cut at the AAC frame nearest to the video's border, and no frame is lost between two segments."""
    assert [segment.number for segment in made.segments] == list(range(len(film.borders)))
    at = 0
    for segment, body, border in zip(made.segments, made.bodies, order.borders, strict=True):
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
        hashes=tuple(map(picture_hash, frames)),
        times=tuple(frame.pts for frame in frames if frame.pts is not None),
        size=(frames[0].width, frames[0].height),
    )


def pictures(path: Path) -> tuple[str, ...]:
    """The source's own pictures, by one plain decode from begin to end."""
    with av.open(str(path)) as film:
        real = next(one for one in film.streams.video if not one.disposition & 0x400)
        return tuple(map(picture_hash, film.decode(real)))


def listen(joined: bytes) -> Sequence[float]:
    with av.open(io.BytesIO(joined), format="mp4") as film:
        return heard(film.decode(audio=0))
