"""kill -9 of those who make films, at twenty random moments: nothing is lost, nothing is doubled."""

from pathlib import Path

import pytest

from tests.media.kills import check, killed_again_and_again, long_film
from tests.media.transcode_env import Theatre, play
from tests.support.postgres import fresh_schema

KILLS = 5


@pytest.mark.parametrize("seed", [2, 3, 4, 5])
def test_a_film_comes_out_whole_whoever_is_killed(tmp_path: Path, postgres_url: str, seed: int) -> None:
    film = long_film(tmp_path / "film.mp4")

    async def story(house: Theatre) -> None:
        job_id, killer = await killed_again_and_again(house, film, kills=KILLS, seed=seed)

        await check(house, job_id, killer)

    if seed % 2:
        play(story, tmp_path, working=False)
        return
    with fresh_schema(postgres_url) as url:
        play(story, tmp_path, working=False, database_url=url)
