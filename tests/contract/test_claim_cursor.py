"""On PostgreSQL claims in a row continue where the last one ended, and miss nothing that came before that place."""

import pytest

from telecine.engine import Submission
from telecine.facts import Lease
from telecine.store import Ask, claim_cursor
from telecine.store.postgres import Postgres
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

CUT = a_flow("cut")


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_cursor, "MIN_TAKEN", 4)


async def begun(bed: Bed) -> Clock:
    clock = Clock()
    if isinstance(bed.store, Postgres):
        bed.store._claim_cursor = claim_cursor.ClaimCursor(clock)
    await bed.enact(CUT)
    return clock


async def submitted(bed: Bed, count: int, priority: int = 5) -> list[int]:
    jobs = await bed.engine.jobs.submit_many([Submission(flow="film", priority=priority)] * count)
    return [job.job_id for job in jobs]


async def jobs_of(bed: Bed, wanted: int) -> list[int]:
    return [lease.job_id for lease in await bed.claim(wanted)]


def place(bed: Bed) -> tuple[int, int] | None:
    """Where the next claim starts; SQLite has no cursor."""
    return bed.store._claim_cursor.position(tuple(bed.lanes)) if isinstance(bed.store, Postgres) else None


def has_place(bed: Bed) -> bool:
    """The cursor is in use, where there is one."""
    return place(bed) is not None or not bed.is_postgres


LANES = ("a/b@1",)


def claim(lanes: tuple[str, ...] = LANES, wanted: int = 4, after: tuple[int, int] | None = None) -> Ask:
    params = {"lanes": list(lanes), "wanted": wanted}
    if after is None:
        return Ask("claim", params)
    return Ask("claim_after", {**params, "after_rank": after[0], "after_id": after[1]})


async def test_all_are_claimed_once_and_in_order(bed: Bed) -> None:
    await begun(bed)
    jobs, claimed, marked = await submitted(bed, 23), [], 0
    for _ in range(10):
        marked += place(bed) is not None
        claimed += await jobs_of(bed, 3)

    assert (claimed, marked) == (jobs, 6 if bed.is_postgres else 0)
    await bed.audited()


async def test_a_few_claims_begin_at_the_beginning(bed: Bed) -> None:
    await begun(bed)
    await submitted(bed, 9)
    places = [place(bed)]
    for _ in range(3):
        await bed.claim(2)
        places.append(place(bed))

    assert [found is None for found in places] == [True, True, not bed.is_postgres, not bed.is_postgres]


async def test_what_is_more_urgent_waits_until_the_next_look_at_the_beginning(bed: Bed) -> None:
    clock = await begun(bed)
    await submitted(bed, 20)
    await bed.claim(4)
    [urgent] = await submitted(bed, 1, priority=10)
    clock.now += claim_cursor.RESTART_SECONDS / 2
    soon = await jobs_of(bed, 2)
    clock.now += claim_cursor.RESTART_SECONDS / 2 + 0.001
    later = await jobs_of(bed, 2)

    # In SQLite nothing lies in the way, so every claim looks there.
    assert (soon if not bed.is_postgres else later)[0] == urgent
    assert claim_cursor.RESTART_SECONDS <= 0.1


async def test_claims_that_follow_each_other_do_not_put_off_that_look(bed: Bed) -> None:
    clock = await begun(bed)
    await submitted(bed, 40)
    await bed.claim(4)
    [urgent] = await submitted(bed, 1, priority=10)
    claimed: list[int] = []
    for _ in range(6):
        clock.now += claim_cursor.RESTART_SECONDS / 4
        claimed += await jobs_of(bed, 2)

    assert urgent in claimed


def granted(first: int, count: int = 4) -> list[dict[str, object]]:
    return [{"rank": n, "id": n, "halted": False} for n in range(first, first + count)]


def test_a_late_answer_leads_nobody_away_from_what_a_look_has_found() -> None:
    """Two claims at once, as on a server: one looks at the beginning, finds some, and answers first."""
    clock = Clock()
    marks = claim_cursor.ClaimCursor(clock)

    def put(first: int, after: tuple[int, int] | None) -> None:
        marks.advance(claim(after=after), granted(first))

    put(1_000, None)
    late = marks.position(LANES)
    clock.now += claim_cursor.RESTART_SECONDS + 0.001
    assert (late, marks.position(LANES)) == ((1_003, 1_003), None)
    put(10, None)
    put(1_004, late)

    assert marks.position(LANES) == (13, 13)


def test_a_late_answer_brings_back_no_place_that_was_given_up() -> None:
    marks = claim_cursor.ClaimCursor(Clock())
    marks.advance(claim(), granted(1_000))
    late = marks.position(LANES)
    marks.advance(claim(after=late), granted(1_004, 2))
    marks.advance(claim(after=late), granted(1_004))

    assert marks.position(LANES) is None


@pytest.mark.parametrize("bed", ["postgres"], indirect=True)
async def test_a_claim_that_finds_too_few_takes_what_came_before(bed: Bed) -> None:
    await begun(bed)
    jobs = await submitted(bed, 6)
    await bed.claim(5)
    urgent = await submitted(bed, 3, priority=10)

    assert place(bed) is not None
    assert await jobs_of(bed, 3) == [*urgent[:2], jobs[-1]]
    assert place(bed) is None
    await submitted(bed, 5)
    assert (await jobs_of(bed, 2))[0] == urgent[2]


async def test_what_comes_back_is_found_when_nothing_else_is_there(bed: Bed) -> None:
    await begun(bed)
    await submitted(bed, 5)
    leases: list[Lease] = await bed.claim(5)
    await bed.release(leases[0])

    assert await jobs_of(bed, 1) == [leases[0].job_id]
    assert await bed.claim(1) == []


async def test_what_cannot_be_claimed_is_not_claimed_there_either(bed: Bed) -> None:
    await begun(bed)
    await bed.submit(subject=("video", "v"))
    await submitted(bed, 5)
    hidden, parked, running, *_ = await bed.claim(6)
    await bed.sql(f"insert into subject_gone (kind, id, owner, at, actor) values ('video', 'v', '', {bed.now}, '')")
    await bed.release(hidden)
    await bed.fail(parked)

    assert has_place(bed)
    assert await bed.claim(2) == []
    assert (await bed.task(hidden.task_id))["state"] == "ready"
    assert (await bed.task(running.task_id))["state"] == "running"


async def test_a_repeat_of_the_request_gets_the_same_leases(bed: Bed) -> None:
    await begun(bed)
    await submitted(bed, 12)
    await bed.claim(4)
    first = await bed.claim(4, request="again")

    assert has_place(bed)
    assert await bed.claim(4, request="again") == first


def test_what_winds_down_is_no_place_to_go_on_from() -> None:
    """It comes back first and without a rank, in the place of something that could have been claimed."""
    found = [{"rank": 7, "id": 1, "halted": False}, {"rank": 8, "id": 2, "halted": False}]
    for first, there in ((found[0], True), ({"rank": 0, "id": 1, "halted": True}, False)):
        marks = claim_cursor.ClaimCursor(Clock())
        for _ in range(2):
            marks.advance(claim(wanted=2), [first, found[1]])
        assert (marks.position(LANES) == (8, 2)) is there


async def test_other_lanes_have_a_place_of_their_own(bed: Bed) -> None:
    await begun(bed)
    await submitted(bed, 9)
    await bed.claim(4)

    assert has_place(bed)
    if isinstance(bed.store, Postgres):
        assert bed.store._claim_cursor.position(("other/cut@1",)) is None


def test_whose_last_claim_is_the_longest_ago_is_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim_cursor, "MAX_WALKS", 2)
    marks = claim_cursor.ClaimCursor(Clock())
    for lane in ("a", "b", "a", "c"):
        marks.advance(claim((lane,)), [{"rank": 7, "id": n, "halted": False} for n in range(4)])

    assert [marks.position((lane,)) is not None for lane in ("a", "b", "c")] == [True, False, True]
