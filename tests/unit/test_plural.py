"""Counts in sentences."""

import pytest

from telecine.plural import counted


@pytest.mark.parametrize(
    ("number", "words", "told"),
    [
        (0, ("file",), "0 files"),
        (1, ("file",), "1 file"),
        (2, ("file",), "2 files"),
        (12_000, ("file",), "12,000 files"),
        (1, ("delivery", "deliveries"), "1 delivery"),
        (3, ("delivery", "deliveries"), "3 deliveries"),
    ],
)
def test_a_count_takes_the_right_form_of_its_noun(number: int, words: tuple[str, ...], told: str) -> None:
    assert counted(number, *words) == told
