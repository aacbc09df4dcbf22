"""H.264 coded field by field: two packets are one frame, in every container, and nothing is lost or doubled."""

from __future__ import annotations

from fractions import Fraction
from itertools import cycle
from pathlib import Path

import av
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from telecine.media.child.timing.h264_fields import CodedField, FieldReader
from tests.media.fields import fields_of, write, write_raw
from tests.media.make_video import Film, Shot, shoot
from tests.media.patterns import read_number
from tests.media.timeline import look

FRAMES = 40


def test_the_written_fields_are_what_a_decoder_makes_frames_of(tmp_path: Path) -> None:
    path = write(tmp_path / "film.ts", FRAMES)

    with av.open(str(path)) as film:
        frames = list(film.decode(video=0))

    assert [read_number(frame) for frame in frames] == list(range(FRAMES))
    assert all(frame.interlaced_frame for frame in frames)


@pytest.mark.parametrize("suffix", ["ts", "mkv", "mp4"])
def test_two_fields_are_one_frame(suffix: str, tmp_path: Path) -> None:
    seen = look(write(tmp_path / f"film.{suffix}", FRAMES))

    assert (seen.index.rate, seen.index.frames) == (Fraction(25), FRAMES)
    assert seen.damaged == 0
    assert seen.numbers() == list(range(FRAMES))


def test_a_raw_stream_of_fields_lasts_as_long_as_its_frames(tmp_path: Path) -> None:
    seen = look(write_raw(tmp_path / "film.h264", FRAMES))

    assert (seen.index.shown_frames, seen.index.length) == (FRAMES, Fraction(FRAMES, 25))
    assert seen.numbers() == list(range(FRAMES))


@pytest.mark.parametrize("cut", [0, 1, 2, 3])
@pytest.mark.parametrize("skipped", [0, 1, 2, 3])
def test_a_recording_may_begin_and_end_within_a_frame(skipped: int, cut: int, tmp_path: Path) -> None:
    seen = look(write(tmp_path / "film.ts", FRAMES, skipped=skipped, cut=cut))

    assert seen.numbers() == list(range(12 if skipped else 0, FRAMES - (cut + 1) // 2))
    assert seen.damaged == 0


def test_fields_that_share_a_packet_are_left_as_they_are(tmp_path: Path) -> None:
    """As Matroska wants them: the copy of a transport stream is not copied once more."""
    copy = look(write(tmp_path / "film.ts", FRAMES)).path
    with av.open(str(copy)) as film:
        reader = FieldReader(bytes(film.streams.video[0].codec_context.extradata or b""))
        assert all(
            reader.read(bytes(packet)) and reader.has_both(bytes(packet)) for packet in film.demux() if packet.size
        )

    again = look(copy.rename(tmp_path / "copy.mkv"))

    assert again.path == tmp_path / "copy.mkv"
    assert again.index.frames == FRAMES


def test_a_slice_header_is_read_in_both_forms(tmp_path: Path) -> None:
    first, second = fields_of(5, 0)
    annexb = FieldReader()
    assert (annexb.read(first), annexb.read(second)) == (CodedField(0, False), CodedField(0, True))

    with av.open(str(write(tmp_path / "film.mp4", 3))) as film:
        [stream] = film.streams.video
        extradata = bytes(stream.codec_context.extradata or b"")
        reader = FieldReader(extradata)
        found = [reader.read(bytes(packet)) for packet in film.demux(stream) if packet.size]

    assert extradata[0] == 1, "lengths, not start codes"
    assert found == [CodedField(n, bottom) for n in range(3) for bottom in (False, True)]


@pytest.mark.parametrize("interlaced", [False, True])
def test_frames_are_no_fields(interlaced: bool, tmp_path: Path) -> None:
    options = {"x264-params": "interlaced=1:cqm=jvt:bframes=2" if interlaced else "bframes=2"}
    path = shoot(tmp_path / "film.mkv", Film(format="matroska", shots=(Shot(count=20),), options=options, voices=()))
    with av.open(str(path)) as film:
        [stream] = film.streams.video
        reader = FieldReader(bytes(stream.codec_context.extradata or b""))
        assert {reader.read(bytes(packet)) for packet in film.demux(stream) if packet.size} == {None}


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\0\0\1", b"\0\0\1\x67\x64", b"\0\0\1\x65", b"\0\0\1\x68\0\0\0\1\x41\0", b"\xff" * 40]
)
def test_what_is_no_h264_has_no_fields(data: bytes) -> None:
    assert FieldReader(data).read(data) is None
    assert FieldReader(b"\1" + data).read(data) is None


TELLING = [b"\0", b"\0\0\1", b"\1", b"\x65", b"\x67", b"\x68", b"\x41", b"\xff"]
BYTES = st.lists(st.sampled_from(TELLING) | st.binary(max_size=8)).map(b"".join)


@example(b"\0\0\1\0\0\1", b"\0\0\1\0\0\1")
@given(BYTES, BYTES)
def test_no_bytes_make_the_reader_fail(extradata: bytes, data: bytes) -> None:
    for reader in (FieldReader(extradata), FieldReader(b"\1" + extradata)):
        reader.read(data)
        reader.has_both(data)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8))
def test_empty_units_between_others_change_nothing(counts: list[int]) -> None:
    empty = cycle(counts)
    first, second = (
        b"".join(b"\0\0\1" * (next(empty) + 1) + unit for unit in field.split(b"\0\0\1")[1:])
        for field in fields_of(5, 0)
    )
    reader = FieldReader()

    assert (reader.read(first), reader.read(second)) == (CodedField(0, False), CodedField(0, True))
    assert reader.has_both(first + second)
