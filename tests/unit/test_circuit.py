"""The circuit breaker: when it opens, how long it waits, what closes it."""

from telecine.dispatch.circuit import CircuitBreaker
from telecine.dispatch.hints import id_of
from tests.support.builders import Loaded


def test_it_opens_after_errors_in_a_row_and_says_so_once() -> None:
    circuit = CircuitBreaker(Loaded(), after=3)

    assert [circuit.failed() for _ in range(5)] == [False, False, True, False, False]

    assert (circuit.state, circuit.opened) == ("open", 1)


def test_an_answer_in_between_begins_the_count_anew() -> None:
    circuit = CircuitBreaker(Loaded(), after=2)

    circuit.failed()
    circuit.ok()
    circuit.failed()

    assert circuit.is_closed


def test_a_probe_that_fails_opens_it_again_and_one_that_succeeds_closes_it() -> None:
    circuit = CircuitBreaker(Loaded(), after=1)
    circuit.failed()

    circuit.probe()
    assert (circuit.state, circuit.is_closed) == ("half_open", False)
    assert not circuit.failed(), "it is the same outage"
    assert circuit.state == "open"
    circuit.probe()

    assert circuit.ok(), "an outage has ended"
    assert not circuit.ok()
    assert (circuit.state, circuit.opened) == ("closed", 1)


def test_pauses_double_up_to_the_longest_and_no_two_processes_wait_alike() -> None:
    longest, shortest = (CircuitBreaker(Loaded(dice), first=1.0, most=8.0) for dice in (1.0, 0.0))

    assert [longest.pause() for _ in range(5)] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert [shortest.pause() for _ in range(5)] == [0.5, 1.0, 2.0, 4.0, 4.0]


def test_after_an_outage_pauses_begin_short_again() -> None:
    circuit = CircuitBreaker(Loaded(1.0), first=1.0)
    circuit.pause()
    circuit.pause()

    circuit.ok()

    assert circuit.pause() == 1.0


def test_what_cannot_be_an_id_is_none() -> None:
    assert [id_of(text) for text in ("7", "9223372036854775807")] == [7, 9223372036854775807]
    assert [id_of(text) for text in ("", "-1", "1.5", "x", "٣", "9223372036854775808", "9" * 5_000)] == [None] * 7
