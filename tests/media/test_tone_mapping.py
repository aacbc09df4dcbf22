"""High dynamic range through the real filters: light that differs in the source differs in the stream."""

from __future__ import annotations

from array import array
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest

from telecine.media.child.pictures.scale import Scaler
from telecine.media.child.source import probe
from telecine.media.colour import BT709, of_renditions
from telecine.media.ladders.ladder import LADDERS, climb
from telecine.media.orders import Probe, Rung
from telecine.media.plain_json import from_plain
from telecine.media.source import Picture, Source
from telecine.media.tone_map import HLG, PQ, pq_code
from tests.media.in_process import carry_out
from tests.media.make_video import Film, Shot, shoot
from tests.media.sources import X265

PATCH = 32  # pixels of one light
LIGHTS = (0, 1, 10, 50, 100, 203, 400, 600, 1000)  # cd/m²
HLG_CODES = tuple(step / 16 for step in range(17))  # 203 and 1000 cd/m² are at 0.75 and 1


def shown(codes: tuple[float, ...], transfer: int, tmp_path: Path, **about: int) -> list[int]:
    """The luma of each patch after the filters."""
    frame = patches(codes)
    picture = Picture(
        stream=0, codec="hevc", width=frame.width, height=frame.height, time_base=Fraction(1, 25),
        pixels=frame.format.name, depth=10, primaries=9, transfer=transfer, matrix=9, **about,
    )  # fmt: skip
    rung = Rung(
        name="x", width=frame.width, height=frame.height, crf=0, maxrate=1, bufsize=1, level="3.0",
        colour=of_renditions(picture),
    )  # fmt: skip
    scaler = Scaler(picture, [rung], frame, threads=1, scratch=tmp_path)
    [(_, _, made)] = [*scaler.put(frame, range(1)), *scaler.end()]
    assert (made.color_primaries, made.color_trc, made.colorspace, made.color_range) == (*BT709, 1)
    luma = made.planes[0]
    middle = bytes(luma)[PATCH // 2 * luma.line_size :]
    assert all(abs(one - 128) <= 1 for plane in made.planes[1:] for one in bytes(plane)[: plane.width])
    return [middle[at * PATCH + PATCH // 2] for at in range(len(codes))]


def patches(codes: tuple[float, ...]) -> av.VideoFrame:
    frame = av.VideoFrame(PATCH * len(codes), PATCH, "yuv420p10le")
    row = array("H", (round(64 + 876 * code) for code in codes for _ in range(PATCH)))
    row.extend([64] * (frame.planes[0].line_size // 2 - len(row)))
    frame.planes[0].update(row.tobytes() * PATCH)
    for plane in frame.planes[1:]:
        plane.update(array("H", [512] * (plane.buffer_size // 2)).tobytes())
    return frame


def test_a_ramp_of_pq_is_mapped_not_clipped(tmp_path: Path) -> None:
    luma = dict(zip(LIGHTS, shown(tuple(map(pq_code, LIGHTS)), PQ, tmp_path), strict=True))

    assert luma[0] == 16
    assert all(after - before >= 3 for before, after in pairwise(luma.values()))
    assert 190 <= luma[203] < 220
    assert luma[1000] == 235


def test_every_code_of_pq_up_to_the_peak_is_shown_in_order(tmp_path: Path) -> None:
    top = round(876 * pq_code(1000))
    luma = shown(tuple(code / 876 for code in range(0, top, 6)), PQ, tmp_path)

    steps = [after - before for before, after in pairwise(luma)]
    assert min(steps) >= 0
    assert max(steps) <= 4


def test_the_peak_of_the_source_is_shown_as_white(tmp_path: Path) -> None:
    codes = tuple(map(pq_code, (203, 1000, 2000, 4000)))

    bright = shown(codes, PQ, tmp_path, peak=4000)

    assert [after - before >= 3 for before, after in pairwise(bright)] == [True] * 3
    assert bright[-1] == 235


def test_a_ramp_of_hlg_is_mapped_not_clipped(tmp_path: Path) -> None:
    luma = shown(HLG_CODES, HLG, tmp_path)

    assert luma[0] == 16
    assert all(after - before >= 3 for before, after in pairwise(luma))
    assert 190 <= luma[12] < 220  # 203 cd/m²
    assert luma[-1] == 235


HDR10 = "hdr10=1:master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(%d,1)%s"


@pytest.mark.parametrize(
    ("metadata", "peak"),
    [("", 1000), (HDR10 % (40_000_000, ""), 4000), (HDR10 % (40_000_000, ":max-cll=1600,400"), 1600)],
    ids=["none", "screen", "content"],
)
def test_the_peak_is_read_from_the_metadata(metadata: str, peak: int, tmp_path: Path) -> None:
    film = Film(
        format="matroska", codec="libx265", pixels="yuv420p10le", shots=(Shot(count=5),), voices=(),
        options={"x265-params": ":".join(filter(None, (X265["x265-params"], metadata)))},
        settings={"color_primaries": 9, "color_trc": 16, "colorspace": 9},
    )  # fmt: skip
    path = shoot(tmp_path / "film.mkv", film)

    found = from_plain(Source, carry_out(probe.run, Probe(size=path.stat().st_size), tmp_path, path).result)

    assert found.picture is not None
    assert (found.picture.is_hdr, found.picture.peak) == (True, peak)


def test_a_large_source_is_mapped_at_the_size_of_its_largest_rung() -> None:
    large = Picture(
        stream=0, codec="hevc", width=3840, height=2160, time_base=Fraction(1, 25), primaries=9, transfer=PQ, matrix=9
    )

    rungs = climb(LADDERS["web-compact"], large, Fraction(25)).rungs

    assert {rung.tone_mapped_at for rung in rungs} == {(1920, 1080)}
