"""A real browser plays what the transcode flow made, and what it is still making."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from telecine.media.hls.lint import check_folder
from tests.browser import rig
from tests.browser.rig import Played, assert_without_gap
from tests.media.make_video import Film, Shot, shoot
from tests.media.transcode_env import Theatre, play, small, until
from tests.support.thorough import thorough

Source = Callable[[str], Path]
LENGTH = 85 / 25


@pytest.fixture(scope="module")
def played(finished: Callable[[Path], None], tmp_path_factory: pytest.TempPathFactory) -> Played:
    seen: list[Played] = []

    async def story(house: Theatre) -> None:
        seen.append(await asyncio.to_thread(rig.play, await house.exported(1)))

    finished(folder := tmp_path_factory.mktemp("house"))
    play(story, folder, working=False)
    return seen[0]


def test_a_transcoded_film_plays_without_an_error_or_a_gap(played: Played) -> None:
    assert played.done["errors"] == []
    assert played.done["first"]["duration"] == pytest.approx(LENGTH, abs=0.001)
    assert_without_gap(played.done["first"], LENGTH)


def test_it_plays_on_after_a_seek_to_either_side_of_every_border(played: Played) -> None:
    assert played.done["seeks"] == 2 * 4
    assert played.done["frozen"] == []


def test_it_switches_rungs_both_ways_without_a_gap(played: Played) -> None:
    assert [one["height"] for one in played.done["shown"]] == [90, 180, 90]
    for one in played.done["shown"]:
        assert_without_gap(one, LENGTH)


def test_rungs_that_change_with_every_segment_play_through(played: Played) -> None:
    through = played.done["played"]

    assert len({level for _, level in through["loaded"]}) == 2
    assert through["ended"]
    assert_without_gap(through, LENGTH)


def test_what_is_published_plays_from_where_it_lies(source: Source, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        await house.completed(small(source("mkv-three-languages")))
        store = house.folder / "artifacts"
        [master] = [str(path.relative_to(store)) for path in store.rglob("master.m3u8")]
        seen = await asyncio.to_thread(rig.play, store, "look", master=master)

        assert check_folder(store, master) == []
        assert seen.done["errors"] == []
        assert_without_gap(seen.done, LENGTH)

    play(story, tmp_path)


@thorough
def test_a_film_is_watched_while_it_is_encoded(tmp_path: Path) -> None:
    """The encoder is much quicker than a viewer, so it gets one slot and a slow preset. By a server's link the same is
    watched in tests/api/test_playback.py."""
    frames = 200
    film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=frames),)))
    listed: list[int] = []

    async def story(house: Theatre) -> None:
        job_id = await house.begun(small(film, preset="veryslow", chunk_segments=1))
        showing = house.showing(job_id)

        async def shown() -> int:
            listed.append(await showing.update())
            return listed[-1]

        async def grow() -> None:
            while (await house.views.job(job_id)).status not in ("completed", "failed"):
                await shown()
                await asyncio.sleep(0.1)
            await showing.finish()

        await until(shown, "the first segment can be watched")
        growing = asyncio.create_task(grow())
        seen = await asyncio.to_thread(rig.play, house.folder / "out", "watch")
        await growing
        assert seen.opened["time"] < 1
        assert seen.opened["duration"] < frames / 25
        assert seen.done["ended"]
        assert seen.done["time"] == pytest.approx(frames / 25, abs=0.03)
        # Should this machine be slower than a viewer, it waits, which is no fault; test_browser.py demands no stall.
        assert not [error for error in seen.done["errors"] if error["fatal"]]
        assert_without_gap(seen.done, frames / 25)

    play(story, tmp_path, slots=1)

    grown = [count for count in listed if count]
    assert grown[0] < 8
    assert grown == sorted(grown)
