"""kill -9 of a worker, its media child or both: the film comes out whole, and what was recorded is not made again."""

from pathlib import Path

from tests.media.kills import check, killed_again_and_again, long_film
from tests.media.transcode_env import Theatre, play


def test_a_film_whose_makers_are_killed_six_times_comes_out_whole(tmp_path: Path) -> None:
    film = long_film(tmp_path / "film.mp4")

    async def story(house: Theatre) -> None:
        job_id, killer = await killed_again_and_again(house, film, kills=6, seed=1)

        await check(house, job_id, killer)
        outcomes = {outcome for _, outcome in await house.attempts(job_id)}
        assert outcomes == {"done", "lost", "failed"}

    play(story, tmp_path, working=False)
