"""How long something took: work and pauses are told apart."""

from typing import Any

import pytest

from telecine.apps.transcode.cli.transcode_progress import _figures
from telecine.cli.format import took
from telecine.facts import MINUTE, SECOND

SUMMARY: dict[str, Any] = {
    "file": "film.mp4", "how": "continued", "seconds": 40.0, "speed": 0.53, "cpu_seconds": 43.8
}  # fmt: skip


@pytest.mark.parametrize(
    ("elapsed", "worked", "words"),
    [
        (140 * SECOND, 75 * SECOND, "2 min 20 s (1 min 15 s of work)"),
        (76 * SECOND, 75 * SECOND, "1 min 16 s"),
        (9 * SECOND, 5 * SECOND, "9.0 s"),
        (60 * MINUTE, 58 * MINUTE, "1 h"),
        (MINUTE, 0, "1 min"),  # nothing is known of its attempts any more
    ],
)
def test_a_pause_is_told_if_it_matters(elapsed: int, worked: int, words: str) -> None:
    assert took(elapsed, worked) == words


def test_the_summary_of_a_film_says_what_was_work_and_what_passed() -> None:
    carried_on = _figures({**SUMMARY, "wall_seconds": 75.0, "elapsed_seconds": 140.0})
    straight = _figures({**SUMMARY, "wall_seconds": 75.0, "elapsed_seconds": 76.0})

    assert carried_on.startswith("40 s of film in 1 min 15 s of work (2 min 20 s from start to end), 0.53×")
    assert straight.startswith("40 s of film in 1 min 15 s, 0.53×")
