"""Scan: every packet is counted, none decoded, and what is missing or damaged shows."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import pytest

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.timing import scan
from telecine.media.orders import Scan
from telecine.media.plain_json import from_plain
from telecine.media.source import MIN_GAP_SECONDS, Packets, Samples
from tests.media.in_process import Told, carry_out
from tests.media.make_video import Film, Shot, Voice, shoot
from tests.media.sources import KINDS
from tests.media.test_probe import probed

Kinds = Callable[[str], Path]


@dataclass(frozen=True)
class Scanned:
    told: Told
    packets: Packets | None
    sounds: list[Samples]

    @property
    def times(self) -> list[Fraction]:
        """Seconds of the frames from the first on, in order of showing."""
        assert self.packets is not None
        pts = sorted(self.packets.pts)
        return [(one - pts[0]) * self.packets.time_base for one in pts]


def scanned(path: Path, folder: Path) -> Scanned:
    found = probed(path)
    order = Scan(format=found.format, picture=found.picture, sounds=found.sounds)
    told = carry_out(scan.run, order, folder, path)
    index = json.loads((folder / told.result["path"]).read_text())
    packets = from_plain(Packets, index["packets"]) if index["packets"] else None
    return Scanned(told, packets, [from_plain(Samples, one) for one in index["sounds"]])


@pytest.mark.parametrize(
    "name",
    [
        "mp4-h264", "mp4-fragmented", "mkv-h264-open-gop", "webm-vp9-hidden-frames", "mp4-trimmed",
        "mov-trimmed-open-gop", "mp4-vfr-phone", "mkv-23.976", "mkv-starts-at-10-s", "mp4-cover-first",
        "mkv-size-change",
    ],
)  # fmt: skip
def test_the_index_has_each_frame_that_a_viewer_sees_at_its_time(name: str, source: Kinds, tmp_path: Path) -> None:
    kind = KINDS[name]

    seen = scanned(source(name), tmp_path)

    assert len(seen.times) == len(kind.seconds) == seen.told.result["frames"]
    assert max(abs(ours - theirs) for ours, theirs in zip(seen.times, kind.seconds, strict=True)) <= Fraction(1, 1000)
    assert seen.told.result["damaged"] == seen.told.result["untimed"] == 0


def test_frames_that_an_edit_list_cuts_away_are_not_counted_but_can_be_sought(source: Kinds, tmp_path: Path) -> None:
    seen = scanned(source("mp4-trimmed"), tmp_path)

    assert seen.packets is not None
    assert seen.packets.discarded > 0
    assert min(seen.packets.keys) < min(seen.packets.pts)


@pytest.mark.parametrize("name", ["mp4-damaged-tail", "mkv-damaged-tail", "ts-damaged-tail"])
def test_a_film_that_breaks_off_is_called_damaged(name: str, source: Kinds, tmp_path: Path) -> None:
    seen = scanned(source(name), tmp_path)

    assert seen.packets is not None
    assert seen.packets.damaged > 0
    assert any("lacks its last" in note for note in seen.told.notes)


def test_half_a_film_lost_behind_a_hole_is_called_damaged(tmp_path: Path) -> None:
    path = shoot(tmp_path / "film.mkv", Film(format="matroska", shots=(Shot(count=50),)))
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 2000] = bytes(2000)
    path.write_bytes(data)

    seen = scanned(path, tmp_path)

    assert seen.packets is not None
    assert len(seen.packets.pts) < 50
    assert seen.packets.damaged > 0


@pytest.mark.parametrize(
    ("name", "begins", "ends"),
    [("mp4-h264", 0, Fraction(34, 10)), ("mp4-audio-short", 0, Fraction(2)), ("mp3-audio-only", None, None)],
)
def test_when_a_track_sounds_is_told_without_priming_and_padding(
    name: str, begins: int | None, ends: Fraction | None, source: Kinds, tmp_path: Path
) -> None:
    (sound,) = scanned(source(name), tmp_path).sounds

    length = (sound.end - sound.start) * sound.time_base
    assert abs(length - (ends or Fraction(34, 10))) <= Fraction(1, 100)
    if begins is not None:
        assert sound.start == begins


def test_sound_alone_has_no_packets_but_its_span(source: Kinds, tmp_path: Path) -> None:
    seen = scanned(source("m4a-audio-only"), tmp_path)

    assert seen.packets is None
    assert len(seen.sounds) == 1


def test_a_source_that_lost_a_stream_since_its_probe_is_refused(source: Kinds, tmp_path: Path) -> None:
    found = probed(source("mkv-three-languages"))
    order = Scan(format=found.format, picture=found.picture, sounds=found.sounds)

    with pytest.raises(OrderRefused) as refused:
        carry_out(scan.run, order, tmp_path, source("mkv-starts-at-10-s"))

    assert refused.value.code == "source_changed"


def test_where_a_track_falls_silent_for_long_is_written_down(tmp_path: Path) -> None:
    path = shoot(tmp_path / "film.mkv", Film(format="matroska", voices=(Voice(length=Fraction(3)),)))
    gap = MIN_GAP_SECONDS + 100
    with av.open(str(path)) as film, av.open(str(tmp_path / "gap.mkv"), "w", format="matroska") as out:
        copies = {one.index: out.add_stream_from_template(one) for one in film.streams}
        for packet in film.demux():
            if packet.size == 0:
                continue
            assert packet.pts is not None
            if packet.stream.type == "audio" and packet.pts * packet.time_base >= 2:
                packet.pts = packet.dts = packet.pts + round(gap / packet.time_base)
            packet.stream = copies[packet.stream_index]
            out.mux(packet)

    [whole] = scanned(path, tmp_path).sounds
    [leapt] = scanned(tmp_path / "gap.mkv", tmp_path).sounds

    assert whole.gaps == ()
    [(end, begin)] = leapt.gaps
    assert float(end * leapt.time_base) == pytest.approx(2, abs=0.03)
    assert float((begin - end) * leapt.time_base) == pytest.approx(gap, abs=0.03)
