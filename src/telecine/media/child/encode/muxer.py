"""Fragmented MP4 that comes out piece by piece: `ftyp`+`moov` once, then one `moof`+`mdat` per GOP.

PyAV takes a misspelt option without a word: these stand here once, and a test reads the result back.
"""

from __future__ import annotations

import struct

from telecine.media.child.protocol import OrderRefused

_FLAGS = (
    "cmaf",  # no edit list and no delay per chunk: a fragment's first sample is shown at its tfdt
    "frag_keyframe",  # one fragment per GOP
    "frag_discont",  # tfdt is the frame's own time; without it every chunk would begin at 0
    "delay_moov",  # the init is written when the first packet has shown what to write
    "default_base_moof",  # positions count from the fragment, so it can be cut out
    "skip_trailer",  # no index at the end
)


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


class MuxerOutput:
    """What the muxer writes into. It can only `write`: with `seek`, FFmpeg would go back and patch."""

    def __init__(self) -> None:
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
            raise OrderRefused("muxer_failed", f"the muxer wrote a box {kind!r} of {size} bytes")
        if len(self._rest) < size:
            return None
        box = bytes(self._rest[:size])
        del self._rest[:size]
        return kind, box

    def _take(self, kind: bytes, box: bytes) -> None:
        if kind == b"ftyp" and self.init is None:
            self._head = box
        elif kind == b"moov" and self._head:
            self.init, self._head = self._head + box, b""
        elif kind == b"moof" and self.init is not None and not self._moof:
            self._moof = box
        elif kind == b"mdat" and self._moof:
            self._fragments.append(self._moof + box)
            self._moof = b""
        else:
            raise OrderRefused("muxer_failed", f"the muxer wrote a box {kind!r} where none belongs")
