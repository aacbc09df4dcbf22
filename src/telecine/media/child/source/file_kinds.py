"""What a file looks like by its first bytes, without FFmpeg."""

from __future__ import annotations

from collections.abc import Iterator

from telecine.media.child.source.reader import SourceReader

_TS_PACKET = 188
_UNKNOWN_RIFF = 0xFFFF_0000
_MOST_BOXES = 10_000  # a file with more at one level is not looked through
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"styp", b"moof")
_FILE_HEADS = (b"ftyp", b"moov", b"styp", b"wide", b"free", b"mdat")  # a file with sample entries begins so
_AROUND_ENTRIES = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl"})
_MAGIC = (
    (b"\x1aE\xdf\xa3", "Matroska or WebM"),
    (b"FLV\x01", "Flash video"),
    (b"OggS", "Ogg"),
    (b"0&\xb2u\x8ef\xcf\x11", "Windows Media"),
    (b"\x00\x00\x01\xba", "an MPEG program stream"),
    (b"fLaC", "FLAC"),
    (b"ID3", "MP3"),
    (b".RMF", "RealMedia"),
)


def kind_of(head: bytes) -> str | None:
    """The container that these bytes begin; None: no one that we know."""
    if head[4:8] in _BOXES:
        return "MP4 or QuickTime"
    if head[:4] == b"RIFF" and head[8:12] in (b"AVI ", b"WAVE"):
        return "AVI" if head[8:12] == b"AVI " else "WAV"
    if ts_packets(head):
        return "an MPEG transport stream"
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


def ts_packets(head: bytes) -> list[bytes]:
    """The head as packets of a transport stream; none if it is not one."""
    whole = [head[at : at + _TS_PACKET] for at in range(0, len(head) - _TS_PACKET + 1, _TS_PACKET)]
    return whole if len(whole) >= 3 and all(one[0] == 0x47 for one in whole) else []


def missing_bytes(source: SourceReader) -> int:
    """How many bytes a file lacks by its own account: a download that broke off, even between two packets."""
    source.seek(0)
    head = source.read(_TS_PACKET * 3)
    if head[:4] == b"\x1aE\xdf\xa3":
        end = _matroska_end(head)
    elif head[:4] == b"RIFF":
        end = int.from_bytes(head[4:8], "little") + 8
        end = 0 if end > _UNKNOWN_RIFF else end  # live recordings never come back to fill it in
    elif head[4:8] in _BOXES:
        end = _boxes_end(source)
    elif ts_packets(head):
        end = -(-source.size // _TS_PACKET) * _TS_PACKET
    else:
        end = 0
    return max(0, end - source.size)


def _matroska_end(head: bytes) -> int:
    size, width = _vint(head[4:])
    at = 4 + width + (size or 0)
    if size is None or head[at : at + 4] != b"\x18S\x80g":
        return 0
    length, width = _vint(head[at + 4 :])
    return 0 if length is None else at + 4 + width + length


def _vint(data: bytes) -> tuple[int | None, int]:
    """An EBML length and how many bytes it takes; None: unknown, as live recordings have it."""
    first = data[0] if data else 0
    width = 9 - first.bit_length()
    if width > 8 or len(data) < width:
        return None, 1
    value = int.from_bytes(data[:width], "big") & ((1 << 7 * width) - 1)
    return (None if value == (1 << 7 * width) - 1 else value), width


def _boxes_end(source: SourceReader) -> int:
    end = 0
    for _, _, last in boxes(source, 0, None):
        end = last
    return end


def boxes(source: SourceReader, start: int, end: int | None) -> Iterator[tuple[bytes, int, int]]:
    """Type, begin and end of the content of each box between these places. `end` None: to the end of the file."""
    limit = source.size if end is None else end
    for _ in range(_MOST_BOXES):
        if start + 8 > limit:
            return
        source.seek(start)
        head = source.read(16)
        size, kind, inner = int.from_bytes(head[:4], "big"), head[4:8], 8
        if size == 1:
            size, inner = int.from_bytes(head[8:16], "big"), 16
        elif size == 0:
            size = limit - start
        if size < inner:
            return
        yield kind, start + inner, start + size if end is None else min(start + size, end)
        start += size


def sample_entries(head: bytes, source: SourceReader) -> Iterator[tuple[bytes, int, int]]:
    """Type, begin and end of the content of each sample entry of an MP4; none of any other file."""
    if head[4:8] in _FILE_HEADS:
        yield from _entries_within(source, 0, source.size)


def _entries_within(source: SourceReader, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    for kind, first, last in boxes(source, start, end):
        if kind in _AROUND_ENTRIES:
            yield from _entries_within(source, first, last)
        elif kind == b"stsd":
            yield from boxes(source, first + 8, last)
