"""How much is tried: a choice of it in `make test`, all of it in `make proof` (`proof/test_thorough.py`).

What is marked with `thorough` repeats a check that stays in `make test`, with more cases or a longer story. It is
left out, unless it is named on the command line or TELECINE_TEST_THOROUGH is set.
"""

import os
from collections.abc import Iterable
from typing import Any

import pytest

THOROUGH = "TELECINE_TEST_THOROUGH" in os.environ
thorough = pytest.mark.thorough


def some_of(cases: Iterable[Any], chosen: Iterable[Any]) -> list[Any]:
    """The cases for `parametrize`, of which all but the chosen ones are marked."""
    every, some = list(cases), list(chosen)
    unknown = [one for one in some if one not in every]
    assert not unknown, f"no such cases: {unknown}"
    return [one if one in some else pytest.param(one, marks=thorough) for one in every]
