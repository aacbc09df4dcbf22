"""Dolby Vision whose base layer only a Dolby Vision screen can show.

Profiles 4, 7, 8 and 9 have a base layer in HDR10, HLG or SDR, which is used as it is. Profile 5, and profiles 10 and 20
without a compatible base, are coded in IPT: shown as YCbCr they are green and violet. FFmpeg has no conversion.
"""

from __future__ import annotations

import struct

from av.sidedata.sidedata import Type
from av.video.frame import VideoFrame

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.source.file_kinds import boxes, sample_entries
from telecine.media.child.source.reader import SourceReader
from telecine.media.child.source.side_data import of_kind

_RECORDS = frozenset({b"dvcC", b"dvvC", b"dvwC"})
_RECORD_BYTES = 5
_VISUAL_ENTRY = 78  # bytes of a visual sample entry before its boxes
_IPT = 15  # matrix code point of SMPTE ST 2128
_OFFSET = struct.Struct("@N")  # size_t: where the header of an AVDOVIMetadata begins
_NOT_COMPATIBLE = 0
_RPU = 2  # rpu_type of Dolby Vision


def refuse_record(head: bytes, source: SourceReader) -> None:
    """Refuse an MP4 whose configuration record says so, before FFmpeg sees it."""
    for _, first, last in sample_entries(head, source):
        for kind, begin, _ in boxes(source, first + _VISUAL_ENTRY, last):
            if kind in _RECORDS:
                source.seek(begin)
                refuse_if_ipt(source.read(_RECORD_BYTES))


def refuse_if_ipt(record: bytes) -> None:
    """`record` is a DOVIDecoderConfigurationRecord."""
    if len(record) < _RECORD_BYTES:
        return
    profile, compatibility = record[2] >> 1, record[4] >> 4
    if profile == 5 or (profile in (10, 20) and compatibility == _NOT_COMPATIBLE):
        raise refusal(profile)


def refuse_frame(frame: VideoFrame) -> None:
    """Refuse by what the decoder read from the pictures themselves: any container, with or without a record."""
    if int(frame.colorspace) == _IPT or is_ipt(of_kind(frame, Type.DOVI_METADATA)):
        raise refusal(5)


def is_ipt(metadata: bytes | None) -> bool:
    """`metadata` is FFmpeg's AVDOVIMetadata. Profile 0 in full range is how profile 5 looks from inside."""
    if metadata is None or len(metadata) < _OFFSET.size:
        return False
    (at,) = _OFFSET.unpack_from(metadata)
    header = metadata[at : at + 11]
    if len(header) < 11 or header[0] != _RPU:
        return False
    vdr_rpu_profile, is_full_range = header[4], header[10]
    return vdr_rpu_profile == 0 and bool(is_full_range)


def refusal(profile: int) -> OrderRefused:
    return OrderRefused(
        "dolby_vision",
        f"the pictures are Dolby Vision profile {profile}, which only a Dolby Vision screen can show: "
        "export the source as HDR10, HLG, SDR or Dolby Vision profile 8",
        permanent=True,
    )
