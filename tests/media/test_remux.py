"""Remux: afterwards each frame has a time of its own, in the order of showing, and nothing else has changed."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.source import remux
from telecine.media.child.timing.retiming import is_whole, retimed
from telecine.media.orders import Remux
from tests.media import child_driver
from tests.media.in_process import Told, carry_out
from tests.media.make_video import Film, Shot, Voice, ffmpeg, shoot
from tests.media.patterns import heard, read_number
from tests.media.sources import KINDS
from tests.media.test_probe import probed
from tests.media.test_scan import scanned

Kinds = Callable[[str], Path]


def remuxed(path: Path, folder: Path) -> tuple[Told, Path]:
    told = carry_out(remux.run, order_for(path), folder, path)
    return told, folder / told.result["path"]


def order_for(path: Path) -> Remux:
    found = probed(path)
    pictures = [found.picture.stream] if found.picture else []
    return Remux(format=found.format, streams=(*pictures, *(one.stream for one in found.sounds)))


def shown(path: Path) -> tuple[tuple[int, ...], list[Fraction]]:
    """The numbers of its frames as a decoder gives them, and their times from the first on."""
    numbers, times = [], []
    with av.open(str(path)) as container:
        for frame in container.decode(video=0):
            assert frame.pts is not None
            assert frame.time_base is not None
            numbers.append(read_number(frame))
            times.append(frame.pts * frame.time_base)
    return tuple(numbers), [one - times[0] for one in times]


@pytest.mark.parametrize(
    "name", ["ts-h264-open-gop", "ts-mpeg2-open-gop", "avi-mpeg4-b-frames", "ts-starts-at-10-s", "ts-size-change"]
)
def test_a_copy_has_each_frame_at_its_time(name: str, source: Kinds, tmp_path: Path) -> None:
    kind = KINDS[name]

    told, copy = remuxed(source(name), tmp_path)

    numbers, times = shown(copy)
    assert numbers == kind.numbers
    assert max(abs(ours - theirs) for ours, theirs in zip(times, kind.seconds, strict=True)) <= Fraction(1, 1000)
    assert told.result["damaged"] == 0
    assert probed(copy).seekable


@pytest.mark.parametrize("name", ["ts-missing-pts", "avi-h264-b-frames", "mkv-repeated-pts"])
def test_times_that_are_missing_repeated_or_in_the_wrong_order_are_found_again(
    name: str, source: Kinds, tmp_path: Path
) -> None:
    kind = KINDS[name]

    told, copy = remuxed(source(name), tmp_path)

    numbers, times = shown(copy)
    assert numbers == kind.numbers
    steps = [float(later - earlier) for earlier, later in pairwise(times)]
    assert max(steps) - min(steps) < 0.0021
    assert told.result["mended"] > 0
    assert len(set(scanned(copy, tmp_path).times)) == len(kind.numbers)


def test_what_the_original_lacks_is_told_because_the_copy_cannot(source: Kinds, tmp_path: Path) -> None:
    told, copy = remuxed(source("ts-damaged-tail"), tmp_path)

    assert told.result["damaged"] > 0
    assert scanned(copy, tmp_path).told.result["damaged"] == 0


def test_languages_rotation_and_the_offset_of_the_sound_are_kept(tmp_path: Path) -> None:
    voices = (Voice(language="deu"), Voice(language="fra", start=Fraction(1, 2)))
    film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=50),), voices=voices))
    ffmpeg("-display_rotation", 90, "-display_hflip", "-i", film, "-map", 0, "-c", "copy", tmp_path / "turned.mp4")
    before = probed(tmp_path / "turned.mp4")

    _, copy = remuxed(tmp_path / "turned.mp4", tmp_path)

    after = probed(copy)
    assert before.picture is not None
    assert after.picture is not None
    assert (after.picture.rotation, after.picture.mirrored) == (before.picture.rotation, True)
    assert [one.language for one in after.sounds] == ["deu", "fra"]
    offsets = [one.start * one.time_base for one in scanned(copy, tmp_path).sounds]
    assert abs(offsets[1] - offsets[0] - Fraction(1, 2)) <= Fraction(25, 1000)


def test_what_matroska_cannot_hold_is_left_as_it_is(tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.mkv", Film(format="matroska", shots=(Shot(count=25),)))
    ffmpeg("-i", film, "-c:v", "wmv2", "-c:a", "wmav2", "-q:v", 3, tmp_path / "film.wmv")

    found = probed(tmp_path / "film.wmv")

    assert found.seekable
    assert "wmv2 cannot be copied" in found.warnings[0]
    with pytest.raises(OrderRefused, match="wmv2"):
        remuxed(tmp_path / "film.wmv", tmp_path)


def test_sound_that_matroska_cannot_hold_is_kept_without_loss(tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.mkv", Film(format="matroska", shots=(Shot(count=85),), start=Fraction(10)))
    ffmpeg("-i", film, "-c:v", "copy", "-c:a", "pcm_bluray", "-f", "mpegts", "-copyts", tmp_path / "film.m2ts")

    told, copy = remuxed(tmp_path / "film.m2ts", tmp_path)

    (sound,) = probed(copy).sounds
    assert (sound.codec, sound.rate, sound.channels) == ("flac", 48_000, 2)
    assert told.result["damaged"] == 0
    assert offset_and_sound(copy) == offset_and_sound(tmp_path / "film.m2ts")


def offset_and_sound(path: Path) -> tuple[float, array[float]]:
    """How much later than the picture it begins, in hundredths of a second, and what is heard."""
    with av.open(str(path)) as container:
        picture = next(container.decode(video=0)).time
    with av.open(str(path)) as container:
        frames = list(container.decode(audio=0))
    begin = frames[0].time
    assert begin is not None
    return round(begin - picture, 2), heard(frames)


def test_the_sandboxed_child_makes_the_same_copy(source: Kinds, tmp_path: Path) -> None:
    path = source("ts-missing-pts")
    _, copy = remuxed(path, tmp_path)

    said = child_driver.run(order_for(path), tmp_path / "child", source=path)

    assert (said.scratch / said.done["path"]).read_bytes() == copy.read_bytes()


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), min_size=2, max_size=60, unique_by=lambda one: one[0]),
    st.randoms(use_true_random=False),
)
def test_found_times_rise_on_the_screen_and_good_ones_are_kept(frames: list[tuple[int, bool]], dice) -> None:
    times = sorted(time * 100 for time, _ in frames)  # room between neighbours
    known = [time if keep else None for time, (_, keep) in zip(times, frames, strict=True)]
    order = list(range(len(times)))
    dice.shuffle(order)  # packet order[n] is shown as number n
    by_packet = [known[order.index(packet)] for packet in range(len(order))]

    found = retimed(order, by_packet, 100)

    on_screen = [found[packet] for packet in order]
    assert all(earlier <= later for earlier, later in pairwise(on_screen))
    assert all(time is None or time == now for time, now in zip(known, on_screen, strict=True))


def test_only_a_list_without_holes_and_doubles_is_whole() -> None:
    assert is_whole([3, 1, 2])
    assert not is_whole([3, 1, None])
    assert not is_whole([3, 1, 3])
