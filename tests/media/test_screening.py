"""Lists for many viewers: made once, and never out of a memory that is too old."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from telecine.apps.transcode.videos.playlist_cache import PlaylistCache, RecentValues
from telecine.errors import NotFound
from telecine.wiring import open_artifacts
from tests.media.transcode_env import Theatre, play

Finished = Callable[[Path], None]


def test_a_preview_that_nobody_looked_at_for_a_while_is_read_anew(finished: Finished, tmp_path: Path) -> None:
    async def story(house: Theatre) -> None:
        job = await house.ended(1)
        clock = [0.0]
        screening = PlaylistCache(house.views, open_artifacts(house.parts.settings), lambda: clock[0])
        first = await screening.preview(job.id, "processing")

        # Another attempt has kept the same pieces, a while ago.
        await house.sql("update artifact set token = token + 7, created_at = created_at - 60000 where stage = 'video'")
        clock[0] = 0.4
        same = await screening.preview(job.id, "processing")
        clock[0] = 60.0
        anew = await screening.preview(job.id, "processing")
        whole = await screening.preview(job.id, "completed")

        name = f"preview/{job.id}/180p/index.m3u8"
        assert same == first
        assert b"-1.m4s" in first[name]
        assert b"-1.m4s" not in anew[name]
        assert b"-8.m4s" in anew[name]
        assert (b"#EXT-X-ENDLIST" in anew[name], b"#EXT-X-ENDLIST" in whole[name]) == (False, True)
        with pytest.raises(NotFound):
            await screening.preview(job.id + 1, "processing")
        with pytest.raises(NotFound):
            await screening.version(99, 1)

    finished(tmp_path)
    play(story, tmp_path)


def test_many_who_want_the_same_wait_for_one_who_makes_it() -> None:
    made: list[int] = []

    async def story() -> None:
        known: RecentValues[int, str] = RecentValues(2)
        begun = asyncio.Event()

        async def make(key: int) -> str:
            made.append(key)
            begun.set()
            await asyncio.sleep(0)
            if key < 0:
                raise NotFound("no")
            return str(key)

        leaving = asyncio.create_task(known.get(1, make))
        await begun.wait()
        leaving.cancel()
        assert await asyncio.gather(*(known.get(1, make) for _ in range(5))) == ["1"] * 5
        for key in (2, 3, 1):
            await known.get(key, make)
        for _ in range(2):
            with pytest.raises(NotFound):
                await known.get(-1, make)

    asyncio.run(story())

    assert made == [1, 2, 3, 1, -1, -1]
