"""What is done to a transport stream, packet by packet: times are moved or taken out, its head is cut off."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path

from tests.media.corrupt import Spoiler

TS_PACKET = 188
NULL_PACKET = b"\x47\x1f\xff\x10" + b"\xff" * 184


def without_some_times(path: Path) -> Path:
    """Take the time from every third picture of a transport stream, as broken broadcasts do."""
    data = bytearray(path.read_bytes())
    seen = 0
    for at in range(0, len(data), TS_PACKET):
        starts, adapts = data[at + 1] & 0x40, data[at + 3] & 0x20
        pes = at + 4 + (1 + data[at + 4] if adapts else 0)
        if not starts or bytes(data[pes : pes + 3]) != b"\0\0\1" or data[pes + 3] & 0xF0 != 0xE0:
            continue
        seen += 1
        if seen % 3 == 0:
            length = data[pes + 8]
            data[pes + 7] &= 0x3F
            data[pes + 9 : pes + 9 + length] = b"\xff" * length
    path.write_bytes(data)
    return path


def tuned_in_late(share: Fraction = Fraction(1, 10)) -> Spoiler:
    """Leave out the first packets of a transport stream, as a recorder does that is switched on in mid-film."""

    def cut_head(path: Path) -> Path:
        data = path.read_bytes()
        path.write_bytes(data[int(len(data) // TS_PACKET * share) * TS_PACKET :])
        return path

    return cut_head


def with_wrong_time(pid: int, nth: int, seconds: int) -> Spoiler:
    """Move both times of one unit of this stream of a transport stream, and of no other."""

    def move(path: Path) -> Path:
        data = bytearray(path.read_bytes())
        _move_unit(data, next(islice(_units(data, pid), nth, None)), seconds)
        path.write_bytes(data)
        return path

    return move


def with_leap(at: Fraction, seconds: int, *pids: int) -> Spoiler:
    """Move all times of these streams of a transport stream that are not before `at`; the file stays in its order."""

    def move(path: Path) -> Path:
        data = bytearray(path.read_bytes())
        for unit in (unit for pid in pids for unit in _units(data, pid)):
            if _time(data, unit + 9) >= at * 90_000:
                _move_unit(data, unit, seconds)
        path.write_bytes(data)
        return path

    return move


def _units(data: bytearray, pid: int) -> Iterator[int]:
    """Where the units (PES packets) of this stream of a transport stream begin."""
    for packet in range(0, len(data), TS_PACKET):
        if data[packet + 1] << 8 | data[packet + 2] == 0x4000 | pid:
            unit = packet + 4 + (1 + data[packet + 4] if data[packet + 3] & 0x20 else 0)  # behind the adaptation field
            assert data[unit : unit + 3] == b"\0\0\1"
            yield unit


def _time(data: bytearray, field: int) -> int:
    mark, high, low = data[field], *struct.unpack(">HH", data[field + 1 : field + 5])
    return (mark >> 1 & 7) << 30 | high >> 1 << 15 | low >> 1


def _move_unit(data: bytearray, unit: int, seconds: int) -> None:
    """PTS and, if there is one, DTS."""
    for field in (unit + 9, unit + 14)[: (data[unit + 7] >> 6) - 1]:
        time = _time(data, field) + seconds * 90_000
        high, low = time >> 14 & 0xFFFE | 1, time << 1 & 0xFFFE | 1
        data[field : field + 5] = struct.pack(">BHH", data[field] & 0xF1 | time >> 29 & 0xE, high, low)


def padded(path: Path, count: int) -> Path:
    """So many empty packets behind each one, as in a channel of constant rate."""
    data = path.read_bytes()
    packets = (data[at : at + TS_PACKET] for at in range(0, len(data), TS_PACKET))
    path.write_bytes(b"".join(packet + NULL_PACKET * count for packet in packets))
    return path
