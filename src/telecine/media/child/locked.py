"""Is a file encrypted? A decoder would only give noise, or nothing; some files begin in the clear and lock later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from av.stream import Stream

from telecine.media.child import opening
from telecine.media.child.kinds import boxes, ts_packets
from telecine.media.child.reader import Reader
from telecine.media.child.talk import Refused

_ENTRIES = frozenset({b"encv", b"enca", b"enct", b"drms", b"drmi", b"drmt"})
_INSIDE = frozenset({b"moov", b"trak", b"mdia", b"minf", b"stbl"})


def refusal() -> Refused:
    return Refused("encrypted", "the file is encrypted, and only its owner has the key", permanent=True)


def refuse_locked_bytes(head: bytes, source: Reader) -> None:
    """Before FFmpeg sees it: scrambled transport streams and encrypted MP4 tracks."""
    if _scrambled(head):
        raise refusal()
    if head[4:8] in (b"ftyp", b"moov", b"styp", b"wide", b"free", b"mdat") and _has_locked_entry(source):
        raise refusal()


def refuse_locked_streams(streams: Sequence[Stream]) -> None:
    """What the demuxer knows: WebM's key ids, and tags of sample entries."""
    for stream in streams:
        if "enc_key_id" in stream.metadata or _tag(stream) in _ENTRIES:
            raise refusal()


def _tag(stream: Stream) -> bytes:
    try:
        return b"" if opening.decoder_name(stream) is None else stream.codec_tag.encode()
    except UnicodeDecodeError:  # PyAV takes a tag for text; some containers number their codecs
        return b""


def _scrambled(head: bytes) -> bool:
    packets = [one for one in ts_packets(head) if one[3] & 0x10]
    locked = sum(1 for one in packets if one[3] & 0xC0)
    return locked * 2 > len(packets)


def _has_locked_entry(source: Reader) -> bool:
    return any(kind in _ENTRIES for kind in _sample_entries(source, 0, source.size))


def _sample_entries(source: Reader, start: int, end: int) -> Iterator[bytes]:
    for kind, first, last in boxes(source, start, end):
        if kind in _INSIDE:
            yield from _sample_entries(source, first, last)
        elif kind == b"stsd":
            yield from (entry for entry, _, _ in boxes(source, first + 8, last))
