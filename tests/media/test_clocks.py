"""Where a clock begins, and what it does on the way, is no part of the film."""

from __future__ import annotations

from array import array
from fractions import Fraction
from pathlib import Path

import av
import pytest

from telecine.apps.transcode.videos.progress import progress_of
from telecine.media.limits import SourceBounds, check_index, check_source
from tests.media.corrupt import without_default_duration, without_first_packet
from tests.media.corrupt_ts import tuned_in_late, with_wrong_time
from tests.media.make_video import Film, Shot, Voice, shoot
from tests.media.test_probe import probed
from tests.media.test_remux import remuxed
from tests.media.test_scan import scanned
from tests.media.timeline import Timeline, look
from tests.media.transcode_env import Theatre, faults_of, numbers_of, play
from tests.media.transcode_env import small as wishes

X264 = {"x264-params": "keyint=25:min-keyint=25:scenecut=0:bframes=2:b-adapt=0"}
FORMATS = {"ts": "mpegts", "mkv": "matroska", "flv": "flv"}
WRAP = Fraction(1 << 33, 90_000)  # seconds until the clock of a transport stream begins again


def small(format: str, **differs: object) -> Film:
    given = {"shots": (Shot(count=50, size=(128, 72)),), "options": X264, **differs}
    return Film(format=format, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("start", [Fraction(13 * 3600), WRAP - 1], ids=["after 13 h", "before the clock wraps"])
@pytest.mark.parametrize("suffix", FORMATS)
def test_a_clock_that_does_not_begin_at_zero_makes_no_film_longer(suffix: str, start: Fraction, tmp_path: Path) -> None:
    path = shoot(tmp_path / f"film.{suffix}", small(FORMATS[suffix], start=round(start * 100) / Fraction(100)))

    seen = look(path)

    bounds = SourceBounds(seconds=5)
    check_source(probed(path), bounds)
    check_source(seen.source, bounds)
    check_index(seen.index, bounds)
    assert seen.index.length == 2
    assert seen.numbers() == list(range(50))
    [sound] = seen.sounds.values()
    assert abs(sound.start * sound.time_base - seen.index.start) < Fraction(3, 100)


def test_one_picture_is_no_film_of_a_thousand_frames_a_second(tmp_path: Path) -> None:
    film = small("webm", shots=(Shot(count=1, size=(128, 72)),), codec="libvpx-vp9", options={}, voices=())

    seen = look(without_default_duration(shoot(tmp_path / "film.webm", film)))

    assert seen.source.picture is not None
    assert seen.source.picture.rate is None
    assert (seen.index.shown_rate, seen.numbers()) == (25, [0])


# --- a clock that jumps ------------------------------------------------------------------------------------------

PART = 75  # frames: three seconds


def joined(folder: Path, *starts: int, voices: tuple[Voice, ...] = (Voice(),), late: bool = False) -> Path:
    """Parts of one film behind each other in one transport stream, each on a clock of its own."""
    path = folder / "joined.ts"
    with path.open("wb") as out:
        for nth, start in enumerate(starts):
            shots = (Shot(count=PART, size=(128, 72), first=nth * PART),)
            part = shoot(folder / f"part{nth}.ts", small("mpegts", shots=shots, start=Fraction(start), voices=voices))
            out.write((tuned_in_late()(part) if late and nth else part).read_bytes())
    return path


JUMPS = {
    "forward": (100, 9_100),
    "back": (100, 60),
    "back to before the start": (1_000, 20),
    "twice": (100, 9_100, 50),
    "after 13 h": (50_000, 100),
}


@pytest.mark.parametrize("starts", JUMPS.values(), ids=JUMPS)
def test_where_the_clock_jumps_pictures_and_sound_go_on_together(starts: tuple[int, ...], tmp_path: Path) -> None:
    seen = look(joined(tmp_path, *starts))

    assert seen.numbers() == list(range(len(starts) * PART))
    assert seen.index.rate == 25
    assert seen.damaged == 0
    assert len([note for note in seen.notes if "the clock jumps" in note]) == len(starts) - 1
    # Each part has a burst at each of its seconds: each must be heard where its frame is seen.
    assert heard_at(seen) == pytest.approx([float(second) for second in range(3 * len(starts))], abs=0.025)


def test_a_part_that_begins_between_keyframes_begins_at_the_first_one(tmp_path: Path) -> None:
    seen = look(joined(tmp_path, 100, 9_100, late=True))

    assert seen.numbers() == [*range(PART), *range(PART + 25, 2 * PART)]
    assert seen.index.rate == 25
    # The second part begins with its second number 1.
    assert heard_at(seen) == pytest.approx([0, 1, 2, 3, 4], abs=0.025)


@pytest.mark.parametrize("suffix", ["ts", "flv"])
def test_a_clock_that_jumps_between_two_keyframes_costs_no_picture(suffix: str, tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.mkv", small("matroska", shots=(Shot(count=PART, size=(128, 72)),)))

    seen = look(leapt(film, tmp_path / f"leapt.{suffix}", at=Fraction(17, 10), by=Fraction(9_000)))

    assert seen.numbers() == list(range(PART))
    assert seen.index.rate == 25
    assert heard_at(seen) == pytest.approx([0, 1, 2], abs=0.025)


def leapt(path: Path, to: Path, at: Fraction, by: Fraction) -> Path:
    """The same film on a clock that leaps at this second; nothing is missing."""
    with av.open(str(path)) as source, av.open(str(to), "w", format=FORMATS[to.suffix[1:]]) as out:
        copies = {one.index: out.add_stream_from_template(one) for one in source.streams}
        for packet in source.demux():
            if packet.size == 0:
                continue
            dts = packet.dts if packet.dts is not None else packet.pts
            if dts * packet.time_base >= at:
                packet.pts, packet.dts = (time + round(by / packet.time_base) for time in (packet.pts, dts))
            packet.stream = copies[packet.stream_index]
            out.mux(packet)
    return to


@pytest.mark.parametrize("pid", [0x100, 0x101], ids=["picture", "sound"])
def test_one_wrong_time_moves_nothing(pid: int, tmp_path: Path) -> None:
    film = shoot(tmp_path / "film.ts", small("mpegts", shots=(Shot(count=PART, size=(128, 72)),)))

    seen = look(with_wrong_time(pid, 8, 3600)(film))

    assert seen.numbers() == list(range(PART))
    assert seen.index.length == 3
    assert heard_at(seen) == pytest.approx([0, 1, 2], abs=0.025)


def test_a_pause_of_the_picture_is_no_jump_while_the_sound_goes_on(tmp_path: Path) -> None:
    times = (*range(25), *range(400, 425))
    film = small("mpegts", times=times, voices=(Voice(),), start=Fraction(10))

    seen = look(shoot(tmp_path / "film.ts", film))

    assert not [note for note in seen.notes if "the clock jumps" in note]
    assert seen.index.length == 17


@pytest.mark.parametrize(("pauses", "length"), [(1, 4), (9, 184)])
def test_a_screen_recording_keeps_its_pauses_and_a_broadcast_does_not(pauses: int, length: int, tmp_path: Path) -> None:
    times = tuple(n + 500 * min(n // 10, pauses) for n in range(100))

    seen = look(
        shoot(tmp_path / "film.ts", small("mpegts", shots=(Shot(count=100, size=(128, 72)),), times=times, voices=()))
    )

    assert seen.index.length == length
    assert set(seen.numbers()) == set(range(100))


def test_sound_without_pictures_goes_on_where_its_clock_jumps(tmp_path: Path) -> None:
    path = tmp_path / "joined.ts"
    with path.open("wb") as out:
        for nth, start in enumerate((100, 9_100)):
            voices = (Voice(codec="mp2", length=Fraction(2)), Voice(codec="mp2", length=Fraction(2)))
            part = shoot(
                tmp_path / f"part{nth}.ts", Film(format="mpegts", shots=(), start=Fraction(start), voices=voices)
            )
            out.write(part.read_bytes())

    found = probed(path)
    told, copy = remuxed(path, tmp_path)

    assert not found.seekable
    assert len(told.result["leaps"]) == 1
    assert probed(copy).seekable
    assert [round((one.end - one.start) * one.time_base, 1) for one in scanned(copy, tmp_path).sounds] == [4, 4]


def test_a_recording_that_was_cut_and_joined_is_published_with_warnings(tmp_path: Path) -> None:
    path = joined(tmp_path, 100, 9_100)
    tuned_in_late(Fraction(1, 20))(path)

    async def story(house: Theatre) -> None:
        job = await house.completed(wishes(path, ladder=[{"height": 90, "kbps": 80}]))

        warnings = (await progress_of(house.views, job.id)).warnings
        assert [warning.split(":")[0].split(" by ")[0] for warning in warnings] == [
            "the clock jumps forward",
            "the source begins between two keyframes",
        ]
        folder = await house.exported(job.id)
        assert faults_of(folder, tmp_path / "s") == []
        numbers = next(iter(numbers_of(folder).values()))
        held = numbers.count(25) - 1  # while there is sound, and no picture yet
        assert numbers[held:] == list(range(25, 2 * PART))
        assert 0 < held < 25

    play(story, tmp_path)


def test_a_clock_that_jumps_back_makes_no_film_too_long(tmp_path: Path) -> None:
    """FFmpeg takes a clock that is earlier than at the start for one that has wrapped: 26 hours."""
    path = joined(tmp_path, *JUMPS["back to before the start"])

    async def story(house: Theatre) -> None:
        job = await house.completed(wishes(path, ladder=[{"height": 90, "kbps": 80}]))

        [warning] = (await progress_of(house.views, job.id)).warnings
        assert warning.startswith("the clock jumps back")
        folder = await house.exported(job.id)
        assert faults_of(folder, tmp_path / "s") == []
        assert next(iter(numbers_of(folder).values())) == list(range(2 * PART))

    play(story, tmp_path)


@pytest.mark.parametrize("starts", JUMPS.values(), ids=JUMPS)
def test_no_jump_is_refused_for_its_length(starts: tuple[int, ...], tmp_path: Path) -> None:
    check_source(probed(joined(tmp_path, *starts)), SourceBounds(seconds=len(starts) * 3 + 1))


def heard_at(seen: Timeline) -> list[float]:
    """When bursts are heard, in seconds after the first picture."""
    found: list[float] = []
    with av.open(str(seen.path)) as film:
        for frame in film.decode(audio=0):
            assert frame.pts is not None
            assert frame.time_base is not None
            at = float(frame.pts * frame.time_base - seen.index.start)
            if loudness(frame) > 0.2 and (not found or at > found[-1] + 0.5):
                found.append(at)
    return found


def loudness(frame: av.AudioFrame) -> float:
    samples = array("f", bytes(frame.planes[0]))[: frame.samples]
    return max(map(abs, samples))


# --- a recorder that is switched on in mid-film ------------------------------------------------------------------

X264_OPEN = {"x264-params": "keyint=25:min-keyint=25:scenecut=0:bframes=2:b-adapt=0:open-gop=1"}
X265_OPEN = {"x265-params": "log-level=none:pools=1:frame-threads=1:keyint=24:min-keyint=24:scenecut=0:bframes=3"}
BROADCASTS = {
    "h264": ({"options": X264}, 25),
    "h264 with open GOPs": ({"options": X264_OPEN}, 25),
    "hevc with open GOPs": ({"codec": "libx265", "options": X265_OPEN}, 24),
    "mpeg2": (
        {"codec": "mpeg2video", "options": {}, "settings": {"bit_rate": 800_000, "max_b_frames": 2, "gop_size": 15}},
        15,
    ),
}


@pytest.mark.parametrize("name", BROADCASTS)
def test_a_recording_begins_with_its_first_keyframe(name: str, tmp_path: Path) -> None:
    differs, first = BROADCASTS[name]
    film = small("mpegts", **{"shots": (Shot(count=60, size=(128, 72)),), **differs})  # type: ignore[arg-type]

    seen = look(tuned_in_late()(shoot(tmp_path / "film.ts", film)))

    assert seen.numbers() == list(range(first, 60))
    assert seen.damaged == 0
    assert 0 < seen.undecodable < first


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_film_that_lost_its_first_keyframe_begins_with_the_next(suffix: str, tmp_path: Path) -> None:
    options = {"x264-params": "keyint=25:min-keyint=25:scenecut=0:bframes=0"}
    film = small({"mp4": "mp4", "mkv": "matroska"}[suffix], voices=(), options=options)

    seen = look(without_first_packet(shoot(tmp_path / f"film.{suffix}", film)))

    assert seen.numbers() == list(range(25, 50))
    assert seen.undecodable == 24
