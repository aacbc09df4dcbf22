"""What the sample description of a track says: codec, size, colour."""

from __future__ import annotations

from dataclasses import dataclass

from telecine.media.mp4.box_walk import Box, DamagedBoxes, full, only, some, unpack, walk

_VISUAL_FIELDS = 78  # bytes of a VisualSampleEntry before its boxes
_AUDIO_FIELDS = 28


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleEntry:
    codecs: str  # as a playlist's CODECS says it
    width: int = 0
    height: int = 0
    colour: tuple[int, int, int, bool] | None = None


def codecs_of(data: bytes, stsd: Box) -> SampleEntry:
    """Read the one entry of a sample description."""
    _, _, at = full(data, stsd)
    entries = list(walk(data, at + 4, stsd.end)) if at + 4 <= stsd.end else []
    if len(entries) != 1:
        raise DamagedBoxes(f"{len(entries)} sample descriptions, one was expected")
    entry = entries[0]
    if entry.type == "avc1":
        return _picture(data, entry)
    if entry.type == "mp4a":
        return SampleEntry(codecs=f"mp4a.{_object_types(data, only(data, entry, 'esds', _AUDIO_FIELDS))}")
    raise DamagedBoxes(f"a sample description {entry.type!r} that this release does not know")


def _picture(data: bytes, entry: Box) -> SampleEntry:
    record = only(data, entry, "avcC", _VISUAL_FIELDS)
    version, profile, compatible, level = unpack(">BBBB", data, record.body, record.end)
    if version != 1 or record.end - record.body < 7:
        raise DamagedBoxes("an avcC of an unknown version")
    width, height = unpack(">HH", data, entry.body + 24, entry.end)
    return SampleEntry(
        codecs=f"avc1.{profile:02X}{compatible:02X}{level:02X}",
        width=width,
        height=height,
        colour=_colour(data, some(data, entry, "colr", _VISUAL_FIELDS)),
    )


def _colour(data: bytes, colr: Box | None) -> tuple[int, int, int, bool] | None:
    if colr is None or data[colr.body : colr.body + 4] != b"nclx":
        return None
    primaries, transfer, matrix, rest = unpack(">HHHB", data, colr.body + 4, colr.end)
    return primaries, transfer, matrix, bool(rest & 0x80)


def _object_types(data: bytes, esds: Box) -> str:
    """ "40.2" for AAC-LC: the object type of the stream, then that of the decoder's own description."""
    _, _, at = full(data, esds)
    at, end = _descriptor(data, 3, at, esds.end)
    (flags,) = unpack(">B", data, at + 2, end)
    if flags & 0xE0:
        raise DamagedBoxes("an esds that depends on another stream")
    at, end = _descriptor(data, 4, at + 3, end)
    (kind,) = unpack(">B", data, at, end)
    at, end = _descriptor(data, 5, at + 13, end)
    (word,) = unpack(">H", data, at, end)
    audio = word >> 11
    return f"{kind:02x}.{audio if audio != 31 else 32 + (word >> 5 & 0x3F)}"


def _descriptor(data: bytes, tag: int, at: int, end: int) -> tuple[int, int]:
    """Where the body of this MPEG-4 descriptor begins and ends."""
    (found,) = unpack(">B", data, at, end)
    if found != tag:
        raise DamagedBoxes(f"an esds has descriptor {found} where {tag} was expected")
    length = 0
    for _ in range(4):  # seven bits a byte; four bytes at most
        at += 1
        (byte,) = unpack(">B", data, at, end)
        length = length << 7 | byte & 0x7F
        if not byte & 0x80:
            break
    at += 1
    if at + length > end:
        raise DamagedBoxes("an esds descriptor is longer than its box")
    return at, at + length
