"""JSON for the database: as the standard library writes it, and nothing is replaced unawares."""

import json
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from telecine.json_text import exact

PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
VALUES = st.recursive(PLAIN, lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner)))


class Size(IntEnum):
    LARGE = 3


@given(st.one_of(st.dictionaries(st.text(), PLAIN), VALUES))
def test_it_is_what_the_standard_library_writes(value: Any) -> None:
    assert exact(value) == json.dumps(value)


@pytest.mark.parametrize("value", [{1: "a"}, {None: 1, True: 2}, {"size": Size.LARGE}, {"pair": (1, 2)}, {}])
def test_what_is_nearly_json_is_written_as_ever(value: Any) -> None:
    assert exact(value) == json.dumps(value)


def inside_itself() -> Any:
    value: dict[str, Any] = {"large": "x" * 100_000}
    value["again"] = [value]
    return value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"rate": float("nan")}, "Out of range float"),
        ({"rate": [float("inf")]}, "Out of range float"),
        ({"at": object()}, "not JSON serializable"),
        ({(1, 2): 3}, "keys must be"),
        (inside_itself(), "Circular reference"),
    ],
)
def test_what_is_not_json_is_refused_and_harms_nobody_else(value: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=words):
        exact(value)

    assert exact({"a": 1}) == '{"a": 1}'
