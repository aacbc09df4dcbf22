"""What a server's log says of an outage, once for all duties: that it began, each minute of it, that it is over."""

import asyncio

import pytest

from telecine.engine.maintenance.background import OutageLog
from telecine.errors import ArtifactError, Rejected, Unreachable


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def duties(clock: Clock, caplog: pytest.LogCaptureFixture) -> OutageLog:
    caplog.set_level("DEBUG", "telecine")
    return OutageLog(clock)


def test_an_outage_is_told_once_for_all_duties_then_each_minute_and_at_its_end(
    duties: OutageLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(131):
        clock.seconds = float(second)
        for duty in ("sweep", "deliveries", "housekeeping"):
            with duties.at(duty):
                raise Unreachable("connection refused")
    for duty in ("sweep", "deliveries", "housekeeping", "sweep"):
        with duties.at(duty):
            pass

    assert caplog.messages == [
        "the database does not answer, trying on: connection refused",
        "the database does not answer, for 60 s now, trying on: connection refused",
        "the database does not answer, for 120 s now, trying on: connection refused",
        "the database answers again after 130 s",
    ]


def test_a_database_that_comes_and_goes_is_no_storm(
    duties: OutageLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(50):
        clock.seconds = float(second)
        with duties.at("sweep"):
            if second % 2 == 0:
                raise Unreachable("gone")

    assert caplog.messages == [
        "the database does not answer, trying on: gone",
        "the database answers again after 1 s",
    ]


def test_what_one_duty_alone_meets_is_told_of_that_one(
    duties: OutageLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for second in range(10):
        clock.seconds = float(second)
        with duties.at("housekeeping"):
            raise ArtifactError("the bucket is away")
        with duties.at("counting"):
            raise Rejected("a statement is wrong")
        with duties.at("sweep"):
            pass
    with duties.at("housekeeping"):
        pass

    assert caplog.messages == [
        "housekeeping fails, trying on: the bucket is away",
        "counting fails, trying on: a statement is wrong",
        "housekeeping works again after 9 s",
    ]


def test_a_fault_of_our_own_is_told_each_time_in_full(duties: OutageLog, caplog: pytest.LogCaptureFixture) -> None:
    looks = []
    for _ in range(2):
        with duties.at("sweep") as look:
            raise ZeroDivisionError
        looks.append(look.failed)

    assert looks == [True, True]
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_a_duty_that_ends_misses_nothing_any_more(duties: OutageLog, caplog: pytest.LogCaptureFixture) -> None:
    with duties.at("sweep"):
        raise Unreachable("gone")
    with pytest.raises(asyncio.CancelledError), duties.at("sweep"):
        raise asyncio.CancelledError
    with duties.at("sweep") as look:
        pass

    assert not look.failed
    assert caplog.messages == ["the database does not answer, trying on: gone"]


def test_what_a_driver_raises_by_itself_is_an_outage_and_told_once(
    duties: OutageLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        with duties.at("sweep"):
            raise ConnectionResetError("reset by peer")

    assert caplog.messages == ["sweep fails, trying on: reset by peer"]
    assert caplog.records[0].exc_info is None
