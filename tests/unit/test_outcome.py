"""What a handler returns is looked at before it is said."""

from typing import Any

import pytest

from telecine.facts import Done, Failed, Piece
from telecine.worker.handlers.outcome import of_return


@pytest.mark.parametrize("pieces", ["Ada", b"Ada", {"Ada": 1}, {"Ada"}, 3, None])
def test_a_plan_that_is_no_list_fails_for_good(pieces: Any) -> None:
    outcome = of_return(Done(plan={"greet": pieces}))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.permanent) == ("bad_plan", True)
    assert outcome.message == "the plan for 'greet' is no list: give one input for each task"


@pytest.mark.parametrize("pieces", [["Ada"], ("Ada", "Grace"), range(3), [Piece(input="Ada")], []])
def test_a_plan_of_several_inputs_is_taken_as_it_is(pieces: Any) -> None:
    assert of_return(Done(plan={"greet": pieces})) == Done(plan={"greet": pieces})


def test_a_result_that_is_nested_too_deeply_fails_for_good() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    outcome = of_return(Done(result=deep))

    assert isinstance(outcome, Failed)
    assert (outcome.code, outcome.permanent) == ("bad_return", True)
