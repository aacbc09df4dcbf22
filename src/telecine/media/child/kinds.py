"""What a file looks like by its first bytes, without FFmpeg."""

from __future__ import annotations

_TS_PACKET = 188
_BOXES = (b"ftyp", b"moov", b"mdat", b"wide", b"free", b"skip", b"styp", b"moof")
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
