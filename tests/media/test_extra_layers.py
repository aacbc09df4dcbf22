"""What a film carries besides its pictures: enhancement layers, second views, Dolby Vision, captions."""

from __future__ import annotations

import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import pytest
from av.sidedata.sidedata import Type

from telecine.apps.transcode.videos.video_view import video_of
from telecine.media.child.pictures.rotation import Rotation, of_frame
from telecine.media.child.pictures.scale import Scaler
from telecine.media.child.protocol import OrderRefused
from telecine.media.child.source import dolby_vision, probe
from telecine.media.child.source.side_data import LCEVC, VIEW_ID, side_data
from telecine.media.colour import BT601
from telecine.media.orders import Probe, Rung, Timing
from telecine.media.plain_json import from_plain
from telecine.media.source import Source, retold
from telecine.media.timeline.grid import Chunk
from tests.media import child_driver, edit
from tests.media.in_process import carry_out
from tests.media.make_video import Film, Shot, ffmpeg, shoot
from tests.media.transcode_env import Theatre, numbers_of, play, small

GRID = Timing(rate=Fraction(25), frames=25, gop=25, per_segment=25)
RUNG = Rung(name="small", width=160, height=90, crf=26, maxrate=400_000, bufsize=800_000, level="3.0", colour=BT601)
SHORT = Film(shots=(Shot(count=25),), voices=())


def probed(path: Path) -> Source:
    return from_plain(Source, carry_out(probe.run, Probe(size=path.stat().st_size), path.parent, path).result)


@pytest.fixture(scope="module")
def enhanced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """H.264 with LCEVC in its SEI: FFmpeg attaches a kind of side data that PyAV has no name for."""
    return edit.shoot_with_sei(tmp_path_factory.mktemp("lcevc") / "film.mp4", SHORT, edit.LCEVC)


def test_side_data_of_an_unknown_kind_hides_nothing_else(enhanced: Path, tmp_path: Path) -> None:
    turned = tmp_path / "turned.mp4"
    ffmpeg("-display_rotation", -90, "-i", enhanced, "-c", "copy", turned)
    with av.open(str(turned)) as film:
        frame = next(film.decode(video=0))

    assert LCEVC not in {kind.value for kind in Type}  # should PyAV learn it, another kind is to be found for this test
    assert set(side_data(frame)) >= {LCEVC, Type.DISPLAYMATRIX.value}
    assert of_frame(frame) == Rotation(rotation=90)


def test_a_film_with_an_enhancement_layer_is_shown_by_its_base_with_a_warning(enhanced: Path, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.made(small(enhanced))
        folder = await house.exported(job.id)

        assert numbers_of(folder)["h264-180p"] == list(range(25))
        assert job.subject is not None
        [warning] = (await video_of(house.parts.engine, job.subject[1])).facts["warnings"]
        assert "LCEVC" in warning

    play(story, tmp_path)


def test_only_the_base_view_of_a_spatial_film_is_used_and_that_is_told() -> None:
    (sentence,) = probe.left_out({VIEW_ID: b"\0\0\0\0"})

    assert "base view" in sentence
    assert not list(probe.left_out({Type.DISPLAYMATRIX.value: b""}))


def test_a_copy_of_a_source_keeps_its_warnings(enhanced: Path) -> None:
    found = probed(enhanced)

    assert len(found.warnings) == 1
    assert retold(found, found).warnings == found.warnings


# --- Dolby Vision ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("profile", "compatibility"), [(5, 0), (10, 0), (20, 0)])
def test_dolby_vision_without_a_base_that_others_can_show_is_refused(
    profile: int, compatibility: int, tmp_path: Path
) -> None:
    film = edit.with_entry_box(
        shoot(tmp_path / "film.mp4", SHORT), edit.dolby_vision_record(profile, compatibility)
    )  # fmt: skip

    with pytest.raises(OrderRefused) as refused:
        probed(film)

    assert (refused.value.code, refused.value.permanent) == ("dolby_vision", True)
    assert f"profile {profile}" in refused.value.message
    assert "export" in refused.value.message


@pytest.mark.parametrize(("profile", "compatibility"), [(4, 2), (7, 6), (8, 1), (8, 2), (8, 4), (9, 2), (10, 1)])
def test_dolby_vision_is_shown_by_its_base_layer(profile: int, compatibility: int, tmp_path: Path) -> None:
    film = edit.with_entry_box(
        shoot(tmp_path / "film.mp4", SHORT), edit.dolby_vision_record(profile, compatibility)
    )  # fmt: skip

    assert probed(film).picture is not None


def test_a_record_that_is_cut_off_is_ignored() -> None:
    dolby_vision.refuse_if_ipt(bytes([1, 0, 5 << 1]))


def metadata(*, profile: int, full_range: int, kind: int = 2) -> bytes:
    """FFmpeg's AVDOVIMetadata as far as the header of the RPU: five offsets, a count, then the header."""
    header = struct.pack("=BxHBBBBBBB", kind, 18, profile, 0, 0, 0, 23, 1, full_range)
    return struct.pack("@NNNNNi4x16x", 72, 5216, 5412, 76, 7, 0)[:72].ljust(72, b"\0") + header


@pytest.mark.parametrize(
    ("data", "is_ipt"),
    [
        (metadata(profile=0, full_range=1), True),
        (metadata(profile=0, full_range=0), False),
        (metadata(profile=1, full_range=0), False),  # 7 and 8
        (metadata(profile=1, full_range=1), False),
        (metadata(profile=0, full_range=1, kind=0), False),
        (metadata(profile=0, full_range=1)[:40], False),
        (b"", False),
        (None, False),
    ],
)
def test_profile_5_is_known_by_the_metadata_of_its_pictures(data: bytes | None, is_ipt: bool) -> None:
    assert dolby_vision.is_ipt(data) == is_ipt


def test_pictures_that_say_themselves_that_they_are_ipt_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OrderRefused) as refused:
        probed(
            shoot(tmp_path / "film.mkv", Film(**{**vars(SHORT), "format": "matroska", "settings": {"colorspace": 15}}))
        )

    assert refused.value.code == "dolby_vision"


# --- captions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["x264", "x264-alt"])
def test_no_captions_survive_in_the_pictures(family: str, tmp_path: Path) -> None:
    """The master playlist says CLOSED-CAPTIONS=NONE."""
    film = edit.shoot_with_sei(tmp_path / "film.mp4", SHORT, edit.CAPTIONS)
    looked = child_driver.look(film, tmp_path)
    rung = replace(RUNG, family=family)

    said = child_driver.run(
        child_driver.video_orders(looked, GRID, [rung], [Chunk(first=0, count=1)], {})[0], tmp_path / "out", source=film
    )

    with av.open(str(film)) as source:
        assert all(Type.A53_CC.value in side_data(frame) for frame in source.decode(video=0))
    (made,) = said.segments
    assert b"GA94" in film.read_bytes()
    assert b"GA94" not in (said.scratch / made.path).read_bytes()


def test_captions_are_cut_from_pictures_for_every_encoder(tmp_path: Path) -> None:
    """Cards have their own switches for captions, or none: what the filters give them carries nothing."""
    film = edit.shoot_with_sei(tmp_path / "film.mp4", SHORT, edit.CAPTIONS)
    picture = probed(film).picture
    assert picture is not None
    with av.open(str(film)) as source:
        frame = next(source.decode(video=0))

    scaler = Scaler(picture, [RUNG], frame, threads=1, scratch=tmp_path)
    [(_, _, shown)] = [*scaler.put(frame, range(1)), *scaler.end()]

    assert side_data(frame)
    assert not side_data(shown)
