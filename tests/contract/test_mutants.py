"""Five guards are taken away; each is missed by a test. All the others are tried by `make proof`."""

import pytest

from proof.mutants import MUTANTS, QUICK, Mutant, find, judge


@pytest.mark.parametrize("mutant", QUICK, ids=lambda mutant: mutant.name)
def test_a_guard_that_is_taken_away_is_missed(mutant: Mutant, postgres_url: str) -> None:
    verdict = judge(mutant, postgres_url)

    assert verdict.word == "killed", verdict.output


def test_every_mutant_still_finds_its_guard() -> None:
    assert len(MUTANTS) >= 25
    for mutant in MUTANTS:
        assert find(mutant)


def test_mutants_have_names_of_their_own() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
