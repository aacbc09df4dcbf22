"""Fragmented MP4 that comes out piece by piece: `ftyp`+`moov` once, then one `moof`+`mdat` per GOP.

FFmpeg's muxer writes signed offsets between decoding and showing, or an edit list that follows the first packet.
Neither will do: FFmpeg's own reader, and players that are made of it, show pictures with negative offsets late, and
chunks must share one init. So with a `delay` all offsets are moved by it here, and the init's edit list takes it back
(decision 0014).

PyAV takes a misspelt option without a word: these stand here once, and a test reads the result back.
"""

from __future__ import annotations

import struct

from telecine.media.child.talk import Refused
from telecine.media.walk import full, only, unpack, walk

_FLAGS = (
    "cmaf",  # samples are shown at tfdt, with signed offsets: no edit list that depends on the chunk
    "frag_keyframe",  # one fragment per GOP
    "frag_discont",  # tfdt is the frame's own time; without it every chunk would begin at 0
    "delay_moov",  # the init is written when the first packet has shown what to write
    "default_base_moof",  # positions count from the fragment, so it can be cut out
    "skip_trailer",  # no index at the end
)

# Flags of a trun: flags of its first sample; columns of its table, the last of which are the offsets.
_FIRST_FLAGS = 0x4
_COLUMNS = 0xF00
_OFFSETS = 0x800


def options(*, timescale: int, fragment: int, edits: bool = False, discontinuous: bool = True) -> dict[str, str]:
    """Options of the MP4 muxer. `fragment` is the number of the first one, counted over the whole film from 1."""
    flags = [flag for flag in _FLAGS if discontinuous or flag != "frag_discont"]
    return {
        "movflags": "+".join(flags),
        "avoid_negative_ts": "disabled",  # times are already right
        "use_editlist": "1" if edits else "0",
        "write_btrt": "0",  # it would follow the bit rate, and the init must not
        "video_track_timescale": str(timescale),
        "flush_packets": "1",  # else finished bytes wait in a buffer of 32 KB
        "fflags": "+bitexact",  # else FFmpeg's version stands in the init, and a fleet in mid-upgrade has two
        "fragment_index": str(fragment),  # sequence numbers grow through the film, whoever encoded what
    }


class Sink:
    """What the muxer writes into. It can only `write`: with `seek`, FFmpeg would go back and patch.

    `delay`: ticks between decoding and showing.
    """

    def __init__(self, delay: int = 0) -> None:
        self._delay = delay
        self._rest = bytearray()
        self._head = b""
        self._moof = b""
        self.init: bytes | None = None
        self._fragments: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._rest += data
        while (box := self._whole_box()) is not None:
            self._take(*box)
        return len(data)

    def taken(self) -> list[bytes]:
        """The fragments that were finished since the last call."""
        fragments, self._fragments = self._fragments, []
        return fragments

    @property
    def is_empty(self) -> bool:
        return not (self._rest or self._head or self._moof or self._fragments)

    def _whole_box(self) -> tuple[bytes, bytes] | None:
        if len(self._rest) < 8:
            return None
        size, kind = struct.unpack_from(">I4s", self._rest)
        if size < 8:
            raise Refused("muxer_failed", f"the muxer wrote a box {kind!r} of {size} bytes")
        if len(self._rest) < size:
            return None
        box = bytes(self._rest[:size])
        del self._rest[:size]
        return kind, box

    def _take(self, kind: bytes, box: bytes) -> None:
        if kind == b"ftyp" and self.init is None:
            self._head = box
        elif kind == b"moov" and self._head:
            self.init, self._head = edited(self._head + box, self._delay), b""
        elif kind == b"moof" and self.init is not None and not self._moof:
            self._moof = box
        elif kind == b"mdat" and self._moof:
            self._fragments.append(delayed(self._moof + box, self._delay))
            self._moof = b""
        else:
            raise Refused("muxer_failed", f"the muxer wrote a box {kind!r} where none belongs")


def edited(init: bytes, delay: int) -> bytes:
    """The init with an edit list that begins so much later."""
    if not delay:
        return init
    moov = next(box for box in walk(init) if box.type == "moov")
    trak = only(init, moov, "trak")
    after = only(init, trak, "tkhd").end
    # One row: for as long as it lasts, from there on, at normal speed.
    rows = struct.pack(">IIIiI", 0, 1, 0, delay, 0x10000)
    edts = _box(b"edts", _box(b"elst", rows))
    made = bytearray(init[:after] + edts + init[after:])
    for box in (moov, trak):
        struct.pack_into(">I", made, box.start, box.size + len(edts))
    return bytes(made)


def delayed(fragment: bytes, delay: int) -> bytes:
    """The fragment with every sample shown so much later after it is decoded, which is never before."""
    if not delay:
        return fragment
    moof = next(walk(fragment))
    traf = only(fragment, moof, "traf")
    trun = only(fragment, traf, "trun")
    _, flags, at = full(fragment, trun)
    count, begin = unpack(">Ii", fragment, at, trun.end)
    table = at + (12 if flags & _FIRST_FLAGS else 8)
    has_offsets, wide = bool(flags & _OFFSETS), (flags & _COLUMNS).bit_count()
    words = struct.unpack_from(f">{count * wide}i", fragment, table)
    rows = [list(words[wide * sample : wide * (sample + 1)]) for sample in range(count)]
    for row in rows:
        row.append((row.pop() if has_offsets else 0) + delay)
    if any(row[-1] < 0 for row in rows):
        raise Refused("muxer_failed", f"a frame is shown more than {delay} ticks before it is decoded")
    grown = 0 if has_offsets else 4 * count
    head = struct.pack(">IIi", flags | _OFFSETS, count, begin + grown) + fragment[at + 8 : table]
    made = _box(b"trun", head + b"".join(struct.pack(f">{len(row)}i", *row) for row in rows))
    whole = bytearray(fragment[: trun.start] + made + fragment[trun.end :])
    for box in (moof, traf):
        struct.pack_into(">I", whole, box.start, box.size + grown)
    return bytes(whole)


def _box(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I4s", 8 + len(body), kind) + body
