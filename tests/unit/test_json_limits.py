"""JSON from outside is counted before it is parsed: how deep, how many values."""

import json
import tracemalloc

import pytest

from telecine import Done, Failed
from telecine.errors import BadSpec
from telecine.facts import Piece
from telecine.json_limits import MAX_DEPTH, MAX_PIECES, MAX_VALUES, check_json
from telecine.worker.handlers.outcome import of_return


@pytest.mark.parametrize("text", ["[" * 65, "[" * 65 + "]" * 65, '{"a":' * 65 + "1" + "}" * 65, "[" * 90_000])
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    with pytest.raises(BadSpec, match="the body is nested too deeply: at most 64 levels are taken"):
        check_json(text, "the body")


@pytest.mark.parametrize("item", ["[]", "{}", "1", '{"a":1}'])
def test_too_many_values_are_refused(item: str) -> None:
    with pytest.raises(BadSpec, match="holds too many values: at most 100,000 are taken"):
        check_json(f"[{','.join([item] * (MAX_VALUES + 1))}]", "the body")


@pytest.mark.parametrize(
    "value",
    [
        "[{" * 500,
        ["[{,\\" * 500 + '"'] * 100,
        ["a,b"] * 30_000,
        list(range(MAX_VALUES - 1)),
        {"]": ["}" * 200, {'"': '\\"['}]},
    ],
)
def test_what_stands_in_strings_does_not_count(value: object) -> None:
    check_json(json.dumps(value), "the body")
    check_json(json.dumps(value).encode(), "the body")


def test_as_deep_as_allowed_is_taken() -> None:
    check_json("[" * MAX_DEPTH + "]" * MAX_DEPTH, "the body")


def test_a_megabyte_of_brackets_is_refused() -> None:
    with pytest.raises(BadSpec, match="the spec is nested too deeply"):
        check_json("[" * (1 << 20), "the spec")


@pytest.mark.parametrize(
    "text",
    ["[" * (4 << 20), "[" * 65 + '"' + "\\n" * (2 << 20) + '"', "[" * 65 + '""' * (2 << 20)],
    ids=["brackets", "escapes", "strings"],
)
def test_the_check_itself_takes_little_memory(text: str) -> None:
    data = text.encode()
    tracemalloc.start()

    with pytest.raises(BadSpec):
        check_json(data, "the body", max_values=1 << 30)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 3 * len(data)


def test_more_closed_than_opened_is_refused() -> None:
    with pytest.raises(BadSpec, match="it closes more brackets than it opens"):
        check_json("[]" * 65 + "]" * (1 << 20), "the body")


def test_a_plan_of_too_many_pieces_is_the_handlers_failure() -> None:
    outcome = of_return(Done(plan={"cut": [1] * MAX_PIECES, "again": [Piece()]}))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.permanent) == ("bad_plan", True)
    assert "the plan has 50,001 pieces, and at most 50,000 are taken" in outcome.message


@pytest.mark.parametrize("depth", [100, 100_000])
def test_a_result_that_is_nested_too_deeply_is_the_handlers_failure(depth: int) -> None:
    deep: list[object] = []
    for _ in range(depth):
        deep = [deep]

    outcome = of_return(Done(result=deep))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.permanent) == ("bad_return", True)
