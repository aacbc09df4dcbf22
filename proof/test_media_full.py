"""The partition on a real film with segments of full size, every way to cut a small one, and long fuzzing.

The film is thirty seconds of Big Buck Bunny in 1080p (`benchmarks/media/film.py` says where it comes from).
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import av
import pytest

from benchmarks.media.film import FRAMES, NoFilm, big_buck_bunny
from telecine.media.ladders.ladder import Ladder, LadderStep, climb
from tests.media import child_driver
from tests.media.child_driver import Looked, Made
from tests.media.conftest import looked, made_inits, source
from tests.media.make_video import ffmpeg
from tests.media.patterns import picture_hash
from tests.media.sources import FILMS, KINDS
from tests.media.test_partition import LADDER, check_borders, check_numbers, check_pieces, in_one_pass, listen, show
from tests.media.test_refusals import check_sentence, everything_done_to, spoilt

__all__ = ["looked", "made_inits", "source"]

Films = Callable[[str], Path]
Inits = Callable[..., dict[str, bytes]]
SEGMENT = Fraction(6)
PER_CHUNK = 2
WHOLE: Ladder = (LadderStep(name="lossless", lossless=True, preset="ultrafast"),)
SMALL: Ladder = (LadderStep(name="lossless", height=360, kbps=800, lossless=True, preset="ultrafast"),)
# One of each way to find a frame: by keyframes, from open GOPs, in a copy, by a map of ticks, by decoding once.
WAYS = ("mp4-h264", "mkv-hevc-open-gop", "ts-h264-open-gop", "mp4-vfr-phone", "ts-missing-pts", "mp4-trimmed")
FUZZED = range(100, 125)
VICTIMS = ("mp4-fragmented", "mkv-hevc-open-gop", "ts-hevc", "avi-mpeg4-b-frames", "mp4-av1", "webm-vp9", "mkv-mpeg2")


@pytest.fixture(scope="module")
def film() -> Path:
    try:
        return big_buck_bunny()
    except NoFilm as error:
        pytest.fail(str(error))


@pytest.fixture(scope="module")
def one_pass(film: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The film's pictures at 360p, made by one child from begin to end."""
    found = child_driver.look(film, tmp_path_factory.mktemp("looked"))
    return hashes(*made_of(found, SMALL, found_segments(found), tmp_path_factory.mktemp("one_pass")))


def test_a_real_film_comes_out_bit_by_bit(film: Path, tmp_path: Path) -> None:
    found = child_driver.look(film, tmp_path / "looked")

    made, init = made_of(found, WHOLE, PER_CHUNK, tmp_path)

    check_pieces(made, child_driver.timing(found, SEGMENT))
    with av.open(str(film)) as original:
        plain = [picture_hash(frame) for frame in original.decode(video=0)]
    assert len(plain) == FRAMES
    assert hashes(made, init) == plain


@pytest.mark.parametrize("container", ["mp4", "mkv", "ts"])
def test_a_real_film_is_the_same_in_every_container(
    film: Path, one_pass: list[str], tmp_path: Path, container: str
) -> None:
    copy = tmp_path / f"copy.{container}"
    ffmpeg("-i", film, "-map", "0", "-c", "copy", copy)
    found = child_driver.look(copy, tmp_path / "looked")

    made, init = made_of(found, SMALL, PER_CHUNK, tmp_path)

    check_pieces(made, child_driver.timing(found, SEGMENT))
    assert len(one_pass) == FRAMES
    assert hashes(made, init) == one_pass


def test_the_sound_of_a_real_film_is_cut_on_its_grid(film: Path, made_inits: Inits, tmp_path: Path) -> None:
    found = child_driver.look(film, tmp_path / "looked")
    span = child_driver.span(found, SEGMENT)
    [order] = child_driver.audio_orders(found, span)
    [init] = made_inits(child_driver.timing(found, SEGMENT), (), [order.track]).values()

    [made] = child_driver.gather(child_driver.each(found, [order], tmp_path)).values()

    check_borders(made, span)
    assert abs(len(listen(made.after(init))) - span.length * 48_000) < 1024


@pytest.mark.parametrize("name", WAYS)
def test_no_way_to_cut_a_film_changes_a_picture(source: Films, made_inits: Inits, tmp_path: Path, name: str) -> None:
    found = child_driver.look(source(name), tmp_path)
    seen = set()
    for segment in (Fraction(1, 5), Fraction(1, 2), Fraction(1), Fraction(2)):
        grid = child_driver.timing(found, segment)
        rungs = climb(LADDER[:1], found.picture, grid.rate).rungs
        inits = made_inits(grid, rungs)
        for most in (1, 2, 3, grid.segments):
            home = tmp_path / f"{float(segment)}-{most}"
            orders = child_driver.video_orders(found, grid, rungs, child_driver.chunks_of(found, grid, most), inits)
            [made] = child_driver.gather(child_driver.each(found, orders, home)).values()
            check_pieces(made, grid)
            shown = show(made.after(inits["lossless"]))
            check_numbers(shown.numbers, FILMS[name], grid)
            seen.add(shown.hashes)
            shutil.rmtree(home)

    assert len(seen) == 1


def test_high_dynamic_range_is_the_same_in_chunks_and_in_one_pass(
    source: Films, made_inits: Inits, tmp_path: Path
) -> None:
    found = child_driver.look(source("mkv-hevc-hdr"), tmp_path)
    grid = child_driver.timing(found)
    rungs = climb(LADDER[:1], found.picture, grid.rate).rungs
    inits = made_inits(grid, rungs)

    orders = child_driver.video_orders(found, grid, rungs, child_driver.chunks_of(found, grid, PER_CHUNK), inits)
    [made] = child_driver.gather(child_driver.each(found, orders, tmp_path)).values()

    assert show(made.after(inits["lossless"])) == in_one_pass(found, grid, rungs[0], inits, tmp_path)


@pytest.mark.parametrize("name", VICTIMS)
def test_no_spoilt_film_silences_the_child(source: Films, tmp_path: Path, name: str) -> None:
    sane = child_driver.look(source(name), tmp_path / "sane")
    for seed in FUZZED:
        path = spoilt(source(name), tmp_path / f"{seed}.{KINDS[name].suffix}", seed)
        for said in everything_done_to(path, sane, tmp_path / "work"):
            assert said.all("done") or said.error is not None, (seed, said.exit_code, said.stderr[-1000:])
            if said.error is not None:
                check_sentence(said)
        shutil.rmtree(tmp_path / "work")


def found_segments(found: Looked) -> int:
    return child_driver.timing(found, SEGMENT).segments


def made_of(found: Looked, ladder: Ladder, most: int, folder: Path) -> tuple[Made, bytes]:
    """The one rung of this ladder, in chunks of so many segments, and its init."""
    grid = child_driver.timing(found, SEGMENT)
    rungs = climb(ladder, found.picture, grid.rate).rungs
    inits = child_driver.make_inits(grid, rungs, (), folder)
    orders = child_driver.video_orders(found, grid, rungs, child_driver.chunks_of(found, grid, most), inits)
    [made] = child_driver.gather(child_driver.each(found, orders, folder)).values()
    return made, inits["lossless"]


def hashes(made: Made, init: bytes) -> list[str]:
    """Of every picture, one at a time: a film in 1080p is large."""
    return list(_hashed(made.after(init)))


def _hashed(joined: bytes) -> Iterator[str]:
    with av.open(io.BytesIO(joined), format="mp4") as film:
        for frame in film.decode(video=0):
            yield picture_hash(frame)
