"""Edits of coded films, byte by byte: boxes in an MP4's sample entry, SEI messages in an H.264 stream."""

from __future__ import annotations

import re
from pathlib import Path

from tests.media.make_video import Film, ffmpeg, shoot

_WAY_TO_ENTRY = (b"moov", b"trak", b"mdia", b"minf", b"stbl", b"stsd")
_ENTRY_FIELDS = 78
_AUD = re.compile(rb"\x00\x00\x00?\x01\x09.", re.DOTALL)
_T35 = 4  # user_data_registered_itu_t_t35
LCEVC = b"\xb4\x00\x50\x00" + bytes(range(0x40, 0x60))
CAPTIONS = b"\xb5\x00\x31GA94\x03\xc2\xff" + b"\xfc\x94\x2c" + b"\xfc\x41\x42" + b"\xff"


def box(kind: bytes, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4, "big") + kind + content


def with_entry_box(path: Path, added: bytes) -> Path:
    """Append a box to the first sample entry of an MP4 whose index lies at its end, so that no offset moves."""
    data = bytearray(path.read_bytes())
    at, inside = 0, 0
    for kind in _WAY_TO_ENTRY:
        at = _find(data, inside, kind)
        _grow(data, at, len(added))
        inside = at + 8
    entry = at + 16  # behind version, flags and the number of entries
    size = int.from_bytes(data[entry : entry + 4], "big")
    _grow(data, entry, len(added))
    data[entry + size : entry + size] = added
    path.write_bytes(data)
    return path


def _find(data: bytes, start: int, kind: bytes) -> int:
    while data[start + 4 : start + 8] != kind:
        start += int.from_bytes(data[start : start + 4], "big")
    return start


def _grow(data: bytearray, at: int, length: int) -> None:
    data[at : at + 4] = (int.from_bytes(data[at : at + 4], "big") + length).to_bytes(4, "big")


def dolby_vision_record(profile: int, compatibility: int) -> bytes:
    """A configuration record for level 3, with RPU and base layer."""
    flags = profile << 9 | 3 << 3 | 0b101
    kind = b"dvcC" if profile < 8 else b"dvvC"
    return box(kind, bytes([1, 0]) + flags.to_bytes(2, "big") + bytes([compatibility << 4]) + bytes(19))


def shoot_with_sei(path: Path, film: Film, payload: bytes) -> Path:
    """An H.264 film that carries this T.35 message with each picture."""
    options = {**film.options, "x264-params": f"aud=1:{film.options.get('x264-params', 'bframes=0')}"}
    raw = shoot(path.with_suffix(".h264"), Film(**{**vars(film), "format": "h264", "options": options, "voices": ()}))
    message = b"\0\0\0\1\x06" + bytes([_T35, len(payload)]) + _escaped(payload) + b"\x80"
    raw.write_bytes(_AUD.sub(lambda found: found.group() + message, raw.read_bytes()))
    ffmpeg("-r", film.rate, "-i", raw, "-c", "copy", "-fflags", "+bitexact", path)
    raw.unlink()
    return path


def _escaped(data: bytes) -> bytes:
    """With the bytes that keep a start code from appearing inside."""
    return re.sub(rb"\x00\x00(?=[\x00-\x03])", b"\0\0\3", data)
