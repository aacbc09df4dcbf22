"""Sound that cannot be decoded is silence in its place, and it is counted: nobody takes it for the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import av
import pytest
from av.packet import Packet

from telecine.media.child.sound import audio_track
from tests.media.in_process import Told, carry_out
from tests.media.make_video import Film, shoot
from tests.media.patterns import bursts
from tests.media.test_audio import decoded, order_for
from tests.media.transcode_env import Theatre, play, small


@pytest.fixture
def film(tmp_path: Path) -> Path:
    return shoot(tmp_path / "film.mp4", Film(muxer={"movflags": "faststart"}))


def wiped(path: Path, which: Callable[[int, float], bool]) -> Path:
    """The film with these packets of its sound overwritten, by their number and time."""
    data = bytearray(path.read_bytes())
    with av.open(str(path)) as source:
        packets: Iterable[Packet[Any]] = [one for one in source.demux(audio=0) if one.size]
        for number, packet in enumerate(packets):
            assert packet.pts is not None
            assert packet.pos is not None
            if which(number, float(packet.pts * packet.time_base)):
                data[packet.pos : packet.pos + packet.size] = b"\xff" * packet.size
    made = path.with_name("wiped.mp4")
    made.write_bytes(data)
    return made


def encoded(path: Path, folder: Path) -> Told:
    return carry_out(audio_track.run, order_for(path, folder), folder, path)


def test_a_second_half_that_cannot_be_decoded_is_counted_packet_by_packet(film: Path, tmp_path: Path) -> None:
    bad = wiped(film, lambda number, at: at > 1.7)

    told = encoded(bad, tmp_path)

    init = audio_track.audio_init(order_for(bad, tmp_path).track)
    left, _ = decoded(init + b"".join((tmp_path / one.path).read_bytes() for one in told.segments))
    assert sorted(bursts(left, 48_000)) == [0, 1]
    assert abs(told.result["damaged"] - 1.7 * 48_000 / 1024) < 3
    assert "cannot be decoded" in told.notes[0]


def test_one_packet_in_the_middle_counts(film: Path, tmp_path: Path) -> None:
    assert encoded(wiped(film, lambda number, at: number == 60), tmp_path).result["damaged"] == 1


def test_the_ragged_ends_of_a_track_do_not_count(film: Path, tmp_path: Path) -> None:
    with av.open(str(film)) as source:
        last = sum(1 for packet in source.demux(audio=0) if packet.size) - 1

    told = encoded(wiped(film, lambda number, at: number in {0, last}), tmp_path)

    assert told.result["damaged"] == 0


def test_a_film_with_half_its_sound_fails_and_says_why(film: Path, tmp_path: Path) -> None:
    bad = wiped(film, lambda number, at: at > 1.7)

    async def story(house: Theatre) -> None:
        job = await house.made(small(bad))

        assert job.status == "failed"
        assert job.error is not None
        assert job.error["code"] == "damaged"
        assert "packets of audio" in job.error["message"]
        assert [end for stage, end in await house.attempts(job.id) if stage == "audio"] == ["failed"]

    play(story, tmp_path)


def test_half_a_sound_comes_out_with_a_warning_if_it_may(film: Path, tmp_path: Path) -> None:
    bad = wiped(film, lambda number, at: at > 1.7)

    async def story(house: Theatre) -> None:
        job = await house.completed(small(bad, damaged="warn"))

        lines = [line for line in await house.views.logs(job.id, limit=500) if line.level == "warning"]
        assert any("packets of audio" in line.message for line in lines)

    play(story, tmp_path)
