"""Encoders and muxer: every option is one that exists and does what its reason says."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import av
import av.logging
import pytest

from telecine.media.child.encode import muxer
from telecine.media.child.encode.chunk import runs
from telecine.media.child.encode.encoder import Encoder, black, timing_of
from telecine.media.child.encode.segments import check
from telecine.media.child.protocol import OrderRefused
from telecine.media.ladders import encoder_families
from telecine.media.ladders.encoder_families import FAMILIES, EncoderFamily, EncoderOption
from telecine.media.mp4.boxes import Fragment, fragments, read_init
from telecine.media.orders import MakeInits, Rung, Timing
from tests.media import child_driver

RUNG = Rung(name="r", width=320, height=180, crf=23, maxrate=500_000, bufsize=1_000_000, level="3.0")
GRID = Timing(rate=Fraction(24000, 1001), frames=120, gop=12, per_segment=36)
SOFTWARE = [name for name, family in FAMILIES.items() if not family.hardware]


def made(
    rung: Rung = RUNG, *, segment: int = 0, frames: int = 40, threads: int = 1, grid: Timing = GRID
) -> tuple[bytes, list[Fragment]]:
    encoder = Encoder(rung, grid, segment=segment, threads=threads)
    first = segment * grid.per_segment
    parts = [part for n in range(first, first + frames) for part in encoder.encode(black(rung), n)]
    parts += encoder.finish()
    assert encoder.init is not None
    facts = read_init(encoder.init)
    return encoder.init, [one for part in parts for one in fragments(part, facts)]


@pytest.fixture
def misspelt(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    option = EncoderOption("crff", "23", "misspelt")
    family = replace(encoder_families.X264, name="misspelt", options=(*encoder_families.X264.options, option))
    monkeypatch.setitem(FAMILIES, family.name, family)
    return family.name


# --- options -----------------------------------------------------------------------------------------------------


def test_a_misspelt_option_is_caught(misspelt: str) -> None:
    with pytest.raises(OrderRefused, match="no option crff"):
        Encoder(replace(RUNG, family=misspelt), GRID)


@pytest.mark.parametrize("name", SOFTWARE)
@pytest.mark.parametrize("lossless", [False, True])
def test_the_encoder_itself_complains_about_none_of_its_parameters(name: str, lossless: bool) -> None:
    with av.logging.Capture(local=False) as complaints:
        av.logging.set_level(av.logging.WARNING)
        Encoder(replace(RUNG, family=name, lossless=lossless), GRID).finish()
        av.logging.set_level(None)

    assert [text for level, _, text in complaints if level <= av.logging.WARNING] == []


def test_that_complaint_would_be_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    family = replace(
        encoder_families.X264, params=(*encoder_families.X264.params, EncoderOption("stitchabel", "1", "misspelt"))
    )
    monkeypatch.setitem(FAMILIES, "x264", family)

    with av.logging.Capture(local=False) as complaints:
        av.logging.set_level(av.logging.WARNING)
        Encoder(RUNG, GRID).finish()
        av.logging.set_level(None)

    assert any("stitchabel" in text for _, _, text in complaints)


@pytest.mark.parametrize("family", [one for one in FAMILIES.values() if one.codec in av.codecs_available])
def test_a_family_names_only_options_that_its_encoder_has(family: EncoderFamily) -> None:
    known = av.CodecContext.create(family.codec, "w").supported_options
    names = {option.name for option in (*known.generic, *known.private)}

    used = {option.name for option in (*family.options, *family.lossless)} | {family.params_name} - {""}

    assert used <= names


def test_each_option_has_a_reason_and_each_family_somewhere_to_fall_back_to() -> None:
    for family in FAMILIES.values():
        assert all(option.why for option in (*family.options, *family.lossless, *family.params))
        assert (family.fallback is None) == (family.label is None)
        assert family.fallback is None or FAMILIES[family.fallback].label is None


def test_a_family_is_tried_by_an_encode(tmp_path: Path) -> None:
    works = child_driver.run(encoder_families.trial("x264-alt"), tmp_path / "1")
    lacks = child_driver.run(encoder_families.trial("nvenc"), tmp_path / "2")

    assert works.done == {"inits": 1}
    assert lacks.error is not None
    assert lacks.error["code"] == "encoder_failed"


# --- what comes out ----------------------------------------------------------------------------------------------


def test_fragments_come_as_the_plan_counts_them() -> None:
    _, parts = made(segment=1)

    assert [part.start for part in parts] == [n * 1001 for n in (36, 48, 60, 72)]
    assert [part.sequence for part in parts] == [4, 5, 6, 7]
    assert [part.frames for part in parts] == [12, 12, 12, 4]
    assert all(part.first_is_key for part in parts)
    assert [time for part in parts for time in part.times()] == [n * 1001 for n in range(36, 76)]


def test_an_init_says_size_colour_codec_and_no_edit_list() -> None:
    init, _ = made(replace(RUNG, colour=(6, 6, 6)))

    facts = read_init(init)

    assert (facts.timescale, facts.codecs, facts.width, facts.height) == (24000, "avc1.64001E", 320, 180)
    assert facts.colour == (6, 6, 6, False)
    assert facts.edits == ()
    assert b"Lavf" not in init
    assert b"btrt" not in init


@pytest.mark.parametrize("name", SOFTWARE)
def test_an_init_says_that_pixels_are_square(name: str) -> None:
    init, _ = made(replace(RUNG, family=name), frames=12)

    assert b"\x00\x00\x00\x10pasp\x00\x00\x00\x01\x00\x00\x00\x01" in init


@pytest.mark.parametrize(
    "other", [{"segment": 2}, {"frames": 1}, {"threads": 2}, {"rung": replace(RUNG, crf=30)}], ids=str
)
def test_the_init_is_the_same_wherever_and_however_a_chunk_is_encoded(other: dict[str, object]) -> None:
    assert made(**other)[0] == made()[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [{"family": "x264-alt"}, {"level": "4.0"}, {"lossless": True}], ids=str)
def test_the_init_differs_where_pieces_would_not_fit(other: dict[str, object]) -> None:
    assert made(replace(RUNG, **other))[0] != made()[0]  # type: ignore[arg-type]


def test_inits_of_a_plan_are_those_of_its_chunks(tmp_path: Path) -> None:
    rungs = (RUNG, replace(RUNG, name="alt", family="x264-alt"))
    order = MakeInits(rate=GRID.rate, gop=GRID.gop, rungs=rungs, tracks=())

    said = child_driver.run(order, tmp_path)

    for rung, init in zip(rungs, said.all("init"), strict=True):
        assert (tmp_path / init["path"]).read_bytes() == made(rung)[0]
        assert init["sha256"] == hashlib.sha256(made(rung)[0]).hexdigest()
        assert (init["name"], init["codecs"], init["timescale"]) == (rung.name, "avc1.64001E", 24000)
    assert said.done == {"inits": 2}


def test_the_source_s_keyframes_are_not_taken_over() -> None:
    encoder = Encoder(RUNG, GRID)
    frames = [black(RUNG) for _ in range(24)]
    for frame in frames:
        frame.pict_type = 1  # I

    parts = [part for n, frame in enumerate(frames) for part in encoder.encode(frame, n)] + encoder.finish()

    assert [fragments(part)[0].frames for part in parts] == [12, 12]


# --- pieces ------------------------------------------------------------------------------------------------------


def test_a_sink_cuts_at_boxes_however_the_bytes_come() -> None:
    def box(kind: bytes, body: bytes) -> bytes:
        return (8 + len(body)).to_bytes(4, "big") + kind + body

    stream = box(b"ftyp", b"a") + box(b"moov", b"bb") + (box(b"moof", b"c") + box(b"mdat", b"dddd")) * 2
    sink = muxer.MuxerOutput()

    taken = [piece for at in range(len(stream)) if sink.write(stream[at : at + 1]) for piece in sink.taken()]

    assert sink.init == box(b"ftyp", b"a") + box(b"moov", b"bb")
    assert taken == [box(b"moof", b"c") + box(b"mdat", b"dddd")] * 2
    assert sink.is_empty


@pytest.mark.parametrize("kind", [b"mdat", b"moof", b"free"])
def test_a_sink_refuses_a_box_out_of_order(kind: bytes) -> None:
    with pytest.raises(OrderRefused, match="where none belongs"):
        muxer.MuxerOutput().write(b"\x00\x00\x00\x08" + kind)


def signed(part: Fragment) -> Fragment:
    """The same pictures with samples of equal length, so that B frames are shown before they are decoded."""
    begins = [part.start + sum(part.durations[:number]) for number in range(part.frames)]
    shown = [begin + shift for begin, shift in zip(begins, part.shifts, strict=True)]
    shifts = tuple(time - (part.start + number * GRID.step) for number, time in enumerate(shown))
    assert min(shifts) < 0
    return replace(part, durations=(GRID.step,) * part.frames, shifts=shifts)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda part: replace(part, start=1001), "other frames"),
        (lambda part: replace(part, durations=(*part.durations[:-1], part.durations[-1] - 1)), "other durations"),
        (lambda part: replace(part, sequence=9), "other sequence numbers"),
        (lambda part: replace(part, first_is_key=False), "without a keyframe"),
        (signed, "before they are decoded"),
    ],
)
def test_a_segment_that_is_not_the_planned_one_is_noticed(changed: Callable[[Fragment], Fragment], words: str) -> None:
    _, parts = made(frames=36)
    check(parts, GRID, 0, "r")

    with pytest.raises(OrderRefused, match=words):
        check([changed(parts[0]), *parts[1:]], GRID, 0, "r")


@pytest.mark.parametrize("rate", [GRID.rate, Fraction(25, 2), Fraction(120)], ids=str)
@pytest.mark.parametrize("name", SOFTWARE)
def test_no_picture_is_shown_before_it_is_decoded_and_none_lasts_beyond_its_group(name: str, rate: Fraction) -> None:
    grid = replace(GRID, rate=rate)

    _, parts = made(replace(RUNG, family=name), grid=grid)

    for part in parts:
        begins = [part.start + sum(part.durations[:number]) for number in range(part.frames)]
        ends = [one + shift + length for one, shift, length in zip(begins, part.shifts, part.durations, strict=True)]
        assert part.shifts[0] == 0
        assert min(part.shifts) >= 0
        assert max(ends) == part.start + part.frames * grid.step
    assert [time for part in parts for time in part.times()] == [n * grid.step for n in range(40)]
    assert {shift for part in parts for shift in part.shifts} != {0} or name == "x264-alt"  # there are B frames


def test_missing_segments_are_runs() -> None:
    assert runs([0, 1, 3], GRID) == [range(72), range(108, 120)]
    assert runs([3, 2], GRID) == [range(72, 120)]
    assert runs([], GRID) == []


def test_an_init_needs_only_rate_and_gop() -> None:
    assert timing_of(Fraction(25), 50).timescale == 25000
