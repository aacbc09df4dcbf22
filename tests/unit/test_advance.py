"""What follows when stages of a job end: `advance`, rule by rule."""

from typing import Any

from telecine.facts import State, Status
from telecine.graph import Advance, Graph, StageRow, advance
from tests.support.builders import a_graph, a_stage

LINE = a_graph(a_stage("cut"), a_stage("join", "cut"), a_stage("send", "join", phase=Status.UPLOADING_OUTPUTS))
FORK = a_graph(
    a_stage("plan"), a_stage("cut", "plan"), a_stage("note", "plan", optional=True), a_stage("join", "cut note")
)
FANS = a_graph(
    a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("dub", "cut", fan_out=True), a_stage("join", "dub")
)


def stage(number: int, state: State = State.NEW, **changes: int) -> StageRow:
    """A stage of one task; a final or skipped one has nothing left."""
    plain = {"waits": 0, "total": 1, "remaining": 0 if state.is_final else 1}
    return StageRow(number=number, state=state, **{**plain, **changes})


def after(graph: Graph, *rows: StageRow, halted: bool = False, cancelled: bool = False, **more: Any) -> Advance:
    return advance(graph, rows, halted=halted or cancelled, cancelled=cancelled, **more)


def states(result: Advance) -> list[str]:
    return [row.state.value for row in result.stages]


def test_a_new_job_opens_what_needs_nothing() -> None:
    result = after(LINE, stage(0), stage(1, waits=1), stage(2, waits=1))

    assert result.opened == (0,)
    assert states(result) == ["ready", "new", "new"]
    assert result.status == Status.PROCESSING


def test_a_stage_with_nothing_left_is_done_and_opens_the_next() -> None:
    result = after(LINE, stage(0, State.READY, remaining=0), stage(1, waits=1), stage(2, waits=1))

    assert states(result) == ["done", "ready", "new"]
    assert result.opened == (1,)


def test_a_stage_with_tasks_left_opens_nothing() -> None:
    result = after(LINE, stage(0, State.READY, total=3, remaining=1), stage(1, waits=1), stage(2, waits=1))

    assert result.opened == ()


def test_fan_in_waits_for_every_need() -> None:
    rows = [stage(0, State.DONE), stage(1, State.READY, remaining=0), stage(2, State.READY), stage(3, waits=2)]

    first = after(FORK, *rows)
    second = after(FORK, *first.stages[:2], stage(2, State.READY, remaining=0), first.stages[3])

    assert (first.opened, first.stages[3].waits) == ((), 1)
    assert (second.opened, second.stages[3].waits) == ((3,), 0)


def test_a_stage_opens_once() -> None:
    rows = after(LINE, stage(0, State.READY, remaining=0), stage(1, waits=1), stage(2, waits=1)).stages

    again = after(LINE, *rows)

    assert (again.opened, again.stages) == ((), rows)


def test_the_job_is_complete_when_every_stage_has_ended() -> None:
    result = after(LINE, stage(0, State.DONE), stage(1, State.SKIPPED), stage(2, State.READY, remaining=0))

    assert result.status is Status.COMPLETED


def test_the_status_is_the_lowest_phase_that_is_not_finished() -> None:
    result = after(LINE, stage(0, State.DONE), stage(1, State.READY, remaining=0), stage(2, waits=1))

    assert result.status is Status.UPLOADING_OUTPUTS


# -- Skip and stop ---------------------------------------------------------------------------------


def test_a_needless_stage_is_skipped_and_satisfies_the_next() -> None:
    rows = [stage(0, State.READY, remaining=0), stage(1, waits=1), stage(2, waits=1)]

    result = after(LINE, *rows, skip=frozenset({1}))

    assert states(result) == ["done", "skipped", "ready"]
    assert (result.skipped, result.opened) == ((1,), (2,))
    assert result.stages[1].remaining == 0


def test_a_stage_that_has_opened_is_not_skipped() -> None:
    rows = [stage(0, State.DONE), stage(1, State.READY), stage(2, waits=1)]

    result = after(LINE, *rows, skip=frozenset({0, 1}))

    assert states(result) == ["done", "ready", "new"]


def test_a_chain_that_is_stopped_completes() -> None:
    rows = [stage(0, State.READY, remaining=0), stage(1, waits=1), stage(2, waits=1)]

    result = after(LINE, *rows, skip=frozenset({1, 2}))

    assert result.status is Status.COMPLETED


def test_a_fan_out_to_nothing_is_skipped_and_so_is_what_it_would_have_planned() -> None:
    rows = [
        stage(0, State.READY, remaining=0),
        *(stage(n, waits=1, total=0, remaining=0) for n in (1, 2)),
        stage(3, waits=1),
    ]

    result = after(FANS, *rows)

    assert states(result) == ["done", "skipped", "skipped", "ready"]
    assert result.opened == (3,)


# -- Errors ----------------------------------------------------------------------------------------


def test_a_required_error_fails_the_job_once_the_last_has_ended() -> None:
    broken = stage(1, State.READY, remaining=0, failed=1)
    rows = [stage(0, State.DONE), broken, stage(2, State.READY), stage(3, waits=2, remaining=0, cancelled=1)]

    waiting = after(FORK, *rows, halted=True)
    ended = after(
        FORK, *waiting.stages[:2], stage(2, State.READY, remaining=0, cancelled=1), waiting.stages[3], halted=True
    )

    assert waiting.status is Status.PROCESSING
    assert states(ended) == ["done", "error", "cancelled", "cancelled"]
    assert ended.status is Status.FAILED


def test_an_optional_stage_may_end_in_error() -> None:
    rows = [stage(0, State.DONE), stage(1, State.DONE), stage(2, State.READY, remaining=0, failed=1), stage(3, waits=1)]

    result = after(FORK, *rows)

    assert states(result) == ["done", "done", "error", "ready"]
    assert result.opened == (3,)


def test_a_job_with_an_optional_error_completes() -> None:
    rows = [stage(0, State.DONE), stage(1, State.DONE), stage(2, State.ERROR), stage(3, State.READY, remaining=0)]

    assert after(FORK, *rows).status is Status.COMPLETED


def test_errors_of_optional_pieces_do_not_break_their_stage() -> None:
    """They are not counted in `failed` at all."""
    result = after(LINE, stage(0, State.READY, total=3, remaining=0, failed=0), stage(1, waits=1), stage(2, waits=1))

    assert states(result)[0] == "done"


# -- Halted jobs -----------------------------------------------------------------------------------


def test_a_halted_job_opens_nothing() -> None:
    rows = [
        stage(0, State.READY, remaining=0),
        stage(1, waits=1, remaining=0, cancelled=1),
        stage(2, waits=1, remaining=0),
    ]

    result = after(LINE, *rows, halted=True)

    assert result.opened == ()
    assert states(result) == ["done", "cancelled", "cancelled"]


def test_a_cancelled_job_ends_as_cancelled_even_if_something_failed() -> None:
    rows = [
        stage(0, State.READY, remaining=0, failed=1),
        stage(1, waits=1, remaining=0),
        stage(2, waits=1, remaining=0),
    ]

    assert after(LINE, *rows, cancelled=True).status is Status.CANCELLED


def test_a_cancelled_job_waits_for_what_still_runs() -> None:
    rows = [
        stage(0, State.READY),
        stage(1, waits=1, remaining=0, cancelled=1),
        stage(2, waits=1, remaining=0, cancelled=1),
    ]

    assert not after(LINE, *rows, cancelled=True).status.is_final


def test_in_a_halted_job_a_stage_stays_open_to_the_plan_of_one_that_still_runs() -> None:
    """Its planner may end well, and a person's retry must find what it planned."""
    rows = [
        stage(0, State.READY),
        *(stage(n, waits=1, total=0, remaining=0) for n in (1, 2)),
        stage(3, waits=1, remaining=0),
    ]

    running = after(FANS, *rows, halted=True)
    ended = after(FANS, stage(0, State.READY, remaining=0), *running.stages[1:], halted=True)

    assert states(running) == ["ready", "new", "new", "new"]
    assert states(ended) == ["done", "cancelled", "cancelled", "cancelled"]


def test_in_a_halted_job_skipping_still_counts() -> None:
    rows = [
        stage(0, State.READY, remaining=0),
        stage(1, waits=1, remaining=0, cancelled=1),
        stage(2, waits=1, remaining=0),
    ]

    result = after(LINE, *rows, halted=True, skip=frozenset({2}))

    assert states(result) == ["done", "cancelled", "skipped"]
