"""The exhaustive search of `make test`, with more of everything."""

import pytest

from tests.exhaustive import Bounds, Machine, search

SEARCHES = {
    "two workers that ask twice": Bounds(workers=2, claims=2, tokens=3, generations=2),
    "five leases, three attempts": Bounds(workers=1, claims=4, tokens=5, generations=1, attempts=3),
    "a chain of three tasks": Bounds(stages=3, workers=1, claims=3, tokens=2, generations=2),
    "three workers": Bounds(workers=3, claims=1, tokens=3, generations=2),
}


@pytest.mark.parametrize("bounds", SEARCHES.values(), ids=SEARCHES)
def test_no_history_breaks_an_invariant_and_every_job_can_end(bounds: Bounds) -> None:
    found = search(Machine(bounds))

    print(f"{found.worlds:,} worlds, {found.steps:,} steps")
    assert found.worlds > 20_000
    assert found.stuck == 0
