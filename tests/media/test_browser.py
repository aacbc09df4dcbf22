"""A real browser plays what we publish, and what is still growing. The film is made by FFmpeg, the lists are ours.

How a film plays that is done is left to the proof: `test_browser_transcode.py` asks the same of one that we made.
"""

import re
from pathlib import Path

import pytest

from telecine.media.hls.export import HlsExport
from telecine.media.hls.recorded_film import Film
from tests.browser.rig import NotPlayed, Played, assert_without_gap, play
from tests.media.cmaf import TIMING, Shelf, a_real_film
from tests.support.films import upto
from tests.support.thorough import thorough

LENGTH = float(TIMING.frames / TIMING.rate)


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Shelf:
    return a_real_film(tmp_path_factory.mktemp("shelf"))


@pytest.fixture(scope="module")
def played(shelf: Shelf, tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp("film")
    with HlsExport(folder, "1") as export:
        export.finish(shelf.film, shelf.place)
    return play(folder)


@thorough
def test_a_published_film_plays_with_both_rungs(played: Played) -> None:
    assert [level["height"] for level in played.opened["levels"]] == [180, 240]
    assert played.opened["duration"] == pytest.approx(LENGTH, abs=0.001)
    assert played.opened["frames"]["decoded"] > 0


@thorough
def test_nothing_stalls_and_nothing_fails(played: Played) -> None:
    assert played.done["errors"] == []


@thorough
def test_all_of_it_is_buffered_without_a_gap(played: Played) -> None:
    assert_without_gap(played.done["first"], LENGTH)


@thorough
def test_it_plays_on_after_a_seek_to_either_side_of_every_border(played: Played) -> None:
    assert played.done["seeks"] == 2 * TIMING.segments
    assert played.done["frozen"] == []


@thorough
def test_it_switches_rungs_both_ways_without_a_gap(played: Played) -> None:
    shown = played.done["shown"]

    assert [(one["current"], one["height"]) for one in shown] == [(0, 180), (1, 240), (0, 180)]
    for one in shown:
        assert_without_gap(one, LENGTH)


@thorough
def test_rungs_that_change_with_every_segment_play_through_without_a_gap(played: Played) -> None:
    through = played.done["played"]

    levels = [level for _, level in sorted(through["loaded"])]
    assert levels in ([0, 1, 0, 1, 0], [1, 0, 1, 0, 1])
    assert through["ended"]
    assert_without_gap(through, LENGTH)


def test_a_film_is_watched_from_its_beginning_while_it_grows(shelf: Shelf, tmp_path: Path) -> None:
    export = HlsExport(tmp_path / "film", "1")
    export.update(upto(shelf.film, 2), shelf.place)
    listed, told = [2], []

    def grow(path: str) -> None:
        """Whoever asks for the last segment that is listed gets one more listed; after the last comes the end."""
        asked = re.search(r"240p/seg_(\d+)|180p/seg_(\d+)", path)
        if path.endswith("index.m3u8"):
            told.append(listed[-1])
        if asked and int(asked[1] or asked[2]) + 1 == listed[-1] <= TIMING.segments:
            listed.append(listed[-1] + 1)
            if listed[-1] > TIMING.segments:
                export.finish(shelf.film, shelf.place)
            else:
                export.update(upto(shelf.film, listed[-1]), shelf.place)

    with export:
        played = play(tmp_path / "film", "watch", asked=grow)

    assert listed == [2, 3, 4, 5, 6]
    assert told[0] == 2
    assert played.opened["time"] < 1  # not at the live edge
    assert played.opened["duration"] < LENGTH
    assert played.done["ended"]
    assert played.done["time"] == pytest.approx(LENGTH, abs=0.03)
    assert played.done["errors"] == []
    assert_without_gap(played.done, LENGTH)


@pytest.mark.parametrize("kept", ["videos", "audios"])
def test_a_film_without_sound_or_without_pictures_is_watched_to_its_end(
    shelf: Shelf, tmp_path: Path, kept: str
) -> None:
    film = Film(timing=shelf.film.timing, **{kept: getattr(shelf.film, kept)})
    with HlsExport(tmp_path / "film", "1") as export:
        export.finish(film, shelf.place)

    played = play(tmp_path / "film", "watch", rate=3)

    assert played.done["ended"]
    assert played.done["errors"] == []


def test_the_rig_sees_a_gap(shelf: Shelf, tmp_path: Path) -> None:
    folder = tmp_path / "film"
    with HlsExport(folder, "1") as export:
        export.finish(shelf.film, shelf.place)
    for video in shelf.film.videos:
        segment = folder / f"video/h264-{video.name}/seg_00002.m4s"
        half_a_second = video.pieces[2].fragments[0][1]
        segment.write_bytes(segment.read_bytes()[half_a_second:])

    with pytest.raises(NotPlayed, match="in vain until all is buffered"):
        play(folder, "look", seconds=5)


def test_the_rig_says_why_a_film_does_not_play(tmp_path: Path) -> None:
    with pytest.raises(NotPlayed, match="manifestLoadError"):
        play(tmp_path)
