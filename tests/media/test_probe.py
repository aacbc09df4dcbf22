"""Probe: what a file is, from its head; and what is refused, with one sentence."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import pytest

from telecine.media.child.pictures.rotation import Rotation, of_matrix
from telecine.media.child.protocol import OrderRefused
from telecine.media.child.source import probe
from telecine.media.orders import Probe
from telecine.media.plain_json import from_plain
from telecine.media.source import Picture, Source
from tests.media import child_driver
from tests.media.in_process import carry_out
from tests.media.make_video import Film, Shot, _turner, ffmpeg, packager, shoot
from tests.media.patterns import picture_hash
from tests.media.sources import KINDS

Kinds = Callable[[str], Path]
REFUSED = [kind for kind in KINDS.values() if kind.refused]
KEY = ("--enable_raw_key_encryption", "--keys", f"key_id={'ab' * 16}:key={'cd' * 16}")


def probed(path: Path) -> Source:
    order = Probe(size=path.stat().st_size)
    return from_plain(Source, carry_out(probe.run, order, path.parent, path).result)


def picture_of(path: Path) -> Picture:
    picture = probed(path).picture
    assert picture is not None
    return picture


@pytest.mark.parametrize("kind", REFUSED, ids=lambda kind: kind.name)
def test_what_cannot_be_transcoded_is_refused_with_one_sentence(kind, source: Kinds) -> None:
    path = source(kind.name)

    with pytest.raises(OrderRefused) as refused:
        probed(path)

    assert refused.value.code == kind.refused
    assert refused.value.permanent
    assert "\n" not in refused.value.message


def test_a_file_that_locks_only_later_is_refused_at_once(tmp_path: Path) -> None:
    clear = shoot(tmp_path / "clear.mp4", Film(shots=(Shot(count=50),)))
    packager(f"in={clear},stream=video,output={tmp_path}/locked.mp4", *KEY, "--clear_lead", "1")

    with pytest.raises(OrderRefused) as refused:
        probed(tmp_path / "locked.mp4")

    assert refused.value.code == "encrypted"


def test_a_scrambled_broadcast_is_refused(tmp_path: Path) -> None:
    data = bytearray(shoot(tmp_path / "film.ts", Film(format="mpegts", shots=(Shot(count=25),))).read_bytes())
    for packet in range(0, len(data), 188):
        data[packet + 3] |= 0x80
    (tmp_path / "film.ts").write_bytes(data)

    with pytest.raises(OrderRefused) as refused:
        probed(tmp_path / "film.ts")

    assert refused.value.code == "encrypted"


@pytest.mark.parametrize(("entry", "codec"), [(b"zzzz", "an unknown codec"), (b"M8RG", "magicyuv")])
def test_a_film_whose_pictures_cannot_be_decoded_is_not_taken_for_sound(
    entry: bytes, codec: str, source: Kinds, tmp_path: Path
) -> None:
    data = source("mp4-h264").read_bytes().replace(b"avc1\0\0\0\0\0\0\0\1", entry + b"\0\0\0\0\0\0\0\1")
    (tmp_path / "film.mp4").write_bytes(data)

    with pytest.raises(OrderRefused, match=codec) as refused:
        probed(tmp_path / "film.mp4")

    assert refused.value.code == "unsupported"


def test_a_track_that_cannot_be_decoded_is_left_out_and_named(source: Kinds, tmp_path: Path) -> None:
    data = source("mkv-5.1").read_bytes().replace(b"A_AC3", b"A_ZZ3")
    (tmp_path / "film.mkv").write_bytes(data)

    found = probed(tmp_path / "film.mkv")

    assert found.sounds == ()
    assert found.warnings == ("audio stream 1 is left out: an unknown codec is not decoded",)


def test_the_sandboxed_child_finds_the_same_and_refuses_the_same(source: Kinds, tmp_path: Path) -> None:
    path = source("mp4-h264")

    said = child_driver.run(Probe(size=path.stat().st_size), tmp_path / "good", source=path)
    bad = child_driver.run(Probe(size=0), tmp_path / "bad", source=source("dash-manifest"))

    assert from_plain(Source, said.done) == probed(path)
    assert bad.error is not None
    assert bad.error["code"] == "not_media"


def test_a_film_is_described(source: Kinds) -> None:
    found = probed(source("mp4-h264"))

    assert found.format == "mov"
    assert found.seekable
    assert found.picture is not None
    assert (found.picture.codec, found.picture.shown, found.picture.depth) == ("h264", (320, 180), 8)
    assert found.picture.rate == Fraction(25)
    assert [(one.codec, one.rate, one.channels) for one in found.sounds] == [("aac", 48_000, 2)]


@pytest.mark.parametrize("name", ["ts-h264-open-gop", "avi-mpeg4"])
def test_containers_whose_seeking_lies_are_called_unseekable(name: str, source: Kinds) -> None:
    assert not probed(source(name)).seekable


@pytest.mark.parametrize("name", ["mp3-audio-only", "m4a-cover"])
def test_sound_alone_has_no_picture_even_with_a_cover(name: str, source: Kinds) -> None:
    found = probed(source(name))

    assert found.picture is None
    assert len(found.sounds) == 1
    assert found.seekable


def test_a_cover_before_the_film_is_passed_over(source: Kinds) -> None:
    picture = picture_of(source("mp4-cover-first"))

    assert picture.codec == "h264"


def test_languages_and_titles_of_all_tracks_are_told(source: Kinds) -> None:
    kind = KINDS["mkv-three-languages"]

    found = probed(source(kind.name))

    assert [one.language for one in found.sounds] == [voice.language for voice in kind.voices]


@pytest.mark.parametrize(
    "name",
    ["mp4-turned-90", "mp4-turned-180", "mp4-turned-270", "mp4-portrait", "mp4-anamorphic", "mkv-anamorphic-tall"],
)
def test_the_picture_is_as_large_as_a_person_sees_it(name: str, source: Kinds) -> None:
    assert picture_of(source(name)).shown == KINDS[name].shown


def test_depth_colours_and_range_come_from_a_decoded_frame(source: Kinds) -> None:
    picture = picture_of(source("mkv-hevc-hdr"))

    assert (picture.pixels, picture.depth) == ("yuv420p10le", 10)
    assert (picture.primaries, picture.transfer, picture.matrix) == (9, 16, 9)
    assert picture.is_hdr
    assert not picture.full_range


def test_interlaced_pictures_are_called_so(source: Kinds) -> None:
    assert picture_of(source("ts-mpeg2-interlaced")).interlaced
    assert not picture_of(source("ts-mpeg2-open-gop")).interlaced


@pytest.mark.parametrize("degrees", [0, 90, 180, 270])
@pytest.mark.parametrize("flip", [(), ("-display_hflip",), ("-display_vflip",)], ids=["", "hflip", "vflip"])
def test_mirrored_and_turned_pictures_are_shown_as_ffmpeg_shows_them(
    degrees: int, flip: tuple[str, ...], tmp_path: Path
) -> None:
    plain = shoot(tmp_path / "plain.mp4", Film(shots=(Shot(count=1, size=(64, 48)),), voices=()))
    ffmpeg("-display_rotation", degrees, *flip, "-i", plain, "-c", "copy", tmp_path / "turned.mp4")
    ffmpeg("-i", tmp_path / "turned.mp4", "-c:v", "ffv1", "-pix_fmt", "yuv420p", tmp_path / "shown.mkv")

    picture = picture_of(tmp_path / "turned.mp4")

    with av.open(str(plain)) as coded, av.open(str(tmp_path / "shown.mkv")) as shown:
        ours, theirs = next(coded.decode(video=0)), next(shown.decode(video=0))
        turns = {0: "null", 90: "transpose=clock", 180: "hflip,vflip", 270: "transpose=cclock"}
        graph = _turner(("hflip," if picture.mirrored else "") + turns[picture.rotation], (64, 48))
        graph.push(ours)
        assert picture_hash(graph.pull()) == picture_hash(theirs)


def test_a_matrix_between_quarters_is_rounded_and_said_to_be() -> None:
    slightly = (65000, 8000, 0, -8000, 65000, 0, 0, 0, 1 << 30)

    assert of_matrix(slightly) == Rotation(rotation=0, mirrored=False, exact=False)
