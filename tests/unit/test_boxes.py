"""The box reader: what it reads, and that damage is an error, quickly, whatever the bytes are."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.media.mp4.boxes import DamagedBoxes, EditListEntry, fragments, read_init, walk


def box(kind: str, *parts: bytes) -> bytes:
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind.encode()) + body


def full(kind: str, *parts: bytes, version: int = 0, flags: int = 0) -> bytes:
    return box(kind, struct.pack(">I", version << 24 | flags), *parts)


def words(*values: int) -> bytes:
    return struct.pack(f">{len(values)}i", *values)


@dataclass(frozen=True)
class Trun:
    """A fragment to write, with what can be wrong about it."""

    count: int = 3
    said: int | None = None  # how many samples it claims
    version: int = 1
    shift: int = -5
    offset: int | None = None
    sizes: tuple[int, ...] = (10, 20, 30)
    tfhd: int = 0x020000
    tfdt: int = 1

    def fragment(self, start: int = 900) -> bytes:
        rows = b"".join(words(100, size, self.shift if n else 0) for n, size in enumerate(self.sizes[: self.count]))
        said = self.count if self.said is None else self.said
        head = box(
            "moof",
            full("mfhd", words(7)),
            box(
                "traf",
                full("tfhd", words(1), flags=self.tfhd),
                full("tfdt", struct.pack(">Q" if self.tfdt else ">I", start), version=self.tfdt),
                full("trun", words(said, 0, 0x2000000), rows, version=self.version, flags=0xB05),
            ),
        )
        offset = len(head) + 8 if self.offset is None else self.offset
        place = head.index(b"trun") + 12
        return head[:place] + words(offset) + head[place + 4 :] + box("mdat", bytes(sum(self.sizes)))


GOOD = Trun()


def esds(kind: int = 0x40, config: bytes = b"\x11\x90") -> bytes:
    five = b"\x05" + bytes([len(config)]) + config
    four = b"\x04" + bytes([13 + len(five)]) + bytes([kind]) + bytes(12) + five
    return full("esds", b"\x03\x80\x80\x80" + bytes([3 + len(four)]) + bytes(3) + four)


def audio(**differs: bytes) -> bytes:
    return box("mp4a", bytes(28), differs.get("esds", esds()))


def video() -> bytes:
    sizes = bytes(24) + struct.pack(">HH", 640, 360) + bytes(50)
    colr = box("colr", b"nclx", struct.pack(">HHHB", 9, 16, 9, 0x80))
    return box("avc1", sizes, box("avcC", bytes([1, 0x64, 0, 0x1F, 0xFF, 0xE0, 0])), colr)


def init(entry: bytes, *, timescale: int = 48_000, edits: bytes = b"", extra: bytes = b"") -> bytes:
    stbl = box("stbl", full("stsd", words(1), entry))
    mdia = box("mdia", full("mdhd", words(0, 0, timescale, 0, 0)), full("hdlr", words(0), b"soun", bytes(13)))
    mdia = box("mdia", mdia[8:], box("minf", stbl))
    trak = box("trak", full("tkhd", words(0, 0, 3, 0)), edits, mdia, extra)
    return box("ftyp", b"iso6") + box("moov", trak, box("mvex", full("trex", words(3, 1, 1024, 0, 0))))


def test_a_fragment_tells_its_samples() -> None:
    data = GOOD.fragment()

    (part,) = fragments(data)

    assert (part.sequence, part.track, part.start, part.frames) == (7, 1, 900, 3)
    assert (part.sizes, part.durations, part.shifts) == ((10, 20, 30), (100,) * 3, (0, -5, -5))
    assert part.times() == [900, 995, 1095]
    assert (part.offset, part.size) == (0, len(data))
    assert part.first_end == len(data) - 60 + 10
    assert part.first_is_key


def test_old_versions_have_short_times_and_unsigned_shifts() -> None:
    (part,) = fragments(replace(GOOD, version=0, tfdt=0, shift=5).fragment())

    assert (part.start, part.shifts) == (900, (0, 5, 5))


def test_fragments_lie_side_by_side() -> None:
    one = GOOD.fragment()

    parts = fragments(box("styp", b"msdh") + one + GOOD.fragment(start=1200))

    assert [(part.offset, part.start) for part in parts] == [(12, 900), (12 + len(one), 1200)]


def test_an_audio_init_tells_codec_and_edits() -> None:
    edit = box("edts", full("elst", words(1, 0, 1024, 0x10000)))

    facts = read_init(init(audio(), edits=edit))

    assert (facts.kind, facts.timescale, facts.codecs, facts.track) == ("soun", 48_000, "mp4a.40.2", 3)
    assert facts.edits == (EditListEntry(duration=0, media_time=1024),)
    assert facts.default_duration == 1024


def test_a_video_init_tells_codec_size_and_colour() -> None:
    facts = read_init(init(video()))

    assert (facts.codecs, facts.width, facts.height) == ("avc1.64001F", 640, 360)
    assert facts.colour == (9, 16, 9, True)


def test_a_wide_object_type_is_read() -> None:
    assert read_init(init(audio(esds=esds(config=b"\xf8\x20")))).codecs == "mp4a.40.33"


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (replace(GOOD, said=4), "does not fill its box"),
        (replace(GOOD, said=-1), "samples for 60 bytes"),
        (replace(GOOD, said=0), "samples for 60 bytes"),
        (replace(GOOD, offset=8), "outside of their mdat"),
        (replace(GOOD, offset=1 << 30), "outside of their mdat"),
        (replace(GOOD, sizes=(10, 0, 30)), "without bytes"),
        (replace(GOOD, tfhd=0), "must count from the moof"),
    ],
)
def test_a_fragment_that_lies_is_damaged(wrong: Trun, says: str) -> None:
    with pytest.raises(DamagedBoxes, match=says):
        fragments(wrong.fragment())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "no fragment"),
        (b"abc", "too few"),
        (box("moof"), "no mdat"),
        (box("mdat"), "does not belong"),
        (box("moov"), "does not belong"),
        (GOOD.fragment()[:-1], "says 68 bytes"),
        (words(0) + b"moof", "says 0 bytes"),
        (words(1) + b"moof", "cut in its header"),
        (words(1) + b"moof" + bytes(8), "says 0 bytes"),
    ],
)
def test_what_is_no_segment_is_damaged(data: bytes, says: str) -> None:
    with pytest.raises(DamagedBoxes, match=says):
        fragments(data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (init(audio(), timescale=0), "timescale"),
        (init(audio(), extra=full("mdia")), "2 mdia"),
        (init(box("encv", bytes(78))), "does not know"),
        (init(audio(esds=full("esds", b"\x04\x00"))), "descriptor 4"),
        (init(audio(esds=full("esds", b"\x03\x7f"))), "longer than its box"),
        (init(audio(), edits=box("edts", full("elst", words(1 << 28)))), "does not fit"),
        (init(box("avc1", bytes(78))), "no avcC"),
        (box("ftyp") + box("moov"), "no trak"),
    ],
)
def test_what_is_no_init_is_damaged(data: bytes, says: str) -> None:
    with pytest.raises(DamagedBoxes, match=says):
        read_init(data)


def test_a_large_box_is_read_by_its_long_size() -> None:
    data = words(1) + b"mdat" + struct.pack(">Q", 20) + b"body"

    (found,) = walk(data)

    assert (found.type, found.size, found.body) == ("mdat", 20, 16)


SOUND = (GOOD.fragment() * 2, init(audio()), init(video()))


@given(st.sampled_from(SOUND), st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6), st.data())
def test_flipped_bytes_are_read_or_refused_but_never_worse(
    data: bytes, flips: list[tuple[int, int]], chosen: st.DataObject
) -> None:
    spoilt = bytearray(data)
    for at, value in flips:
        spoilt[at % len(spoilt)] = value
    cut = chosen.draw(st.integers(0, len(spoilt)))

    for read in (fragments, read_init):
        for piece in (bytes(spoilt), bytes(spoilt[:cut])):
            try:
                read(piece)
            except DamagedBoxes:
                continue
