"""What a worker's log says of an outage: that it began, now and then that it lasts, that it is over."""

import pytest

from telecine.errors import Unreachable
from telecine.worker.contact import Contact, WorkerShutOut


@pytest.fixture(autouse=True)
def every_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG", "telecine")


def test_an_outage_is_told_at_its_beginning_every_half_minute_and_at_its_end(caplog: pytest.LogCaptureFixture) -> None:
    contact = Contact()

    for tenth in range(700):
        contact.lost("beat", Unreachable("the server did not answer"), tenth / 10)
        contact.lost("claim", Unreachable("the server did not answer"), tenth / 10)
    contact.found("beat", 70.0)
    contact.found("claim", 71.0)
    contact.found("beat", 75.0)

    assert caplog.messages == [
        "contact is lost, trying on: the server did not answer",
        "no contact for 30 s, trying on: the server did not answer",
        "no contact for 60 s, trying on: the server did not answer",
        "contact is back after 70 s",
    ]


def test_a_claim_that_waits_for_work_does_not_lengthen_the_outage(caplog: pytest.LogCaptureFixture) -> None:
    contact = Contact()
    contact.lost("beat", Unreachable("gone"), 0.0)
    contact.lost("claim", Unreachable("gone"), 2.0)

    contact.found("beat", 3.0)
    assert caplog.messages == ["contact is lost, trying on: gone"], "the claim may fail again"
    contact.found("beat", 8.0)
    contact.found("claim", 28.0)

    assert caplog.messages == ["contact is lost, trying on: gone", "contact is back after 3 s"]


def test_a_later_outage_counts_from_its_own_beginning(caplog: pytest.LogCaptureFixture) -> None:
    contact = Contact()
    contact.lost("claim", Unreachable("gone"), 0.0)
    contact.found("beat", 8.0)

    contact.lost("claim", Unreachable("gone again"), 100.0)
    contact.found("claim", 102.0)

    assert caplog.messages[2:] == ["contact is lost, trying on: gone again", "contact is back after 2 s"]


def test_one_question_that_fails_on_is_an_outage_although_others_are_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    contact = Contact()

    for second in range(31):
        contact.lost("claim", Unreachable("refused"), float(second))
        contact.found("beat", second + 0.5)

    assert caplog.messages == ["contact is lost, trying on: refused", "no contact for 30 s, trying on: refused"]


def test_contact_that_comes_and_goes_is_no_storm(caplog: pytest.LogCaptureFixture) -> None:
    contact = Contact()

    for second in range(25):
        contact.lost("settle", TimeoutError(), float(second))
        contact.found("settle", second + 0.5)

    assert caplog.messages == ["contact is lost, trying on: no answer in time", "contact is back after 0 s"]


def test_a_question_that_nobody_asks_any_more_is_no_outage(caplog: pytest.LogCaptureFixture) -> None:
    contact = Contact()
    contact.lost("claim", Unreachable("gone"), 0.0)
    contact.lost("beat", Unreachable("gone"), 0.0)

    contact.forget("claim")
    contact.found("beat", 1.0)

    assert caplog.messages == ["contact is lost, trying on: gone", "contact is back after 1 s"]


def test_a_refusal_that_ends_the_worker_is_not_told_as_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    Contact().lost("terms", WorkerShutOut("the key is unknown"), 0.0)

    assert caplog.messages == []


def test_a_step_that_fails_by_an_outage_is_one_line_and_by_a_bug_is_told_in_full_and_seldom(
    caplog: pytest.LogCaptureFixture,
) -> None:
    contact = Contact()

    for second in range(20):
        contact.stumbled("the claim", ConnectionResetError("reset by peer"), float(second))
        contact.stumbled("the claim", KeyError("lane"), float(second))

    assert caplog.messages == ["contact is lost, trying on: reset by peer", "the claim failed, trying on: 'lane'"]
    assert [record.exc_info is not None for record in caplog.records] == [False, True]


def test_after_a_step_failed_by_an_outage_the_next_answer_says_that_contact_is_back(
    caplog: pytest.LogCaptureFixture,
) -> None:
    contact = Contact()

    for second in range(35):
        contact.stumbled("the claim", ConnectionResetError("reset by peer"), float(second))
    contact.found("beat", 36.0)
    contact.found("beat", 37.0)

    assert caplog.messages == [
        "contact is lost, trying on: reset by peer",
        "no contact for 30 s, trying on: reset by peer",
        "contact is back after 36 s",
    ]
