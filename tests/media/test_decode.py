"""Decode: what was made is whole, or the order fails and says where."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from telecine.media.child.encode.encoder import Encoder
from telecine.media.child.pictures import decode
from telecine.media.child.protocol import OrderRefused
from telecine.media.child.sound.audio_track import _Encoder, _muxed, _silent, audio_init
from telecine.media.orders import AudioTrackOrder, Decode, Rung, Timing
from tests.media import child_driver
from tests.media.in_process import carry_out
from tests.media.patterns import paint

RUNG = Rung(name="180p", width=320, height=180, crf=18, maxrate=2_000_000, bufsize=4_000_000, level="1.3")
TIMING = Timing(rate=Fraction(25), frames=30, gop=10, per_segment=10)


@pytest.fixture(scope="module")
def film() -> tuple[bytes, list[bytes]]:
    """An init and three fragments of ten frames."""
    encoder = Encoder(RUNG, TIMING)
    fragments = [fragment for n in range(30) for fragment in encoder.encode(paint(n), n)] + encoder.finish()
    assert encoder.init is not None
    return encoder.init, fragments


def check(path: Path, frames: int) -> dict[str, int]:
    result: dict[str, int] = carry_out(decode.run, Decode(files=(path.name,), frames=(frames,)), path.parent).result
    return result


def fault(path: Path, frames: int) -> str:
    with pytest.raises(OrderRefused) as refused:
        check(path, frames)
    assert refused.value.code == "decode_failed"
    return refused.value.message


def test_a_whole_file_and_a_part_of_it_pass(film: tuple[bytes, list[bytes]], tmp_path: Path) -> None:
    init, fragments = film
    (tmp_path / "whole.mp4").write_bytes(init + b"".join(fragments))
    (tmp_path / "last.mp4").write_bytes(init + fragments[-1])

    order = Decode(files=("whole.mp4", "last.mp4"), frames=(30, 10))

    assert carry_out(decode.run, order, tmp_path).result == {"files": 2, "frames": 40}
    assert child_driver.run(order, tmp_path).done == {"files": 2, "frames": 40}


def test_a_missing_frame_is_found(film: tuple[bytes, list[bytes]], tmp_path: Path) -> None:
    init, fragments = film
    (tmp_path / "whole.mp4").write_bytes(init + b"".join(fragments))

    assert "30 frames instead of 31" in fault(tmp_path / "whole.mp4", 31)


def test_a_gap_in_time_is_found(film: tuple[bytes, list[bytes]], tmp_path: Path) -> None:
    init, fragments = film
    (tmp_path / "gap.mp4").write_bytes(init + fragments[0] + fragments[2])

    assert "instead of" in fault(tmp_path / "gap.mp4", 20)


def test_damage_that_the_decoder_would_hide_is_found(film: tuple[bytes, list[bytes]], tmp_path: Path) -> None:
    init, fragments = film
    data = bytearray(init + b"".join(fragments))
    middle = len(data) - len(fragments[2]) - len(fragments[1]) // 2
    for at in range(middle, middle + 200):
        data[at] ^= 0x5A
    (tmp_path / "blot.mp4").write_bytes(data)

    assert fault(tmp_path / "blot.mp4", 30)


def test_a_file_that_ends_too_early_is_found(film: tuple[bytes, list[bytes]], tmp_path: Path) -> None:
    init, fragments = film
    (tmp_path / "cut.mp4").write_bytes((init + b"".join(fragments))[:-500])

    assert fault(tmp_path / "cut.mp4", 30)


def test_what_is_no_film_is_found(tmp_path: Path) -> None:
    (tmp_path / "text.mp4").write_text("nothing of the kind")

    assert "cannot be decoded" in fault(tmp_path / "text.mp4", 1)


def test_of_sound_the_coded_frames_count_priming_and_all(tmp_path: Path) -> None:
    track = AudioTrackOrder(name="a")
    with _Encoder(track) as encoder:
        packets = [packet for block in _silent(track) for packet in encoder.encode(block)] + encoder.encode(None)
        (tmp_path / "sound.mp4").write_bytes(audio_init(track) + _muxed(track, 0, packets))

    assert check(tmp_path / "sound.mp4", 9) == {"files": 1, "frames": 9}
    assert "9 frames instead of 8" in fault(tmp_path / "sound.mp4", 8)
