"""A track that begins later than a demuxer looks is found all the same, at its time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from telecine.apps.transcode.plan import SourceLocation
from telecine.apps.transcode.stages import fetch
from telecine.apps.transcode.stages import source as flow_source
from telecine.facts import KeptArtifact
from telecine.media.child import protocol
from telecine.media.child.source import probe, remux
from telecine.media.child.source.reader import SourceReader
from telecine.media.limits import SourceBounds
from telecine.media.orders import ChildLimits, Probe, Remux
from telecine.media.plain_json import from_plain, to_plain
from telecine.media.source import Sound, Source
from tests.media.corrupt_ts import padded, with_leap
from tests.media.in_process import Told, carry_out
from tests.media.make_video import Film, Shot, Voice, ffmpeg, shoot
from tests.media.test_probe import probed
from tests.media.test_sound_extent import heard_in, transcoded

LATE = Fraction(9)  # a demuxer looks at 8 s, or 8 MiB
LONG = Film(
    format="mpegts",
    codec="mpeg2video",
    rate=Fraction(25),
    shots=(Shot(count=300, size=(160, 90)),),
    voices=(Voice(start=LATE, length=Fraction(5, 2)),),
)
ONE_PIECE = {"segment_seconds": 6.0, "gop_seconds": 2.0}


def test_a_track_that_is_announced_and_begins_later_is_heard(tmp_path: Path) -> None:
    path = shoot(tmp_path / "film.ts", LONG)
    assert probed(path).unclear

    out, plan = transcoded(path, tmp_path, **ONE_PIECE)

    [sound] = heard_in(out)
    assert set(sound) == {9, 10, 11}
    assert max(abs(at - second) for second, at in sound.items()) < 0.012
    assert plan["warnings"] == []


def unannounced(folder: Path) -> Path:
    """A program stream whose sound neither its head nor its end gives away: it is there from second 9 to 11."""
    parts = []
    for start, length, voices in ((0, 9, ()), (9, 2, (Voice(codec="mp2"),)), (11, 1, ())):
        film = Film(
            format="matroska", codec="mpeg2video", shots=(Shot(count=25 * length, size=(160, 90)),), voices=voices
        )
        part = shoot(folder / f"{start}.mkv", film)
        ffmpeg("-i", part, "-c", "copy", "-output_ts_offset", start, "-f", "vob", folder / f"{start}.mpg")
        parts.append((folder / f"{start}.mpg").read_bytes())
    padding = b"\x00\x00\x01\xbe" + (2042).to_bytes(2, "big") + b"\xff" * 2042
    path = folder / "film.mpg"
    path.write_bytes(parts[0] + parts[1] + padding * 300 + parts[2])
    return path


def test_a_track_that_nobody_announced_is_noticed_and_heard(tmp_path: Path) -> None:
    path = unannounced(tmp_path)
    before = probed(path)
    assert (before.sounds, before.unclear) == ((), False)

    out, plan = transcoded(path, tmp_path, damaged="warn", **ONE_PIECE)

    [sound] = heard_in(out)
    assert set(sound) == {0, 1}
    assert 0.9 < sound[1] - sound[0] < 1.1
    assert 8 < sound[0] < 9.5  # the muxer moves the clock of each part, and jumps are spliced
    assert not any("left out" in warning for warning in plan["warnings"])


# --- how often and how silently the file is read -----------------------------------------------------------------


SOUND = Sound(stream=1, codec="mp2", rate=48_000, channels=2, time_base=Fraction(1, 90_000), language="deu")


@pytest.fixture
def bytes_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes each read of a source gave."""
    counted: list[int] = []
    read = SourceReader.read

    def counting(self: SourceReader, length: int = -1) -> bytes:
        got = read(self, length)
        counted.append(len(got))
        return got

    monkeypatch.setattr(SourceReader, "read", counting)
    return counted


def found_in(path: Path) -> tuple[Source, Told]:
    told = carry_out(probe.run, Probe(size=path.stat().st_size, thorough=True), path.parent, path)
    return from_plain(Source, told.result), told


def test_a_thorough_probe_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slow disk takes longer for a large file than the stall watch waits."""
    monkeypatch.setattr(protocol, "_BETWEEN_PROGRESS", 0.0)
    path = padded(shoot(tmp_path / "film.ts", LONG), 100)

    found, told = found_in(path)

    half = path.stat().st_size / 2  # the track begins later, and the rest of the file need not be read
    places = [line["progress"] for line in told.lines if line.get("progress", half) < half]
    assert len(found.sounds) == 1
    assert len(places) > 100
    assert max(later - earlier for earlier, later in pairwise(places)) < half / 20


@pytest.mark.parametrize(("leaps", "copies"), [(False, 1), (True, 2)])
def test_a_copy_opens_a_file_with_a_late_track_once(
    leaps: bool, copies: int, tmp_path: Path, bytes_read: list[int]
) -> None:
    path = padded(shoot(tmp_path / "film.ts", LONG), 200)
    if leaps:
        with_leap(Fraction(5), 7_200, 0x100, 0x101)(path)
    found, _ = found_in(path)
    assert found.picture is not None
    bytes_read.clear()

    order = Remux(format=found.format, streams=(found.picture.stream, found.sounds[0].stream), thorough=True)
    told = carry_out(remux.run, order, tmp_path, path)

    assert told.result["leap_count"] == leaps
    assert sum(bytes_read) < (copies + 1) * path.stat().st_size  # to open it, up to where the track begins


def test_progress_of_a_thorough_probe_reaches_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    async def fake_answer(_bench: Any, order: Probe, _reading: Any, *, of: float = 0.0) -> Any:
        asked.append(of if order.thorough else -of)
        return to_plain(Source(format="mpegts", size=5, duration=None, picture=None, sounds=(SOUND,)))

    @asynccontextmanager
    async def fake_opened(_bench: Any, _origin: SourceLocation) -> AsyncIterator[dict[str, Any]]:
        yield {}

    monkeypatch.setattr(flow_source, "answer", fake_answer)
    monkeypatch.setattr(flow_source, "opened", fake_opened)
    bench: Any = None
    options: Any = SimpleNamespace(bounds=SourceBounds(), limits=ChildLimits)

    for thorough in (True, False):
        asyncio.run(flow_source.probe(bench, SourceLocation(size=5), options, thorough=thorough))

    assert asked == [5, 0]


def test_the_next_attempt_takes_over_what_a_thorough_probe_has_found(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Source(format="mpegts", size=5, duration=None, picture=None, unclear=True)
    full = replace(first, sounds=(SOUND,), unclear=False, thorough=True)
    kept = KeptArtifact(name="remuxed.mkv", token=1, size=5, facts={"damaged": 0, "source": to_plain(full)})

    async def no_probe(*_: Any, **__: Any) -> Source:
        raise AssertionError("the file is read again")

    async def already_kept(_name: str, *, check: bool) -> KeptArtifact:
        assert check
        return kept

    monkeypatch.setattr(fetch, "probe", no_probe)
    bench: Any = SimpleNamespace(kept=already_kept)
    options: Any = None

    assert asyncio.run(fetch._remux(bench, options, SourceLocation(size=5), first)) == (full, kept)
