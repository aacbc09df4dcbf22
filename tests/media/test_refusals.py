"""What is no film is refused in one sentence, and whatever bytes come, the child ends in time with a last word."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from telecine.media.orders import ChildLimits, EncodeVideo, MissingSegments, Probe, Remux, Scan
from telecine.media.plain_json import from_plain
from telecine.media.source import Source
from tests.media import child_driver
from tests.media.child_driver import Said
from tests.media.sources import KINDS, REFUSED

Films = Callable[[str], Path]
PATIENCE = 20.0  # seconds; a child that is silent for so long hangs
# Small, and one of each family of demuxers and decoders that a stranger's file may meet.
VICTIMS = ("mp4-shorter-than-a-segment", "mkv-repeated-pts", "ts-missing-pts", "avi-mpeg4-b-frames", "webm-vp9")
FUZZED = range(3)  # seeds; the long run is `make proof`
# What it found: a decoder's odd error, a stream that turns up in mid-film, a seek that fails.
FOUND = [("mp4-fragmented", [100]), ("ts-hevc", [106]), ("webm-vp9", [106])]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_film_is_refused_with_one_sentence_and_a_code(source: Films, tmp_path: Path, name: str) -> None:
    path = source(name)

    said = child_driver.run(Probe(size=path.stat().st_size), tmp_path, source=path, patience=PATIENCE)

    assert said.error is not None, said.lines
    assert said.error["code"] == REFUSED[name].refused
    assert said.error["permanent"]
    check_sentence(said)


@pytest.mark.parametrize("name", ["hls-manifest", "dash-manifest", "concat-script", "session-description"])
def test_a_playlist_is_not_opened_even_if_somebody_insists(source: Films, tmp_path: Path, name: str) -> None:
    path = source(name)
    for format in ("hls", "dash", "mov"):
        said = child_driver.run(Scan(format=format, picture=None, sounds=()), tmp_path, source=path, patience=PATIENCE)

        assert not said.all("done"), format
        check_sentence(said)


def test_a_file_that_changed_since_it_was_planned_is_refused(source: Films, tmp_path: Path) -> None:
    film = child_driver.look(source("mp4-h264"), tmp_path)
    [order] = video_orders(film, tmp_path)

    for other in ("mp4-audio-short", "m4a-audio-only", "text"):
        said = child_driver.run(order, tmp_path / other, source=source(other), patience=PATIENCE)

        assert other == "mp4-audio-short" or not said.all("done")
    shifted = replace(order, times=tuple(time + 1 for time in order.times))
    said = child_driver.run(shifted, tmp_path / "shifted", source=source("mp4-h264"), patience=PATIENCE)
    assert said.error is not None
    assert said.error["code"] == "frame_mismatch"
    check_sentence(said)


def test_an_encoder_whose_init_is_not_the_plans_makes_nothing(source: Films, tmp_path: Path) -> None:
    film = child_driver.look(source("mp4-no-audio"), tmp_path)
    [order] = video_orders(film, tmp_path)
    other = tuple(MissingSegments(rung=one.rung, segments=one.segments, init="0" * 64) for one in order.wanted)

    said = child_driver.run(replace(order, wanted=other), tmp_path / "other", source=film.path)

    assert not said.segments
    assert {told["code"] for told in said.all("rung_failed")} == {"init_mismatch"}
    assert not said.all("done")


@pytest.mark.parametrize(("name", "seeds"), [*((name, FUZZED) for name in VICTIMS), *FOUND])
def test_flipped_and_cut_bytes_never_hang_or_silence_the_child(
    source: Films, tmp_path: Path, name: str, seeds: Sequence[int]
) -> None:
    sane = child_driver.look(source(name), tmp_path / "sane")
    for seed in seeds:
        path = spoilt(source(name), tmp_path / f"{seed}.{KINDS[name].suffix}", seed)

        for said in everything_done_to(path, sane, tmp_path / f"work{seed}"):
            assert said.all("done") or said.error is not None, (seed, said.exit_code, said.stderr[-1000:])
            if said.error is not None:
                check_sentence(said)
        shutil.rmtree(tmp_path / f"work{seed}")


# --- how ---------------------------------------------------------------------------------------------------------


def check_sentence(said: Said) -> None:
    """One line for a person, without our own paths or types in it."""
    assert said.error is not None
    message = said.error["message"]
    assert 10 < len(message) < 400
    assert "\n" not in message
    assert "Traceback" not in message
    assert "telecine" not in message
    assert said.error["code"] != "child_error", f"a fault of ours: {message}\n{said.stderr[-1500:]}"


def video_orders(film: child_driver.Looked, folder: Path) -> list[EncodeVideo]:
    from tests.media.test_partition import LADDER, climb

    grid = child_driver.timing(film)
    rungs = climb(LADDER, film.picture, grid.rate).rungs
    inits = child_driver.make_inits(grid, rungs, (), folder)
    return child_driver.video_orders(film, grid, rungs, child_driver.chunks_of(film, grid, grid.segments), inits)


def spoilt(path: Path, target: Path, seed: int) -> Path:
    """The same spoilt file for the same seed: bytes flipped, overwritten, cut out, doubled, or the end missing."""
    dice = Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(dice.choice((1, 3, 20, 200))):
        at = dice.randrange(len(data))
        length = dice.choice((1, 2, 4, 16))
        match dice.randrange(4):
            case 0:
                data[at] ^= 1 << dice.randrange(8)
            case 1:
                data[at : at + length] = dice.randbytes(length)
            case 2:
                del data[at : at + length]
            case 3:
                data[at:at] = data[at : at + length]
    if seed % 3 == 2:
        del data[dice.randrange(len(data) // 4, len(data)) :]
    target.write_bytes(data)
    return target


def everything_done_to(path: Path, sane: child_driver.Looked, folder: Path) -> Iterator[Said]:
    """Every operation that reads a source: with what the probe found, and with the plan of the film as it was."""
    limits = ChildLimits(cpu_seconds=10)
    probed = child_driver.run(Probe(size=path.stat().st_size), folder, source=path, patience=PATIENCE)
    yield probed
    if probed.all("done"):
        found = from_plain(Source, probed.done)
        streams = (*([found.picture.stream] if found.picture else []), *(sound.stream for sound in found.sounds))
        scan = Scan(format=found.format, picture=found.picture, sounds=found.sounds, limits=limits)
        yield child_driver.run(scan, folder, source=path, patience=PATIENCE)
        yield child_driver.run(
            Remux(format=found.format, streams=streams, limits=limits), folder, source=path, patience=PATIENCE
        )
    if not sane.remuxed:
        [order] = video_orders(sane, folder / "inits")
        yield child_driver.run(replace(order, limits=limits, mend=True), folder, source=path, patience=PATIENCE)
        for sound in child_driver.audio_orders(sane, child_driver.span(sane)):
            yield child_driver.run(replace(sound, limits=limits), folder, source=path, patience=PATIENCE)
