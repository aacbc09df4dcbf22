"""Every guard is taken away once, and every time a test misses it."""

import pytest

from proof.mutants import MUTANTS, Mutant, judge


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_guard_that_is_taken_away_is_missed(mutant: Mutant, postgres_url: str) -> None:
    verdict = judge(mutant, postgres_url)

    assert verdict.word == "killed", verdict.output
