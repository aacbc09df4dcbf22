"""kill -9 of a worker, its media child or both: the film comes out whole, and what was recorded is not made again."""

from pathlib import Path

from tests.media.kills import FRAMES, check, killed_again_and_again, long_film
from tests.media.transcode_env import Theatre, play
from tests.support.thorough import thorough


def survive(folder: Path, *, kills: int, seed: int, frames: int) -> None:
    film = long_film(folder / "film.mp4", frames)

    async def story(house: Theatre) -> None:
        job_id, killer = await killed_again_and_again(house, film, kills=kills, seed=seed)

        await check(house, job_id, killer, frames)
        outcomes = {outcome for _, outcome in await house.attempts(job_id)}
        assert outcomes == {"done", "lost", "failed"}

    play(story, folder, working=False)


def test_a_film_whose_makers_are_each_killed_once_comes_out_whole(tmp_path: Path) -> None:
    survive(tmp_path, kills=3, seed=2, frames=FRAMES // 2)


@thorough
def test_a_film_whose_makers_are_killed_six_times_comes_out_whole(tmp_path: Path) -> None:
    survive(tmp_path, kills=6, seed=1, frames=FRAMES)
