"""Read ISO-BMFF boxes: what an init says and which samples a segment holds. Trusts nothing that it reads.

    init      ftyp · moov(mvhd · trak(… mdhd · stsd(avc1(avcC, colr) | mp4a(esds)) …, edts(elst)) · mvex(trex))
    segment   { moof(mfhd · traf(tfhd · tfdt · trun)) · mdat } …

Each step goes forward by at least one header, and no count is believed before the bytes for it were seen: damage is
`DamagedBoxes`, never an endless loop and never a large allocation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from telecine.media.mp4.box_walk import Box, DamagedBoxes, full, only, some, unpack, walk
from telecine.media.mp4.sample_entry import codecs_of

__all__ = ["Box", "DamagedBoxes", "EditListEntry", "Fragment", "InitFacts", "fragments", "read_init", "walk"]

# Between fragments they do no harm.
_AROUND = frozenset({"styp", "sidx", "emsg", "prft", "free", "skip"})
_NOT_SYNC = 0x10000


@dataclass(frozen=True, slots=True, kw_only=True)
class EditListEntry:
    """A row of an edit list. `media_time` −1 is an empty edit."""

    duration: int
    media_time: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InitFacts:
    """What an init segment says about its one track."""

    track: int
    kind: str  # "vide" or "soun"
    timescale: int
    codecs: str
    width: int = 0
    height: int = 0
    colour: tuple[int, int, int, bool] | None = None  # primaries, transfer, matrix, full range
    edits: tuple[EditListEntry, ...] = ()
    default_duration: int = 0
    default_size: int = 0
    default_flags: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """One moof and its mdat. `shifts` are composition offsets, signed."""

    offset: int
    size: int
    sequence: int
    track: int
    start: int  # tfdt
    durations: tuple[int, ...]
    sizes: tuple[int, ...]
    shifts: tuple[int, ...]
    first_is_key: bool
    first_end: int  # from the fragment's own begin to the end of its first sample

    @property
    def frames(self) -> int:
        return len(self.sizes)

    @property
    def duration(self) -> int:
        return sum(self.durations)

    def times(self) -> list[int]:
        """When its samples are shown, in order of showing."""
        at, shown = self.start, []
        for duration, shift in zip(self.durations, self.shifts, strict=True):
            shown.append(at + shift)
            at += duration
        return sorted(shown)


def read_init(data: bytes) -> InitFacts:
    """Read `ftyp` and `moov`. There must be one track."""
    top = list(walk(data))
    if [box.type for box in top] != ["ftyp", "moov"]:
        raise DamagedBoxes(f"an init is ftyp and moov, this is {' '.join(box.type for box in top) or 'empty'}")
    moov = top[1]
    trak = only(data, moov, "trak")
    mdia = only(data, trak, "mdia")
    timescale = _after_times(data, only(data, mdia, "mdhd"))
    hdlr = only(data, mdia, "hdlr")
    (handler,) = unpack(">4s", data, hdlr.body + 8, hdlr.end)
    if timescale == 0:
        raise DamagedBoxes("a track without a timescale")
    table = only(data, only(data, only(data, mdia, "minf"), "stbl"), "stsd")
    entry = codecs_of(data, table)
    defaults = _trex(data, moov)
    return InitFacts(
        track=_after_times(data, only(data, trak, "tkhd")),
        kind=handler.decode("latin-1"),
        timescale=timescale,
        codecs=entry.codecs,
        width=entry.width,
        height=entry.height,
        colour=entry.colour,
        edits=_edits(data, trak),
        default_duration=defaults[0],
        default_size=defaults[1],
        default_flags=defaults[2],
    )


def fragments(data: bytes, init: InitFacts | None = None) -> tuple[Fragment, ...]:
    """The fragments of a segment, in the order of the file. `init` gives the defaults of the track."""
    found: list[Fragment] = []
    moof: Box | None = None
    for box in walk(data):
        if box.type == "moof" and moof is None:
            moof = box
        elif box.type == "mdat" and moof is not None:
            found.append(_fragment(data, moof, box, init))
            moof = None
        elif box.type not in _AROUND or moof is not None:
            raise DamagedBoxes(f"a {box.type} box does not belong at {box.start}")
    if moof is not None:
        raise DamagedBoxes("the last moof has no mdat")
    if not found:
        raise DamagedBoxes("there is no fragment")
    return tuple(found)


def _after_times(data: bytes, box: Box) -> int:
    """The word behind the two dates of mdhd (timescale) or tkhd (track)."""
    version, _, at = full(data, box)
    (word,) = unpack(">I", data, at + (16 if version else 8), box.end)
    return int(word)


def _trex(data: bytes, moov: Box) -> tuple[int, int, int]:
    mvex = some(data, moov, "mvex")
    if mvex is None:
        raise DamagedBoxes("the init is not one of fragments: mvex is missing")
    trex = only(data, mvex, "trex")
    duration, size, flags = unpack(">III", data, trex.body + 12, trex.end)
    return duration, size, flags


def _edits(data: bytes, trak: Box) -> tuple[EditListEntry, ...]:
    edts = some(data, trak, "edts")
    if edts is None:
        return ()
    box = only(data, edts, "elst")
    version, _, at = full(data, box)
    row = struct.Struct(">QqI" if version else ">IiI")
    (count,) = unpack(">I", data, at, box.end)
    if at + 4 + count * row.size > box.end:
        raise DamagedBoxes(f"an edit list of {count} rows does not fit into its box")
    rows = (row.unpack_from(data, at + 4 + number * row.size) for number in range(count))
    return tuple(EditListEntry(duration=duration, media_time=time) for duration, time, _ in rows)


def _fragment(data: bytes, moof: Box, mdat: Box, init: InitFacts | None) -> Fragment:
    mfhd = only(data, moof, "mfhd")
    (sequence,) = unpack(">I", data, mfhd.body + 4, mfhd.end)
    traf = only(data, moof, "traf")
    track, defaults = _tfhd(data, only(data, traf, "tfhd"), init)
    tfdt = only(data, traf, "tfdt")
    version, _, at = full(data, tfdt)
    (start,) = unpack(">Q" if version else ">I", data, at, tfdt.end)
    run = _Run.read(data, only(data, traf, "trun"), defaults, room=mdat.end - mdat.body)
    begin = moof.start + run.offset
    if begin < mdat.body or begin + sum(run.sizes) > mdat.end:
        raise DamagedBoxes("samples lie outside of their mdat")
    return Fragment(
        offset=moof.start,
        size=mdat.end - moof.start,
        sequence=sequence,
        track=track,
        start=start,
        durations=run.durations,
        sizes=run.sizes,
        shifts=run.shifts,
        first_is_key=not run.first_flags & _NOT_SYNC,
        first_end=begin - moof.start + run.sizes[0],
    )


@dataclass(frozen=True, slots=True)
class _Defaults:
    duration: int
    size: int
    flags: int


def _tfhd(data: bytes, box: Box, init: InitFacts | None) -> tuple[int, _Defaults]:
    _, flags, at = full(data, box)
    if flags & 0x1 or not flags & 0x20000:
        raise DamagedBoxes("sample positions must count from the moof (default-base-is-moof)")
    (track,) = unpack(">I", data, at, box.end)
    at += 4 + (4 if flags & 0x2 else 0)
    values = [init.default_duration, init.default_size, init.default_flags] if init else [0, 0, 0]
    for number, bit in enumerate((0x8, 0x10, 0x20)):
        if flags & bit:
            (values[number],) = unpack(">I", data, at, box.end)
            at += 4
    return track, _Defaults(*values)


@dataclass(frozen=True, slots=True)
class _Run:
    """A trun: the samples of a fragment."""

    offset: int
    durations: tuple[int, ...]
    sizes: tuple[int, ...]
    shifts: tuple[int, ...]
    first_flags: int

    @classmethod
    def read(cls, data: bytes, box: Box, defaults: _Defaults, *, room: int) -> _Run:
        version, flags, at = full(data, box)
        (count,) = unpack(">I", data, at, box.end)
        if not flags & 0x1:
            raise DamagedBoxes("a trun does not say where its samples begin")
        (offset,) = unpack(">i", data, at + 4, box.end)
        at += 8
        first_flags: int | None = None
        if flags & 0x4:
            (first_flags,) = unpack(">I", data, at, box.end)
            at += 4
        columns = [bit for bit in (0x100, 0x200, 0x400, 0x800) if flags & bit]
        if not 0 < count <= room:  # no sample is empty
            raise DamagedBoxes(f"a trun of {count} samples for {room} bytes")
        if at + count * 4 * len(columns) != box.end:
            raise DamagedBoxes(f"a trun of {count} samples does not fill its box")
        table = {
            bit: tuple(_column(data, at, (number, len(columns)), count, signed=bit == 0x800 and version > 0))
            for number, bit in enumerate(columns)
        }
        sizes = table.get(0x200, (defaults.size,) * count)
        if min(sizes) <= 0:
            raise DamagedBoxes("a sample without bytes")
        flag_column = table.get(0x400, (defaults.flags,))
        return cls(
            offset=offset,
            durations=table.get(0x100, (defaults.duration,) * count),
            sizes=sizes,
            shifts=table.get(0x800, (0,) * count),
            first_flags=flag_column[0] if first_flags is None else first_flags,
        )


def _column(data: bytes, at: int, place: tuple[int, int], count: int, *, signed: bool) -> Iterator[int]:
    """Every value of one column of a table of four-byte words."""
    number, columns = place
    words = struct.unpack_from(f">{count * columns}{'i' if signed else 'I'}", data, at)
    return iter(words[number::columns])
