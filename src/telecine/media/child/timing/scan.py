"""Read every packet without decoding, and write down when each frame is shown: the raw material of the index."""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, TextIO

import av.error
import av.logging
from av.container import InputContainer
from av.packet import Packet

from telecine.media.child.error_report import reason
from telecine.media.child.ffmpeg_log import FfmpegLog
from telecine.media.child.protocol import ChildSession, OrderRefused
from telecine.media.child.source import open_source
from telecine.media.child.source.encryption import refusal
from telecine.media.child.source.file_kinds import missing_bytes
from telecine.media.child.source.head import first_frames, undecodable_head
from telecine.media.child.timing.frame_order import is_shown_in_order, is_suspicious
from telecine.media.child.timing.h264_fields import FieldCount
from telecine.media.orders import Scan
from telecine.media.plain_json import to_plain
from telecine.media.source import MIN_GAP_SECONDS, Packets, Picture, Samples, Sound

INDEX = "index.json"
_SKIP = struct.Struct("<II")  # samples that a decoder drops at the begin and at the end of a packet
_AT_ONCE = 10_000  # numbers written in one piece
_MAX_GAPS = 1000  # of one track, that are written down


@dataclass(slots=True)
class _Film:
    """The packets of the video stream, eight bytes for each."""

    pts: array[int] = field(default_factory=lambda: array("q"))
    keys: array[int] = field(default_factory=lambda: array("q"))
    untimed: int = 0
    discarded: int = 0
    damaged: int = 0
    last: int | None = None
    last_duration: int = 0
    fields: FieldCount | None = None  # of H.264
    ascends: bool = True  # no time is earlier than one before it in the file
    keyless: int = 0  # frames in the file before its first keyframe
    undecodable: int = 0  # frames at the beginning that are left out

    def add(self, packet: Packet[Any]) -> None:
        self.damaged += packet.is_corrupt
        if self.fields is not None:
            self.fields.add(packet)
        if packet.pts is None:
            self.untimed += not packet.is_discard
            return
        if packet.is_keyframe:
            self.keys.append(packet.pts)
        if packet.is_discard:  # an edit list cuts it away; one may still seek to it
            self.discarded += 1
            return
        self.pts.append(packet.pts)
        self.keyless += not self.keys
        self.ascends &= self.last is None or packet.pts > self.last
        if self.last is None or packet.pts > self.last:
            self.last, self.last_duration = packet.pts, packet.duration or 0


@dataclass(slots=True)
class _Track:
    """From when to when one audio stream sounds."""

    rate: int
    start: int | None = None
    end: int | None = None
    last: int | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)

    def add(self, packet: Packet[Any]) -> None:
        if packet.pts is None or packet.is_discard:
            return
        if self.end is not None and (packet.pts - self.end) * packet.time_base > MIN_GAP_SECONDS:
            self.gaps[_MAX_GAPS - 1 :] = [(self.end, packet.pts)]
        before, after = self._dropped(packet)
        start = packet.pts + before
        step = 0 if self.last is None else max(0, packet.pts - self.last)
        self.last = packet.pts
        end = packet.pts + (packet.duration or step) - after  # one without a duration lasts as long as the one before
        self.start = start if self.start is None else min(start, self.start)
        self.end = end if self.end is None else max(end, self.end)

    def _dropped(self, packet: Packet[Any]) -> tuple[int, int]:
        """What the decoder leaves out of this packet (priming, padding), in the stream's time base."""
        if not packet.has_sidedata("skip_samples"):
            return 0, 0
        data = bytes(packet.get_sidedata("skip_samples"))
        before, after = _SKIP.unpack(data[: _SKIP.size])
        ticks = 1 / (self.rate * packet.time_base)
        return round(before * ticks), round(after * ticks)


def run(order: Scan, talk: ChildSession) -> Mapping[str, Any]:
    """Where the index lies and what was counted."""
    film = _Film()
    tracks = {sound.stream: _Track(sound.rate) for sound in order.sounds}
    with (
        FfmpegLog(av.logging.ERROR) as complaints,  # from the opening on: a short file is read whole there
        open_source.open_source(talk, order.format) as container,
    ):
        gave_up = _read_all(container, order, talk, (film, tracks))
        is_suspect = order.picture is not None and is_suspicious(
            open_source.stream_of(container, order.picture.stream), ascends=film.ascends
        )
        bases = {one.index: one.time_base for one in container.streams}
        said = complaints.of(order.format)  # not the parsers': a stream may begin in the middle of a GOP
    for line in said:
        talk.note(line)
    film.damaged += gave_up + len(said)
    if missing := missing_bytes(talk.source):
        talk.note(f"the file lacks its last {missing} bytes")
        film.damaged += 1
    if order.picture is not None:
        _behead(film, order, talk, order.picture.stream)
    packets = None if order.picture is None else _packets(order.picture, film, bases)
    if packets is not None and order.picture is not None and is_suspect:
        in_order = is_shown_in_order(talk, order.format, order.picture.stream)
        packets = replace(packets, unordered=not in_order)
    sounds = [_samples(sound, tracks[sound.stream], bases) for sound in order.sounds if _heard(tracks, sound)]
    path = talk.scratch / INDEX
    _write(path, packets, film, sounds)
    return {
        "path": INDEX,
        "size": path.stat().st_size,
        "frames": len(film.pts),
        "keys": len(film.keys),
        "untimed": film.untimed,
        "discarded": film.discarded,
        "undecodable": film.undecodable,
        "damaged": film.damaged,
        "sounds": len(sounds),
    }


def _read_all(container: InputContainer, order: Scan, talk: ChildSession, into: tuple[_Film, dict[int, _Track]]) -> int:
    """Sort every packet in; 1 if the demuxer gave up."""
    film, tracks = into
    video = None if order.picture is None else order.picture.stream
    if order.picture is not None and order.picture.codec == "h264":
        film.fields = FieldCount(open_source.extradata(open_source.stream_of(container, order.picture.stream)))
    wanted = [open_source.stream_of(container, index) for index in (*([] if video is None else [video]), *tracks)]
    try:
        for packet in _filled(container, wanted):
            if packet.stream_index == video:
                film.add(packet)
            else:
                tracks[packet.stream_index].add(packet)
            talk.progress(max(packet.pos or 0, 0))
    except av.error.FFmpegError as error:
        if not open_source.is_damage(error):
            raise
        talk.note(f"the file cannot be read to its end: {reason(error)}")
        return 1
    return 0


def _behead(film: _Film, order: Scan, talk: ChildSession, stream: int) -> None:
    """Leave out frames at the beginning that no decoder gives."""
    key = film.keys[0] if film.keys else None
    early = [] if key is None else [time for time in film.pts if time < key]
    if key is None or not early:
        return
    frames = first_frames(talk, order.format, stream)
    gone = undecodable_head(frames, early, key, is_cut=bool(film.keyless))
    film.undecodable = len(gone)
    film.pts = array("q", (time for time in film.pts if time not in gone))


def _filled(container: InputContainer, wanted: Sequence[Any]) -> Iterator[Packet[Any]]:
    """Packets with bytes in them; the last one of each stream is an empty mark."""
    for packet in open_source.demuxed(container, *wanted):
        if packet.size:
            if packet.has_sidedata("encryption_info"):  # it began in the clear
                raise refusal()
            yield packet


def _heard(tracks: Mapping[int, _Track], sound: Sound) -> bool:
    return tracks[sound.stream].start is not None


def _samples(sound: Sound, track: _Track, bases: Mapping[int, Fraction | None]) -> Samples:
    start = track.start or 0
    return Samples(
        stream=sound.stream,
        time_base=bases[sound.stream] or sound.time_base,
        start=start,
        end=max(track.end or 0, start),
        gaps=tuple(track.gaps),
    )


def _packets(picture: Picture, film: _Film, bases: Mapping[int, Fraction | None]) -> Packets:
    """Everything but the long lists, which are written apart."""
    if not film.pts and not film.untimed:
        raise OrderRefused("damaged", "the video stream has no frames", permanent=True)
    return Packets(
        time_base=bases[picture.stream] or picture.time_base,
        pts=(),
        keys=(),
        untimed=film.untimed,
        discarded=film.discarded,
        damaged=film.damaged,
        last_duration=film.last_duration,
        second_fields=film.fields.seconds if film.fields is not None else 0,
    )


def _write(path: Path, packets: Packets | None, film: _Film, sounds: Sequence[Samples]) -> None:
    with path.open("w", encoding="utf-8") as out:  # the one codec that Python needs not import, behind Landlock
        out.write('{"packets":')
        if packets is None:
            out.write("null")
        else:
            rest = {name: value for name, value in to_plain(packets).items() if name not in ("pts", "keys")}
            out.write(json.dumps(rest)[:-1])
            for name, numbers in (("pts", film.pts), ("keys", film.keys)):
                out.write(f',"{name}":[')
                _write_numbers(out, numbers)
                out.write("]")
            out.write("}")
        out.write(f',"sounds":{json.dumps(to_plain(sounds))}}}')


def _write_numbers(out: TextIO, numbers: array[int]) -> None:
    for at in range(0, len(numbers), _AT_ONCE):
        out.write("," if at else "")
        out.write(",".join(map(str, numbers[at : at + _AT_ONCE])))
