"""Stills: the best candidate becomes the poster, and each sprite stands where the sheet says."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from pathlib import Path

import av
import pytest
from av.video.frame import VideoFrame

from telecine.media.child.encode.encoder import Encoder
from telecine.media.child.pictures import stills
from telecine.media.child.protocol import OrderRefused
from telecine.media.mp4.boxes import fragments, read_init
from telecine.media.orders import MakePoster, MakeSprites, Rung, Still, Timing
from tests.media import child_driver
from tests.media.in_process import carry_out
from tests.media.patterns import paint, read_number

RUNG = Rung(name="180p", width=320, height=180, crf=18, maxrate=2_000_000, bufsize=4_000_000, level="1.3")
TIMING = Timing(rate=Fraction(25), frames=5, gop=5, per_segment=5)


def plain(luma: int) -> VideoFrame:
    frame = VideoFrame(320, 180, "yuv420p")
    for plane, value in zip(frame.planes, (luma, 128, 128), strict=True):
        plane.update(bytes([value]) * plane.buffer_size)
    return frame


def blurred(number: int) -> VideoFrame:
    return paint(number).reformat(width=32, height=18).reformat(width=320, height=180)


def keep(frame: VideoFrame, path: Path, at: int = 0) -> Still:
    """A still as the flow cuts it: the init, and a fragment that ends behind its keyframe."""
    encoder = Encoder(RUNG, TIMING)
    for number in range(5):
        encoder.encode(frame, number)
    (fragment,) = encoder.finish()
    assert encoder.init is not None
    (facts,) = fragments(fragment, read_init(encoder.init))
    path.write_bytes(encoder.init + fragment[: facts.first_end])
    return Still(file=path.name, at=Fraction(at))


def shown(path: Path) -> VideoFrame:
    with av.open(str(path)) as picture:
        return next(picture.decode(video=0))


def test_the_candidate_with_most_detail_is_chosen_and_dull_ones_are_named(tmp_path: Path) -> None:
    frames = [plain(16), blurred(3), paint(77), plain(235), plain(120)]
    candidates = tuple(keep(frame, tmp_path / f"{n}.mp4", n * 10) for n, frame in enumerate(frames))

    told = carry_out(stills.poster, MakePoster(stills=candidates), tmp_path)

    assert told.result["chosen"] == 2
    assert told.result["at"] == "20"
    assert "0: nearly black" in told.result["why"]
    assert "3: nearly white" in told.result["why"]
    assert "4: nearly flat" in told.result["why"]
    assert read_number(shown(tmp_path / "poster.jpg")) == 77


def test_a_poster_is_never_larger_than_the_film_and_the_small_one_is_half_as_wide(tmp_path: Path) -> None:
    candidates = (keep(paint(5), tmp_path / "a.mp4"),)

    large = carry_out(stills.poster, MakePoster(stills=candidates), tmp_path).result["files"]
    narrow = carry_out(stills.poster, MakePoster(stills=candidates, width=200), tmp_path).result["files"]

    assert [(one["path"], one["width"], one["height"]) for one in large] == [
        ("poster.jpg", 320, 180),
        ("poster_small.jpg", 160, 90),
    ]
    assert [(one["width"], one["height"]) for one in narrow] == [(200, 112), (100, 56)]
    for file in narrow:
        data = (tmp_path / file["path"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["size"], file["sha256"])
        assert data[:2] == b"\xff\xd8"


def test_a_film_that_is_black_throughout_still_has_a_poster(tmp_path: Path) -> None:
    candidates = tuple(keep(plain(16), tmp_path / f"{n}.mp4") for n in range(2))

    told = carry_out(stills.poster, MakePoster(stills=candidates), tmp_path)

    assert told.result["chosen"] == 0
    assert (tmp_path / "poster.jpg").exists()


def test_a_candidate_that_cannot_be_decoded_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_bytes(b"nothing of the kind")
    candidates = (Still(file="bad.mp4", at=Fraction(0)), keep(paint(9), tmp_path / "good.mp4"))

    told = carry_out(stills.poster, MakePoster(stills=candidates), tmp_path)

    assert told.result["chosen"] == 1
    assert len(told.notes) == 1


def test_each_sprite_stands_where_it_belongs_and_the_last_sheet_is_smaller(tmp_path: Path) -> None:
    pictures = tuple(keep(paint(100 + n), tmp_path / f"{n}.mp4", n) for n in range(8))
    order = MakeSprites(stills=pictures, width=160, height=90, columns=3, rows=2)

    told = carry_out(stills.sprites, order, tmp_path)

    files = told.result["files"]
    assert [(one["path"], one["width"], one["height"]) for one in files] == [
        ("sheet_000.jpg", 480, 180),
        ("sheet_001.jpg", 320, 90),
    ]
    found = [
        read_number(cell(shown(tmp_path / f"sheet_{n // 6:03d}.jpg"), n % 6 % 3 * 160, n % 6 // 3 * 90))
        for n in range(8)
    ]
    assert found == list(range(100, 108))


def cell(sheet: VideoFrame, left: int, top: int) -> VideoFrame:
    grey = sheet.reformat(format="gray")
    data, stride = bytes(grey.planes[0]), grey.planes[0].line_size
    cut = VideoFrame(160, 90, "gray")
    pad = cut.planes[0].line_size
    rows = (data[row * stride + left : row * stride + left + 160].ljust(pad, b"\0") for row in range(top, top + 90))
    cut.planes[0].update(b"".join(rows))
    return cut


def test_a_missing_sprite_fails_the_sheet(tmp_path: Path) -> None:
    (tmp_path / "bad.mp4").write_bytes(b"")
    order = MakeSprites(stills=(Still(file="bad.mp4", at=Fraction(4)),), width=160, height=90)

    with pytest.raises(OrderRefused) as refused:
        carry_out(stills.sprites, order, tmp_path)

    assert refused.value.code == "no_picture"


def test_colours_survive_the_way_to_jpeg(tmp_path: Path) -> None:
    red = VideoFrame(320, 180, "yuv420p")
    for plane, value in zip(red.planes, (63, 102, 240), strict=True):  # pure red in BT.709, limited range
        plane.update(bytes([value]) * plane.buffer_size)

    carry_out(stills.poster, MakePoster(stills=(keep(red, tmp_path / "red.mp4"),)), tmp_path)

    pixel = bytes(shown(tmp_path / "poster.jpg").reformat(format="rgb24").planes[0])[:3]
    assert pixel[0] > 245
    assert max(pixel[1:]) < 12


def test_the_sandboxed_child_makes_the_same_pictures(tmp_path: Path) -> None:
    order = MakePoster(stills=(keep(paint(5), tmp_path / "a.mp4"),))

    said = child_driver.run(order, tmp_path)

    assert said.done["files"] == carry_out(stills.poster, order, tmp_path).result["files"]
