"""A frame that does not come costs a few keyframes of decoding, never the film; who skips far says that he lives."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import av
import pytest

from telecine.media.child import talk, video
from telecine.media.child.talk import Refused
from telecine.media.orders import EncodeVideo
from tests.media import drive
from tests.media.drive import Looked
from tests.media.hand import Listener, Told, carry_out
from tests.media.shoot import Film, shoot
from tests.media.test_child_video import BIG, chunk

EVERY_TEN = {"x264-params": "keyint=10:min-keyint=10:scenecut=0:bframes=0"}


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Looked:
    home = tmp_path_factory.mktemp("film")
    return drive.look(shoot(home / "film.mp4", Film(options=EVERY_TEN, voices=())), home)


@pytest.fixture
def signs(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a child that says every sign of life has said: one for each packet that it decodes."""
    said: list[float] = []
    hear = Listener.say

    def listen(self: Listener, message: Any) -> None:
        hear(self, message)
        if isinstance(progress := message.get("progress"), float):
            said.append(progress)

    monkeypatch.setattr(talk, "_BETWEEN_SIGNS", 0.0)
    monkeypatch.setattr(Listener, "say", listen)
    return said


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

    with pytest.raises(Refused, match="frame 82 of the film"):
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
