"""Audio: cut on the video's grid and resumed anywhere, it sounds as if nobody had cut it, and at the right time."""

from __future__ import annotations

import io
import math
from array import array
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import av
import pytest
from av.audio.fifo import AudioFifo
from hypothesis import given
from hypothesis import strategies as st

from telecine.media.child.protocol import OrderRefused
from telecine.media.child.sound import audio_track
from telecine.media.mp4.boxes import EditListEntry, fragments, read_init
from telecine.media.orders import AudioTrackOrder, EncodeAudio, Segment
from telecine.media.source import Sound
from tests.media import child_driver
from tests.media.in_process import carry_out
from tests.media.make_video import Film, shoot
from tests.media.patterns import bursts
from tests.media.sources import KINDS
from tests.media.test_scan import probed, scanned

Kinds = Callable[[str], Path]
SECOND = tuple(map(Fraction, range(4)))
LENGTH = Fraction(34, 10)
STEREO = AudioTrackOrder(name="sound", channels=2)


def order_for(path: Path, folder: Path, **differs: object) -> EncodeAudio:
    """The whole of its first track, on the clock of its film."""
    found, seen = probed(path), scanned(path, folder)
    sound = found.sounds[0]
    start = seen.sounds[0].start
    if seen.packets is not None:
        start = round(min(seen.packets.pts) * seen.packets.time_base / sound.time_base)
    order = EncodeAudio(sound=sound, format=found.format, track=STEREO, start=start, length=LENGTH, borders=SECOND)
    return replace(order, **differs)  # type: ignore[arg-type]


def encoded(order: EncodeAudio, path: Path, folder: Path) -> tuple[list[Segment], bytes]:
    """The segments, and the track joined with its init."""
    segments = carry_out(audio_track.run, order, folder, path).segments
    return segments, audio_track.audio_init(order.track) + b"".join(
        (folder / one.path).read_bytes() for one in segments
    )


def decoded(data: bytes) -> list[array[float]]:
    """Samples per channel, as a player hears them: without the priming."""
    with av.open(io.BytesIO(data), format="mov") as container:
        frames = list(container.decode(audio=0))
    channels = [array("f") for _ in frames[0].planes]
    for frame in frames:
        for channel, plane in zip(channels, frame.planes, strict=True):
            channel.frombytes(bytes(plane)[: frame.samples * 4])
    return channels


# --- cut and uncut -----------------------------------------------------------------------------------------------


def test_the_cut_track_decodes_to_the_samples_of_the_uncut_one(source: Kinds, tmp_path: Path) -> None:
    path = source("mp4-h264")
    order = order_for(path, tmp_path)

    cut = encoded(order, path, tmp_path)[1]
    uncut = encoded(replace(order, borders=SECOND[:1]), path, tmp_path)[1]

    assert decoded(cut) == decoded(uncut)
    assert decoded(cut) == decoded(plainly_encoded(path))


def plainly_encoded(path: Path) -> bytes:
    """The same sound through the same encoder into an ordinary file, cut nowhere."""
    made = io.BytesIO()
    with av.open(str(path)) as source, av.open(made, "w", format="mp4") as out:
        stream = out.add_stream("aac", rate=48_000, layout="stereo")
        stream.bit_rate = STEREO.bitrate
        stream.codec_context.flags |= 1 << 23  # else the encoder's version takes bits from the first frames
        fifo = AudioFifo()
        for frame in source.decode(audio=0):
            frame.pts = None
            fifo.write(frame)
        left = round(LENGTH * 48_000)
        while left > 0 and (block := fifo.read(min(1024, left))) is not None:
            left -= block.samples
            out.mux(stream.encode(block))
        out.mux(stream.encode(None))
    return pad(made.getvalue())


def pad(data: bytes) -> bytes:
    """An ordinary file says how many samples of the last frame count; a fragmented one cannot. Take that away."""
    at = data.index(b"elst") + 12
    return data[:at] + (2**31 - 1).to_bytes(4, "big") + data[at + 4 :]


def test_segments_follow_on_each_other_and_are_exactly_as_long_as_the_film(source: Kinds, tmp_path: Path) -> None:
    path = source("mp4-44100")
    order = order_for(path, tmp_path, length=Fraction(12345, 4800), borders=SECOND[:3])

    segments, _ = encoded(order, path, tmp_path)

    init = read_init(audio_track.audio_init(order.track))
    parts = [fragments((tmp_path / one.path).read_bytes(), init) for one in segments]
    assert [len(part) for part in parts] == [1, 1, 1]
    assert [part[0].sequence for part in parts] == [1, 2, 3]
    assert [part[0].start for part in parts] == [one.start for one in segments]
    ends = [part[0].start + part[0].duration for part in parts]
    assert [0, *ends[:-1]] == [one.start for one in segments]
    assert ends[-1] == 123_450 + 1024
    assert [(part[0].frames, part[0].duration) for part in parts] == [(one.frames, one.duration) for one in segments]
    assert [one.fragments for one in segments] == [
        ((0, part[0].size, part[0].frames, part[0].first_end),) for part in parts
    ]


def test_the_init_hides_the_priming_and_is_the_same_each_time() -> None:
    init = read_init(audio_track.audio_init(STEREO))

    assert (init.kind, init.timescale, init.codecs) == ("soun", 48_000, "mp4a.40.2")
    assert init.edits == (EditListEntry(duration=0, media_time=1024),)
    assert audio_track.audio_init(STEREO) == audio_track.audio_init(STEREO)
    assert audio_track.audio_init(STEREO) != audio_track.audio_init(
        AudioTrackOrder(name="sound", channels=6, bitrate=384_000)
    )


@pytest.mark.parametrize("have", [(0, 2), (0, 1, 2), (3,), (1, 3)])
def test_a_resumed_track_gets_the_same_bytes_for_what_it_lacks(
    have: tuple[int, ...], source: Kinds, tmp_path: Path
) -> None:
    path = source("mkv-5.1")
    order = order_for(path, tmp_path)
    whole = {one.number: one.sha256 for one in encoded(order, path, tmp_path)[0]}

    segments, _ = encoded(replace(order, have=have), path, tmp_path)

    assert {one.number: one.sha256 for one in segments} == {n: whole[n] for n in whole if n not in have}


def test_a_track_that_lacks_nothing_says_nothing(source: Kinds, tmp_path: Path) -> None:
    path = source("mp4-mono")

    told = carry_out(audio_track.run, order_for(path, tmp_path, have=(0, 1, 2, 3)), tmp_path, path)

    assert told.segments == []
    assert told.result["made"] == 0


def test_the_sandboxed_child_makes_the_same_segments(source: Kinds, tmp_path: Path) -> None:
    path = source("mp4-h264")
    order = order_for(path, tmp_path)

    said = child_driver.run(order, tmp_path / "child", source=path)

    assert said.done["segments"] == 4
    assert said.segments == encoded(order, path, tmp_path)[0]


@given(
    samples=st.integers(1024, 48_000 * 20),
    steps=st.lists(st.fractions(Fraction(1, 20), Fraction(6)), min_size=1, max_size=12),
)
def test_every_border_is_the_nearest_frame_and_no_segment_is_empty(samples: int, steps: list[Fraction]) -> None:
    borders = [sum(steps[:n], Fraction(0)) for n in range(len(steps))]
    borders = [one for one in borders if one * 48_000 < samples]

    frames = audio_track.frame_borders(borders, samples, 48_000)

    assert frames[0] == 0
    assert frames[-1] == math.ceil(samples / 1024) + 1
    assert all(left < right for left, right in pairwise(frames))
    for border, frame in zip(borders[1:-1], frames[1:], strict=False):
        assert abs(border * 48_000 + 1024 - frame * 1024) <= 1024


# --- the right time ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "mkv-5.1", "mp4-mono", "mp4-44100", "mp4-audio-later", "mkv-audio-earlier", "mp4-audio-short",
        "mkv-starts-at-10-s", "mp4-trimmed", "ts-audio-later", "webm-vp9", "mp3-audio-only",
    ],
)  # fmt: skip
def test_each_second_of_the_film_is_heard_when_it_is_seen(name: str, source: Kinds, tmp_path: Path) -> None:
    kind, path = KINDS[name], source(name)
    length = kind.length - kind.begins
    order = order_for(path, tmp_path, length=length, borders=tuple(one for one in SECOND if one < length))

    left, right = decoded(encoded(order, path, tmp_path)[1])

    heard = bursts(left, 48_000)
    expected = kind.heard(kind.voices[0])
    assert [second for second in sorted(heard) if second >= kind.begins] == expected
    for second in expected:
        assert abs(heard[second] - float(second - kind.begins)) < 0.005
    assert bursts(right, 48_000) == heard
    assert 0 <= len(left) - round(length * 48_000) < 1024  # the last frame is filled up


def test_a_hole_in_the_track_becomes_silence_and_what_follows_stays_in_time(tmp_path: Path) -> None:
    whole = shoot(tmp_path / "whole.mkv", Film(format="matroska"))
    with av.open(str(whole)) as source, av.open(str(tmp_path / "hole.mkv"), "w") as out:
        copies = {one.index: out.add_stream_from_template(one) for one in source.streams}
        for packet in source.demux():
            is_sound = packet.stream.type == "audio"
            if packet.size and not (is_sound and 0.8 < packet.pts * packet.time_base < 1.6):
                packet.stream = copies[packet.stream.index]
                out.mux(packet)
    order = order_for(tmp_path / "hole.mkv", tmp_path)

    left, _ = decoded(encoded(order, tmp_path / "hole.mkv", tmp_path)[1])

    heard = bursts(left, 48_000)
    assert sorted(heard) == [0, 2, 3]
    assert all(abs(at - second) < 0.005 for second, at in heard.items())
    assert max(map(abs, left[int(0.9 * 48_000) : int(1.5 * 48_000)])) < 1e-3


def test_a_stream_without_a_sound_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mute.mkv"
    with av.open(str(path), "w", format="matroska") as out:
        stream = out.add_stream("pcm_s16le", rate=48_000, layout="stereo")
        picture = out.add_stream("mpeg4", rate=25)
        picture.width, picture.height = 64, 48
        frame = av.VideoFrame(64, 48, "yuv420p")
        frame.pts = 0
        out.mux(picture.encode(frame))
        out.mux(picture.encode(None))
    sound = Sound(stream=stream.index, codec="pcm_s16le", rate=48_000, channels=2, time_base=Fraction(1, 1000))
    order = EncodeAudio(
        sound=sound, format="matroska", track=STEREO, start=0, length=Fraction(1), borders=(Fraction(0),)
    )

    with pytest.raises(OrderRefused) as refused:
        carry_out(audio_track.run, order, tmp_path, path)

    assert refused.value.code == "no_sound"


def test_surround_stays_surround_when_six_channels_are_wanted(source: Kinds, tmp_path: Path) -> None:
    path = source("mkv-5.1")
    order = order_for(path, tmp_path, track=AudioTrackOrder(name="sound", channels=6, bitrate=384_000))

    channels = decoded(encoded(order, path, tmp_path)[1])

    assert len(channels) == 6
    assert sorted(bursts(channels[0], 48_000)) == [0, 1, 2, 3]
    assert max(map(abs, channels[5])) > 0.1
