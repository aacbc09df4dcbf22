"""H.264 coded field by field (PAFF, as AVCHD cameras and many broadcasts do): which two packets are one frame.

Transport streams carry each field in a packet of its own, and a decoder makes one frame of two. Matroska and MP4 want
both in one sample. Read are only the parameter sets and the first slice header of each packet; nothing is decoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from av.packet import Packet

_SLICE, _IDR, _SPS, _PPS = 1, 5, 7, 8
_START = b"\0\0\1"
_SLICE_HEAD = 32  # bytes: more than the fields that are read can take
_WITH_CHROMA = frozenset({100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135})  # profiles


class CodedField(NamedTuple):
    """A coded picture that is one field."""

    frame_number: int
    is_bottom: bool

    def completes(self, first: CodedField) -> bool:
        """Is it the second field of the frame that `first` begins?"""
        return self.frame_number == first.frame_number and self.is_bottom != first.is_bottom


class _Sps(NamedTuple):
    frame_number_bits: int
    has_fields: bool  # may have
    has_planes: bool  # colour planes coded apart


class _Bits:
    """Reads bits and Exp-Golomb numbers; past the end there are ones, so that nothing loops."""

    def __init__(self, nal: bytes) -> None:
        payload = nal[1:].replace(b"\0\0\3", b"\0\0") + b"\xff" * 8
        self._value = int.from_bytes(payload, "big")
        self._left = 8 * len(payload)

    def read(self, count: int) -> int:
        self._left = max(self._left - count, 0)
        return (self._value >> self._left) & ((1 << count) - 1)

    def unsigned(self) -> int:
        zeros = 0
        while zeros < 32 and not self.read(1):
            zeros += 1
        return (1 << zeros) - 1 + self.read(zeros)

    def signed(self) -> int:
        value = self.unsigned()
        return (value + 1) // 2 if value % 2 else -(value // 2)

    def skip_unsigned(self, count: int) -> None:
        for _ in range(count):
            self.unsigned()


@dataclass(slots=True)
class FieldReader:
    """Tells fields from frames in one stream. `extradata` is the stream's, in either form."""

    extradata: bytes = b""
    _length: int = 0  # bytes of a length before each NAL unit; 0: start codes
    _sps: dict[int, _Sps] = field(default_factory=dict)
    _pps: dict[int, int] = field(default_factory=dict)  # the SPS of each

    def __post_init__(self) -> None:
        if self.extradata[:1] == b"\1" and len(self.extradata) > 6:
            self._length = (self.extradata[4] & 3) + 1
            for nal in _listed(self.extradata):
                self._learn(nal)
        else:
            for nal in _after_start_codes(self.extradata):
                self._learn(nal)

    def of_packet(self, packet: Packet[Any]) -> CodedField | None:
        """The field that this packet begins with; None: a frame. Most streams have none, and cost nothing here."""
        may_be = packet.is_keyframe or any(sps.has_fields for sps in self._sps.values())
        return self.read(bytes(packet)) if may_be else None

    def read(self, data: bytes) -> CodedField | None:
        """The field at the start of this packet; None: it is a frame, or not understood."""
        for nal in _measured(data, self._length) if self._length else _after_start_codes(data):
            if nal[0] & 31 in (_SLICE, _IDR):
                return self._slice(nal[:_SLICE_HEAD])
            self._learn(nal)
        return None

    def has_both(self, data: bytes) -> bool:
        """Are both fields of a frame in this packet?"""
        nals = _measured(data, self._length) if self._length else _split(data)
        found = (self._slice(nal[:_SLICE_HEAD]) for nal in nals if nal[0] & 31 in (_SLICE, _IDR))
        return len({one.is_bottom for one in found if one is not None}) == 2

    def _learn(self, nal: bytes) -> None:
        kind = nal[0] & 31
        if kind == _SPS and len(nal) > 4:
            number, sps = _read_sps(nal)
            self._sps[number] = sps
        elif kind == _PPS:
            bits = _Bits(nal[:_SLICE_HEAD])
            number = bits.unsigned()
            self._pps[number] = bits.unsigned()

    def _slice(self, nal: bytes) -> CodedField | None:
        bits = _Bits(nal)
        bits.skip_unsigned(2)  # first macroblock, type
        sps = self._sps.get(self._pps.get(bits.unsigned(), -1))
        if sps is None or not sps.has_fields:
            return None
        if sps.has_planes:
            bits.read(2)
        frame_number = bits.read(sps.frame_number_bits)
        return CodedField(frame_number, bool(bits.read(1))) if bits.read(1) else None


class FieldCount:
    """Counts packets that only complete the frame of the packet before, in one stream."""

    def __init__(self, extradata: bytes) -> None:
        self._reader = FieldReader(extradata)
        self._first: CodedField | None = None
        self.seconds = 0

    def add(self, packet: Packet[Any]) -> None:
        found = self._reader.of_packet(packet)
        is_second = found is not None and self._first is not None and found.completes(self._first)
        self.seconds += is_second
        self._first = None if is_second else found


class FieldPairs:
    """Joins the packets of two fields into one, in one stream."""

    def __init__(self, extradata: bytes) -> None:
        self._reader = FieldReader(extradata)
        self._waiting: tuple[Packet[Any], CodedField] | None = None

    def take(self, packet: Packet[Any] | None) -> Iterator[Packet[Any]]:
        """Packets that are whole now that this one has come; None: the stream has ended."""
        found = None if packet is None else self._reader.of_packet(packet)
        if self._waiting is not None:
            first, opened = self._waiting
            self._waiting = None
            if packet is not None and found is not None and found.completes(opened):
                yield _joined(first, packet)
                return
            if packet is not None or self._reader.has_both(bytes(first)):
                yield first  # else it is the last field of a recording that ends within a frame: no decoder shows it
        if packet is not None and found is not None:
            self._waiting = packet, found
        elif packet is not None:
            yield packet


def _joined(first: Packet[Any], second: Packet[Any]) -> Packet[Any]:
    """Both fields in one packet, with the times of the first."""
    both: Packet[Any] = Packet(bytes(first) + bytes(second))
    both.time_base = first.time_base
    both.pts, both.dts = first.pts, first.dts
    both.duration = (first.duration or 0) + (second.duration or 0)
    both.is_keyframe = first.is_keyframe
    both.is_corrupt = first.is_corrupt or second.is_corrupt
    return both


def _read_sps(nal: bytes) -> tuple[int, _Sps]:
    bits = _Bits(nal)
    profile = bits.read(8)
    bits.read(16)  # constraints, level
    number = bits.unsigned()
    has_planes = False
    if profile in _WITH_CHROMA:
        chroma = bits.unsigned()
        has_planes = chroma == 3 and bool(bits.read(1))
        bits.skip_unsigned(2)  # depths
        bits.read(1)
        if bits.read(1):
            _skip_scaling(bits, 12 if chroma == 3 else 8)
    frame_number_bits = bits.unsigned() + 4
    _skip_order(bits)
    bits.unsigned()  # reference frames
    bits.read(1)
    bits.skip_unsigned(2)  # width, height
    return number, _Sps(min(frame_number_bits, 16), not bits.read(1), has_planes)


def _skip_scaling(bits: _Bits, lists: int) -> None:
    for nth in range(lists):
        if not bits.read(1):
            continue
        last = scale = 8
        for _ in range(16 if nth < 6 else 64):
            if scale:
                scale = (last + bits.signed()) % 256
            last = scale or last


def _skip_order(bits: _Bits) -> None:
    kind = bits.unsigned()
    if kind == 0:
        bits.unsigned()
    elif kind == 1:
        bits.read(1)
        bits.skip_unsigned(2)
        bits.skip_unsigned(min(bits.unsigned(), 255))


def _listed(extradata: bytes) -> Iterator[bytes]:
    """The parameter sets in an avcC record."""
    at, count = 6, extradata[5] & 31
    for _ in range(2):
        for _ in range(count):
            size = int.from_bytes(extradata[at : at + 2], "big")
            if nal := extradata[at + 2 : at + 2 + size]:
                yield nal
            at += 2 + size
        count = extradata[at] if at < len(extradata) else 0
        at += 1


def _measured(data: bytes, length: int) -> Iterator[bytes]:
    at = 0
    while at + length < len(data):
        size = int.from_bytes(data[at : at + length], "big")
        if nal := data[at + length : at + length + size]:
            yield nal
        at += length + size


def _split(data: bytes) -> Iterator[bytes]:
    """The beginnings of all NAL units of an Annex B stream."""
    at = data.find(_START)
    while 0 <= at < len(data) - 3:
        yield data[at + 3 : at + 3 + _SLICE_HEAD]
        at = data.find(_START, at + 3)


def _after_start_codes(data: bytes) -> Iterator[bytes]:
    """NAL units of an Annex B stream. A slice is only begun: where it ends is not looked for."""
    at = data.find(_START)
    while at >= 0 and at + 3 < len(data):
        begin = at + 3
        if data[begin] & 31 in (_SLICE, _IDR):
            yield data[begin : begin + _SLICE_HEAD]
            return
        at = data.find(_START, begin)
        if nal := data[begin : at if at >= 0 else len(data)]:  # start codes may follow each other directly
            yield nal
