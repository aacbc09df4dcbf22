"""Pictures wait for their turn: several in a row for each rung, never across a gap, and none is lost with a rung."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from av.filter.context import FilterContext

from telecine.media.child.encode import chunk as video
from telecine.media.child.encode.chunk import in_a_row
from telecine.media.child.encode.encoder import Encoder
from telecine.media.child.pictures.scale import Scaler
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.ladders.ladder import LADDERS, climb
from telecine.media.orders import ChildLimits, EncodeVideo, Rung
from telecine.media.timeline.grid import Chunk, timing_for
from tests.media import child_driver
from tests.media.child_driver import Looked
from tests.media.in_process import Told, carry_out
from tests.media.make_video import Film, Shot, shoot
from tests.media.test_child_video import BIG, GRID, SMALL, chunk

Turns = list[tuple[str, int]]


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    home = tmp_path_factory.mktemp("film")
    return child_driver.look(shoot(home / "film.mp4", Film(voices=())), home)


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    """Who was given which frame, in order."""
    given: Turns = []
    encode = Encoder.encode

    def count(self: Encoder, frame: Any, number: int) -> list[bytes]:
        given.append((self.rung.name, number))
        return encode(self, frame, number)

    monkeypatch.setattr(Encoder, "encode", count)
    return given


@pytest.fixture
def scalers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The scalers of all filter graphs."""
    made: list[str] = []
    linked = Scaler._linked

    def count(self: Scaler, behind: Any, name: str, arguments: str | None = None) -> FilterContext:
        if name == "scale":
            made.append(str(arguments))
        return linked(self, behind, name, arguments)

    monkeypatch.setattr(Scaler, "_linked", count)
    return made


def encoded(order: EncodeVideo, film: Looked, folder: Path) -> Told:
    return carry_out(video.run, order, folder, film.path)


def an_order(film: Looked, rungs: tuple[Rung, ...] = (BIG,), **limits: int) -> EncodeVideo:
    return replace(chunk(film, {rung: [0] for rung in rungs}), limits=ChildLimits(**limits))


def test_each_encoder_gets_eight_pictures_in_a_row(film: Looked, turns: Turns, tmp_path: Path) -> None:
    encoded(chunk(film, {SMALL: [0], BIG: [0]}), film, tmp_path)

    rows = [
        (rung, number) for first in range(0, 25, 8) for rung in ("small", "big") for number in range(first, first + 8)
    ]
    assert turns == [(rung, number) for rung, number in rows if number < 25]


def test_a_still_that_stands_for_many_frames_does_not_wait(turns: Turns, tmp_path: Path) -> None:
    """Or a slide show would show nothing until the end of its chunk, and lose all of it in a crash."""
    slides = Film(rate=Fraction(1, 5), shots=(Shot(count=6),), voices=(), options={"x264-params": "keyint=1"})
    film = child_driver.look(shoot(tmp_path / "slides.mp4", slides), tmp_path)
    [order] = child_driver.video_orders(film, timing_for(film.index), [SMALL, BIG], [Chunk(first=0, count=3)], {})

    told = encoded(order, film, tmp_path)

    rows = [len(list(row)) for _, row in groupby(turns, key=lambda turn: turn[0])]
    frames = {one.frames for one in told.segments}
    assert max(rows) < 2 * max(frames), "one picture at a time"
    assert [(one.rung, one.number) for one in told.segments] == [
        (rung, n) for n in range(3) for rung in ("small", "big")
    ]


def test_nobody_waits_across_a_gap(film: Looked, turns: Turns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ChildSession, "progress", lambda self, frames: turns.append(("decoded", frames)))

    encoded(chunk(film, {BIG: [0, 3]}), film, tmp_path)

    assert [number for rung, number in turns if rung == "big"] == [*range(25), *range(75, 85)]
    assert turns.index(("big", 24)) < turns.index(("decoded", 26)), "the last of segment 0 does not wait for the gap"


def test_a_rung_that_fails_in_the_middle_of_its_row_costs_the_others_nothing(
    film: Looked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    encode = Encoder.encode

    def fail(self: Encoder, frame: Any, number: int) -> list[bytes]:
        if self.rung.name == "small" and number == 11:
            raise OrderRefused("encoder_failed", "as this test wants it")
        return encode(self, frame, number)

    monkeypatch.setattr(Encoder, "encode", fail)

    told = encoded(chunk(film, {SMALL: [0, 1], BIG: [0, 1]}), film, tmp_path)

    assert told.result["failed"] == ["small"]
    assert [line["rung_failed"]["rung"] for line in told.lines if "rung_failed" in line] == ["small"]
    assert [(one.rung, one.number, one.frames) for one in told.segments] == [("big", 0, 25), ("big", 1, 25)]


def test_rungs_of_one_size_or_a_multiple_of_it_share_scalers(film: Looked, scalers: list[str], tmp_path: Path) -> None:
    middle = replace(BIG, name="middle", width=256, height=144)
    small = replace(middle, name="small", width=128, height=72, scaled_from=(256, 144))

    encoded(chunk(film, {middle: [0], replace(middle, name="twin"): [0], small: [0]}), film, tmp_path)

    assert [scaler.split(":flags")[0] for scaler in scalers] == ["w=256:h=144", "w=128:h=72"]


@pytest.mark.parametrize(("high", "expected"), [(1080, 8), (2160, 2), (4320, 1)])
def test_large_pictures_wait_in_smaller_numbers(film: Looked, high: int, expected: int) -> None:
    picture = replace(film.picture, width=high * 16 // 9, height=high)
    ladder = LADDERS["web-compact" if high == 1080 else "web"]
    rungs = climb((*ladder, *LADDERS["single"]) if high > 2160 else ladder, picture, GRID.rate).rungs

    assert in_a_row(rungs, an_order(film)) == expected


def test_encoders_with_threads_or_cards_of_their_own_take_turns_picture_by_picture(film: Looked) -> None:
    assert in_a_row([BIG], an_order(film)) == 8
    assert in_a_row([BIG], an_order(film, threads=2)) == 1
    assert in_a_row([BIG, replace(SMALL, family="nvenc")], an_order(film)) == 1


def test_no_more_wait_than_a_segment_has(film: Looked) -> None:
    order = an_order(film)

    short = replace(order, timing=replace(order.timing, per_segment=3, gop=3))

    assert in_a_row([BIG], short) == 3
