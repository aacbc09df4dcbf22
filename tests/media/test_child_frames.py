"""A frame that does not come costs a few keyframes of decoding, never the film; who skips far says that he lives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import pytest
from av.video.frame import VideoFrame

from telecine.media.child import protocol
from telecine.media.child.encode import chunk as video
from telecine.media.child.pictures.frames import FrameSelector
from telecine.media.child.pictures.scale import Scaler
from telecine.media.child.protocol import OrderRefused
from telecine.media.orders import EncodeVideo
from tests.media import child_driver
from tests.media.child_driver import Looked
from tests.media.in_process import Listener, Told, carry_out
from tests.media.make_video import Film, shoot
from tests.media.test_child_video import BIG, chunk

EVERY_TEN = {"x264-params": "keyint=10:min-keyint=10:scenecut=0:bframes=0"}
ONE_GOP = "keyint=100:min-keyint=100:scenecut=0:bframes=3:b-adapt=0"


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    home = tmp_path_factory.mktemp("film")
    return child_driver.look(shoot(home / "film.mp4", Film(options=EVERY_TEN, voices=())), home)


@pytest.fixture
def signs(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a child that says every sign of life has said: one for each packet that it decodes."""
    said: list[float] = []
    hear = Listener.say

    def listen(self: Listener, message: Any) -> None:
        hear(self, message)
        if isinstance(progress := message.get("progress"), float):
            said.append(progress)

    monkeypatch.setattr(protocol, "_BETWEEN_SIGNS", 0.0)
    monkeypatch.setattr(Listener, "say", listen)
    return said


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The times of all frames that a decoder gave, wanted or not."""
    given: list[int | None] = []
    decode = FrameSelector._decoded

    def count(self: FrameSelector, back: int) -> Iterator[VideoFrame]:
        for frame in decode(self, back):
            given.append(frame.pts)
            yield frame

    monkeypatch.setattr(FrameSelector, "_decoded", count)
    return given


def with_a_hole(order: EncodeVideo, number: int) -> EncodeVideo:
    """The index has this frame at a time at which the source has none."""
    times = list(order.times)
    times[number] -= 1
    return replace(order, times=tuple(times))


def encoded(order: EncodeVideo, film: Looked, folder: Path) -> Told:
    return carry_out(video.run, order, folder, film.path)


def test_a_missing_frame_is_not_sought_from_the_films_beginning(
    film: Looked, signs: list[float], tmp_path: Path
) -> None:
    order = with_a_hole(chunk(film, {BIG: [3]}), 82)

    with pytest.raises(OrderRefused, match=r"frame 82 of the film \(at 3\.28 s.*--damaged warn"):
        encoded(order, film, tmp_path)

    assert 40 < len(signs) < 75  # from frames 70, 70 and 60 on: not the film's 85 besides


def test_a_film_that_may_be_mended_goes_on_from_where_it_is(film: Looked, signs: list[float], tmp_path: Path) -> None:
    order = replace(chunk(film, {BIG: [2, 3]}), mend=True)
    for number in range(61, 85, 3):
        order = with_a_hole(order, number)

    told = encoded(order, film, tmp_path)

    assert (told.result["frames"], told.result["mended"]) == (35, 8)
    assert len(told.segments) == 2
    assert len(signs) < 2 * 85


def test_a_film_in_which_nobody_can_seek_is_mended_in_two_passes(
    film: Looked, signs: list[float], tmp_path: Path
) -> None:
    whole = chunk(film, {BIG: [2, 3]})
    order = replace(whole, mend=True, drops=True, keys=whole.keys[:1])
    for number in range(61, 85, 3):
        order = with_a_hole(order, number)

    told = encoded(order, film, tmp_path)

    assert told.result["mended"] == 8
    assert len(signs) < 2 * 85 + 5


def test_whoever_skips_far_says_that_he_lives_with_a_number_that_grows(
    film: Looked, signs: list[float], tmp_path: Path
) -> None:
    whole = chunk(film, {BIG: [3]})
    resumed = replace(whole, keys=whole.keys[:1], drops=True)

    told = encoded(resumed, film, tmp_path)

    waiting = [one for one in signs if one < 1]
    assert len(waiting) >= 75
    assert all(before < after for before, after in pairwise(waiting))
    assert told.lines[-2] == {"progress": 10}


def test_packets_that_give_no_frame_are_signs_of_life_too(film: Looked, signs: list[float], tmp_path: Path) -> None:
    data = bytearray(film.path.read_bytes())
    with av.open(str(film.path)) as source:
        packets = [one for one in source.demux(video=0) if one.size]
    for packet in packets[10:70]:
        assert packet.pos is not None
        data[packet.pos : packet.pos + packet.size] = bytes(packet.size)
    spoilt = tmp_path / "spoilt.mp4"
    spoilt.write_bytes(data)
    whole = chunk(film, {BIG: [3]})

    carry_out(video.run, replace(whole, keys=whole.keys[:1], drops=True), tmp_path, spoilt)

    assert len(signs) >= 75


def test_what_no_frame_refers_to_is_not_decoded_on_the_way_to_the_first_one(
    decoded: list[int | None], tmp_path: Path
) -> None:
    film = child_driver.look(shoot(tmp_path / "film.mp4", Film(options={"x264-params": ONE_GOP}, voices=())), tmp_path)
    order = chunk(film, {BIG: [2]})

    sparing = encoded(order, film, tmp_path)
    some = decoded.copy()
    decoded.clear()
    thorough = encoded(replace(order, mend=True), film, tmp_path)

    assert decoded == list(order.times[:75])
    assert some[-25:] == decoded[-25:]
    assert 10 < len(some) - 25 <= 30  # of 50 on the way, with three B frames in four
    assert sparing.segments == thorough.segments, "bit by bit"


def test_of_a_codec_that_does_not_say_it_everything_is_decoded(decoded: list[int | None], tmp_path: Path) -> None:
    shot = Film(codec="libx265", options={"x265-params": ONE_GOP + ":log-level=error"}, voices=())
    film = child_driver.look(shoot(tmp_path / "film.mp4", shot), tmp_path)
    order = chunk(film, {BIG: [2]})

    encoded(order, film, tmp_path)

    assert decoded == list(order.times[:75])


@pytest.mark.parametrize(
    ("name", "arguments", "word"),
    [
        ("loop", "loop=1:size=1:start=3", "where 3 belongs"),
        ("select", r"not(eq(n\,7))", "where 7 belongs"),
        ("tpad", "stop=1", "after the last"),
    ],
)
def test_a_filter_that_makes_or_drops_a_frame_is_found_out(
    film: Looked, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, arguments: str, word: str
) -> None:
    monkeypatch.setattr(Scaler, "_corrections", lambda self: iter([(name, arguments)]))

    with pytest.raises(OrderRefused, match=word):
        encoded(chunk(film, {BIG: [0]}), film, tmp_path)
