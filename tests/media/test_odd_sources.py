"""Files that once ended in a raw exception: each is read, or refused with one sentence, at once."""

from __future__ import annotations

import struct
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import pytest

from telecine.media.child.error_report import report
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.sound import audio_track
from telecine.media.child.source import probe, remux
from telecine.media.child.source.reader import SourceFailed, SourceReader
from telecine.media.child.source.stream_copy import RecodedStream
from telecine.media.child.timing import scan
from telecine.media.orders import AudioTrackOrder, Probe, Scan
from telecine.media.timeline.grid import Span
from tests.media.child_driver import audio_order
from tests.media.in_process import Listener, carry_out
from tests.media.make_video import Film, Shot, Voice, ffmpeg, shoot
from tests.media.patterns import bursts, heard
from tests.media.test_probe import probed
from tests.media.test_remux import order_for, remuxed

RATE = 48_000


def seconds_heard(path: Path) -> dict[int, float]:
    """Which second's burst begins when in the file's first track, from its first sample on."""
    with av.open(str(path)) as container:
        return bursts(heard(container.decode(audio=0), RATE), RATE)


SHORT = Film(format="flv", shots=(Shot(count=50),), voices=(Voice(rate=44_100),))
_AUDIO_TAG, _AAC_HEADER = 8, 0


def without_aac_header(path: Path, target: Path) -> Path:
    """An FLV file whose tag with the AAC configuration is missing."""
    data = path.read_bytes()
    at, kept = 13, [data[:13]]
    while at + 11 <= len(data):
        size = int.from_bytes(data[at + 1 : at + 4], "big")
        tag = data[at : at + 11 + size + 4]
        if not (tag[0] == _AUDIO_TAG and tag[12] == _AAC_HEADER):
            kept.append(tag)
        at += len(tag)
    target.write_bytes(b"".join(kept))
    return target


def test_aac_without_its_header_is_decoded_and_kept_without_loss(tmp_path: Path) -> None:
    whole = shoot(tmp_path / "whole.flv", SHORT)
    path = without_aac_header(whole, tmp_path / "film.flv")

    told, copy = remuxed(path, tmp_path)

    with av.open(str(copy)) as container:
        assert [stream.codec_context.name for stream in container.streams] == ["h264", "flac"]
        pictures = sum(1 for _ in container.decode(video=0))
    assert pictures == 50
    assert any("coded again" in note for note in told.notes)
    assert told.result["damaged"] == 0  # FFmpeg guesses 44,100 Hz and stereo, which is right here
    assert [round(at, 1) for at in seconds_heard(copy).values()] == [
        round(at, 1) for at in seconds_heard(whole).values()
    ]


@pytest.mark.parametrize(("rate", "channels"), [(22_050, 1), (22_050, 2), (11_025, 1)])
def test_the_rate_of_aac_without_a_header_is_found_by_its_packets(rate: int, channels: int, tmp_path: Path) -> None:
    """FFmpeg believes in 44,100 Hz, and then cannot decode what is not silent."""
    whole = shoot(tmp_path / "whole.flv", replace(SHORT, voices=(Voice(rate=rate, channels=channels),)))
    path = without_aac_header(whole, tmp_path / "film.flv")

    told, copy = remuxed(path, tmp_path)

    assert told.result["damaged"] == 0
    assert told.result["warnings"] == [f"audio stream 1 has no AAC header: by its packets, it was taken for {rate} Hz"]
    assert seconds_heard(copy) == pytest.approx(seconds_heard(whole), abs=0.05)


class WithoutTimes:
    """A stream whose decoder tells the time of the first frame only, as that of WMA does within a packet."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._has_begun = False
        self.codec_context = stream.codec_context

    def decode(self, packet: Any) -> list[Any]:
        frames = self._stream.decode(packet)
        for frame in frames:
            if self._has_begun:
                frame.pts = None
            self._has_begun = True
        return list(frames)


def test_frames_without_a_time_follow_on_the_one_before(tmp_path: Path) -> None:
    path = shoot(tmp_path / "film.mkv", Film(format="matroska", voices=(Voice(codec="mp3", rate=44_100),)))
    with av.open(str(path)) as source, av.open(str(tmp_path / "copy.mkv"), "w", format="matroska") as out:
        stream = source.streams.audio[0]
        coded = RecodedStream(out, WithoutTimes(stream))
        for packet in source.demux(stream):
            for one in coded.take(packet if packet.size else None):
                assert one.pts is not None
                assert one.pts >= 0
                out.mux(one)

    before, after = seconds_heard(path), seconds_heard(tmp_path / "copy.mkv")
    assert after.keys() == before.keys()
    assert max(abs(after[second] - before[second]) for second in before) < 0.03


def test_windows_media_sound_is_copied(tmp_path: Path) -> None:
    film = shoot(
        tmp_path / "film.mkv", Film(format="matroska", shots=(Shot(count=50),), voices=(Voice(rate=8000, channels=1),))
    )
    ffmpeg("-i", film, "-c:v", "msmpeg4", "-c:a", "wmav2", "-q:v", 3, "-f", "asf", tmp_path / "film.asf")

    told, copy = remuxed(tmp_path / "film.asf", tmp_path)

    assert told.result["damaged"] == 0
    assert seconds_heard(copy).keys() == seconds_heard(tmp_path / "film.asf").keys()


# --- a transport stream that only announces its pictures -------------------------------------------------------------


def _section(table: int, number: int, body: bytes) -> bytes:
    head = struct.pack(">BHHBBB", table, 0xB000 | (len(body) + 9), number, 0xC1, 0, 0) + body
    return head + struct.pack(">I", _crc(head))


def _crc(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte << 24
        for _ in range(8):
            crc = (crc << 1) ^ 0x04C11DB7 if crc & 0x80000000 else crc << 1
            crc &= 0xFFFFFFFF
    return crc


def _ts_packet(pid: int, section: bytes, count: int) -> bytes:
    return (struct.pack(">BHB", 0x47, 0x4000 | pid, 0x10 | count % 16) + b"\0" + section).ljust(188, b"\xff")


def announced(path: Path) -> Path:
    """A transport stream with two MPEG-2 video streams in its tables and not one packet of them."""
    streams = b"".join(struct.pack(">BHH", 2, 0xE000 | pid, 0xF000) for pid in (0x101, 0x102))
    tables = [
        (0, _section(0, 1, struct.pack(">HH", 1, 0xE100))),
        (0x100, _section(2, 1, struct.pack(">HH", 0xE101, 0xF000) + streams)),
    ]
    path.write_bytes(b"".join(_ts_packet(pid, table, count) for count in range(200) for pid, table in tables))
    return path


def test_a_transport_stream_without_pictures_is_refused_with_one_sentence(tmp_path: Path) -> None:
    path = announced(tmp_path / "film.ts")

    with pytest.raises(OrderRefused, match="neither video nor audio") as refused:
        carry_out(probe.run, Probe(size=path.stat().st_size), tmp_path, path)

    assert refused.value.permanent


def test_the_second_of_two_streams_is_found_when_the_first_is_empty(tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.ts", Film(format="mpegts", codec="mpeg2video", shots=(Shot(count=30),)))
    data = bytearray(film.read_bytes())
    tables = data[188 * 2 : 188 * 3]  # SDT, PAT, PMT: another stream stands in the last before the film's
    length = int.from_bytes(tables[6:8], "big") & 0xFFF
    body = bytes(tables[5 : 8 + length - 4])
    longer = body[:1] + struct.pack(">H", 0xB000 | (length + 5)) + body[3:12] + struct.pack(">BHH", 2, 0xE1FF, 0xF000)
    longer += body[12:]
    table = bytes(tables[:5]) + longer + struct.pack(">I", _crc(longer))
    found = 0
    for at in range(0, len(data), 188):
        if data[at + 1 : at + 3] == tables[1:3] and data[at + 5] == 2:
            count = data[at + 3]
            data[at : at + 188] = table.ljust(188, b"\xff")
            data[at + 3] = count
            found += 1
    film.write_bytes(data)

    seen = probed(film)

    assert found
    assert seen.streams == 3
    assert seen.picture is not None
    assert seen.picture.width == 320


# --- a source that stops coming --------------------------------------------------------------------------------------


class Breaking:
    """The bytes of a file up to a place; what lies behind it does not come."""

    def __init__(self, data: bytes, breaks_at: int) -> None:
        self._data = data
        self._breaks_at = breaks_at
        self.size = len(data)

    def at(self, start: int, length: int) -> bytes:
        if start + length > self._breaks_at:
            raise SourceFailed("the worker hung up")
        return self._data[start : start + length]


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
@pytest.mark.parametrize("suffix", ["ts", "mp4", "mkv", "flv"])
def test_an_outage_of_a_far_source_never_ends_a_job_for_good(tmp_path: Path, suffix: str, share: float) -> None:
    path = _film_of(suffix, tmp_path)
    found = probed(path)
    sound = found.sounds[0]
    orders: list[tuple[Any, Any]] = [
        (probe.run, Probe(size=found.size)),
        (scan.run, Scan(format=found.format, picture=found.picture, sounds=found.sounds)),
        (remux.run, order_for(path)),
        (audio_track.run, audio_order(sound, AudioTrackOrder(name="a"), SPAN, format=found.format)),
    ]
    told = {}
    for operation, order in orders:
        source = SourceReader(Breaking(path.read_bytes(), round(share * found.size)))
        talk = ChildSession(Listener(), source=source, scratch=tmp_path)
        try:
            talk.done(operation(order, talk))
        except Exception as error:
            said = report(error, order.op, source)
            told[order.op] = (said.code, said.permanent)
        else:
            assert source.failure is None  # it had all that it needed

    assert set(told.values()) == {("source_failed", False)}
    assert {"scan", "remux"} <= told.keys()


SPAN = Span(start=Fraction(0), length=Fraction(2), borders=(Fraction(0), Fraction(1)))


def _film_of(suffix: str, folder: Path) -> Path:
    format = {"ts": "mpegts", "mkv": "matroska"}.get(suffix, suffix)
    codec = "mpeg2video" if suffix == "ts" else "libx264"
    return shoot(folder / f"film.{suffix}", replace(SHORT, format=format, codec=codec))
