"""Write H.264 that is coded field by field (PAFF), which no encoder at hand does.

Every macroblock holds its samples as they are (I_PCM). Each field is an access unit of its own, as in a transport
stream.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from pathlib import Path

import av

from tests.media.patterns import paint

WIDTH, HEIGHT = 128, 64  # of a frame: whole macroblocks in each field
_FRAME_BITS, _ORDER_BITS = 4, 8


class _Writer:
    def __init__(self) -> None:
        self._bits: list[str] = []

    def bits(self, value: int, count: int) -> _Writer:
        self._bits.append(f"{value:0{count}b}" if count else "")
        return self

    def unsigned(self, *values: int) -> _Writer:
        for value in values:
            code = f"{value + 1:b}"
            self._bits.append("0" * (len(code) - 1) + code)
        return self

    def align(self) -> _Writer:
        return self.bits(0, -sum(map(len, self._bits)) % 8)

    def raw(self, data: bytes) -> _Writer:
        self._bits.append("".join(f"{byte:08b}" for byte in data))
        return self

    def nal(self, head: int) -> bytes:
        """As a NAL unit with its start code; no 0, 0, 1 inside."""
        text = "".join(self._bits) + "1"
        text += "0" * (-len(text) % 8)
        payload = int(text, 2).to_bytes(len(text) // 8, "big")
        safe, zeros = bytearray(), 0
        for byte in payload:
            if zeros >= 2 and byte <= 3:
                safe.append(3)
                zeros = 0
            safe.append(byte)
            zeros = zeros + 1 if byte == 0 else 0
        return b"\0\0\0\1" + bytes([head]) + bytes(safe)


def parameter_sets() -> bytes:
    sps = _Writer().bits(77, 8).bits(0, 8).bits(30, 8).unsigned(0, _FRAME_BITS - 4, 0, _ORDER_BITS - 4)
    sps.unsigned(2).bits(0, 1).unsigned(WIDTH // 16 - 1, HEIGHT // 32 - 1)
    sps.bits(0, 1).bits(0, 1).bits(1, 1).bits(0, 1)  # frames and fields; no MBAFF; direct 8x8; no cropping
    sps.bits(1, 1).bits(0, 4)  # VUI: 50 fields a second, and how frames are reordered
    sps.bits(1, 1).bits(1, 32).bits(50, 32).bits(1, 1).bits(0, 3)
    sps.bits(1, 1).unsigned(0, 0, 10, 10, 0, 2)
    pps = _Writer().unsigned(0, 0).bits(0, 2).unsigned(0, 0, 0).bits(0, 3).unsigned(0, 0, 0).bits(0b100, 3)
    return sps.nal(0x67) + pps.nal(0x68)


@cache
def fields_of(number: int, nth: int) -> tuple[bytes, bytes]:
    """Picture `number` as the nth frame since the keyframe: its two access units."""
    picture = paint(number, WIDTH, HEIGHT)
    begin = parameter_sets() if nth == 0 else b""
    return begin + _field(picture, nth, is_bottom=False), _field(picture, nth, is_bottom=True)


def _field(picture: av.VideoFrame, nth: int, *, is_bottom: bool) -> bytes:
    is_idr = nth == 0 and not is_bottom
    field = _slice(nth, is_idr=is_idr, is_bottom=is_bottom)
    for row in range(HEIGHT // 32):
        for column in range(WIDTH // 16):
            field.unsigned(25).align()
            for plane, size in zip(picture.planes, (16, 8, 8), strict=True):
                data, stride = bytes(plane), plane.line_size
                for line in range(row * size, (row + 1) * size):
                    at = (2 * line + is_bottom) * stride + column * size
                    field.raw(data[at : at + size])
    return field.nal(0x65 if is_idr else 0x41)


def _slice(nth: int, *, is_idr: bool, is_bottom: bool) -> _Writer:
    head = _Writer().unsigned(0, 7, 0).bits(nth % (1 << _FRAME_BITS), _FRAME_BITS).bits(1, 1).bits(is_bottom, 1)
    if is_idr:
        head.unsigned(0)
    head.bits((2 * nth + is_bottom) % (1 << _ORDER_BITS), _ORDER_BITS)
    head.bits(0, 2 if is_idr else 1)  # marking
    return head.unsigned(0, 1)  # quantiser: no difference; no deblocking


def write_raw(path: Path, frames: int, gop: int = 12) -> Path:
    path.write_bytes(b"".join(part for n in range(frames) for part in fields_of(n, n % gop)))
    return path


def write(
    path: Path, frames: int, *, rate: Fraction = Fraction(25), gop: int = 12, skipped: int = 0, cut: int = 0
) -> Path:
    """A file whose packets are fields, each with a time of its own; the suffix says the container.

    Without the first `skipped` and the last `cut` fields.
    """
    raw = write_raw(path.with_suffix(".h264"), frames, gop)
    format = {".ts": "mpegts", ".mkv": "matroska", ".mp4": "mp4"}[path.suffix]
    with av.open(str(raw)) as source, av.open(str(path), "w", format=format) as out:
        [stream] = source.streams.video
        copy = out.add_stream_from_template(stream, opaque=True)
        nth = 0
        for packet in source.demux(stream):
            if packet.size:
                packet.time_base = Fraction(1, 90_000)
                packet.pts = packet.dts = round(nth * 90_000 / rate / 2)
                packet.duration = round(90_000 / rate / 2)
                packet.stream = copy
                if skipped <= nth < 2 * frames - cut:
                    out.mux(packet)
                nth += 1
    assert nth == 2 * frames, "one packet for each field"
    return path
