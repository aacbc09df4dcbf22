"""Is a file encrypted? A decoder would only give noise, or nothing; some files begin in the clear and lock later."""

from __future__ import annotations

from collections.abc import Sequence

from av.stream import Stream

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.source import open_source
from telecine.media.child.source.file_kinds import sample_entries, ts_packets
from telecine.media.child.source.reader import SourceReader

_ENTRIES = frozenset({b"encv", b"enca", b"enct", b"drms", b"drmi", b"drmt"})


def refusal() -> OrderRefused:
    return OrderRefused("encrypted", "the file is encrypted, and only its owner has the key", permanent=True)


def refuse_locked_bytes(head: bytes, source: SourceReader) -> None:
    """Before FFmpeg sees it: scrambled transport streams and encrypted MP4 tracks."""
    if _scrambled(head):
        raise refusal()
    if any(kind in _ENTRIES for kind, _, _ in sample_entries(head, source)):
        raise refusal()


def refuse_locked_streams(streams: Sequence[Stream]) -> None:
    """What the demuxer knows: WebM's key ids, and tags of sample entries."""
    for stream in streams:
        if "enc_key_id" in stream.metadata or _tag(stream) in _ENTRIES:
            raise refusal()


def _tag(stream: Stream) -> bytes:
    try:
        return b"" if open_source.decoder_name(stream) is None else stream.codec_tag.encode()
    except UnicodeDecodeError:  # PyAV takes a tag for text; some containers number their codecs
        return b""


def _scrambled(head: bytes) -> bool:
    packets = [one for one in ts_packets(head) if one[3] & 0x10]
    locked = sum(1 for one in packets if one[3] & 0xC0)
    return locked * 2 > len(packets)
