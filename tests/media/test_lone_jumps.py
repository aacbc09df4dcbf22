"""A clock that jumps in one stream alone, or while another stream pauses, makes no film longer."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import pytest

from telecine.apps.transcode.stages.fetch import clock_warnings
from telecine.apps.transcode.videos.progress import progress_of
from telecine.media.child.timing.leap_report import MAX_TOLD
from telecine.media.timeline.extent import Extent, extent_of
from telecine.media.timeline.grid import timing_for
from tests.media.corrupt_ts import with_leap
from tests.media.make_video import Shot, shoot
from tests.media.test_clocks import heard_at, joined
from tests.media.test_clocks import small as film_of
from tests.media.test_remux import remuxed
from tests.media.timeline import Timeline, look
from tests.media.transcode_env import Theatre, faults_of, numbers_of, play, small

START = Fraction(2_000)  # when the film begins on its clock: there is time to go back
DAY = Fraction(86_400)
PICTURE, SOUND = 0x100, 0x101
Leap = tuple[Fraction, int, tuple[int, ...]]  # from this second of the film on, by so many seconds, these streams


def recorded(folder: Path, seconds: int, *leaps: Leap, silent: range = range(0)) -> Path:
    """A transport stream whose clocks leap, and whose sound is missing around these seconds."""
    film = shoot(folder / "film.mkv", film_of("matroska", shots=(Shot(count=25 * seconds, size=(128, 72)),)))
    path = folder / "film.ts"
    with av.open(str(film)) as source, av.open(str(path), "w", format="mpegts") as out:
        copies = {one.index: out.add_stream_from_template(one) for one in source.streams}
        for packet in source.demux():
            if packet.size == 0 or (packet.stream.type == "audio" and round(packet.pts * packet.time_base) in silent):
                continue
            offset = round(START / packet.time_base)
            packet.pts, packet.dts = packet.pts + offset, None if packet.dts is None else packet.dts + offset
            packet.stream = copies[packet.stream_index]
            out.mux(packet)
    for at, by, streams in leaps:
        with_leap(START + at, by, *streams)(path)
    return path


def whole(seen: Timeline) -> Extent:
    return extent_of(seen.index, timing_for(seen.index), list(seen.sounds.values()), DAY)


BOTH = (PICTURE, SOUND)
JUMPS: dict[str, tuple[int, tuple[Leap, ...], range]] = {
    "sound forward": (6, ((Fraction(3), 7_200, (SOUND,)),), range(0)),
    "sound back": (6, ((Fraction(3), -1_000, (SOUND,)),), range(0)),
    "sound forward, with a pause": (12, ((Fraction(5), 7_200, (SOUND,)),), range(3, 9)),
    "sound back, with a pause": (12, ((Fraction(5), -1_000, (SOUND,)),), range(3, 9)),
    "sound there and back": (8, ((Fraction(3), 7_200, (SOUND,)), (Fraction(7_206), -7_200, (SOUND,))), range(0)),
    "sound begins elsewhere": (6, ((Fraction(-9), 7_200, (SOUND,)), (Fraction(7_201), -7_200, (SOUND,))), range(0)),
    "both forward, the sound pauses": (14, ((Fraction(5), 7_200, BOTH),), range(3, 11)),
    "both back, the sound pauses": (14, ((Fraction(5), -1_000, BOTH),), range(3, 11)),
    "both back by less than the pause": (14, ((Fraction(5), -6, BOTH),), range(3, 11)),
    "both back by more than the pause": (14, ((Fraction(5), -10, BOTH),), range(3, 11)),
    "picture forward": (6, ((Fraction(3), 7_200, (PICTURE,)),), range(0)),
    "picture back": (6, ((Fraction(3), -1_000, (PICTURE,)),), range(0)),
    "picture, then both": (8, ((Fraction(5), 100, BOTH), (Fraction(3), 7_200, (PICTURE,))), range(0)),
}


@pytest.mark.parametrize("name", JUMPS)
def test_no_jump_makes_the_film_longer_or_moves_its_sound(name: str, tmp_path: Path) -> None:
    seconds, leaps, silent = JUMPS[name]

    seen = look(recorded(tmp_path, seconds, *leaps, silent=silent))

    assert seen.numbers() == list(range(25 * seconds))
    assert abs(whole(seen).span.length - seconds) < Fraction(1, 20)
    assert any(" jumps " in note for note in seen.notes)
    heard = [float(second) for second in range(seconds) if second not in silent]
    assert heard_at(seen) == pytest.approx(heard, abs=0.05 if silent else 0.025)


def test_a_long_pause_of_the_sound_is_no_jump(tmp_path: Path) -> None:
    seen = look(recorded(tmp_path, 24, silent=range(2, 22)))

    assert seen.notes == ()
    assert heard_at(seen) == pytest.approx([0, 1, 22, 23], abs=0.025)


@pytest.mark.parametrize("name", ["sound forward", "both forward, the sound pauses"])
def test_such_a_film_is_published_with_a_warning_and_as_long_as_it_is(name: str, tmp_path: Path) -> None:
    seconds, leaps, silent = JUMPS[name]
    path = recorded(tmp_path, seconds, *leaps, silent=silent)

    async def story(house: Theatre) -> None:
        job = await house.completed(small(path, ladder=[{"height": 90, "kbps": 80}]))

        [warning] = (await progress_of(house.views, job.id)).warnings
        whose = "the clock" if len(leaps[0][2]) == 2 else "the clock of stream 1 alone"
        assert warning.startswith(f"{whose} jumps forward by 7200.0 s where the film is {float(leaps[0][0]):.1f} s old")
        folder = await house.exported(job.id)
        assert faults_of(folder, tmp_path / "s") == []
        numbers = next(iter(numbers_of(folder).values()))
        assert numbers[: 25 * seconds] == list(range(25 * seconds))
        assert len(numbers) <= 25 * seconds + 1

    play(story, tmp_path)


def test_many_jumps_are_counted_and_only_the_first_ones_told(tmp_path: Path) -> None:
    starts = [100 + 1_000 * nth for nth in range(8)]

    told, _ = remuxed(joined(tmp_path, *starts), tmp_path)

    assert told.result["leap_count"] == 7
    assert len(told.result["leaps"]) == MAX_TOLD
    assert [note for note in told.notes if "jumps" in note] == [
        *told.result["leaps"],
        "the clock jumps 7 times in all",
    ]
    [warning] = clock_warnings(told.result["leaps"], told.result["leap_count"])
    assert warning == f"{told.result['leaps'][0]}, and 6 more times; the parts were joined"
