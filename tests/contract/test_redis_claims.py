"""A claim that was given hints: they say where to look first, and nothing else."""

from collections.abc import Sequence

import pytest

from telecine.facts import Done, LeaseOutcome
from telecine.store.statements import load
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed


class Told:
    """Hints that a test makes up."""

    def __init__(self, *ids: int) -> None:
        self.ids = list(ids)
        self.judged: list[tuple[list[int], list[tuple[str, int]], int]] = []

    async def take(self, lanes: Sequence[str], wanted: int) -> list[int]:
        return self.ids

    def judge(self, hinted: Sequence[int], granted: Sequence[tuple[str, int]], wanted: int) -> None:
        self.judged.append((list(hinted), list(granted), wanted))


async def ready(bed: Bed, count: int, **how: object) -> list[int]:
    """So many jobs of one task; their tasks, in the order of the queue."""
    await bed.enact(a_flow("cut"))
    for _ in range(count):
        await bed.submit(**how)
        bed.pass_time(1)
    return [row["id"] for row in await bed.sql("select id from task order by rank, id")]


async def test_what_is_hinted_at_is_claimed_first_and_the_walk_fills_the_other_slots(bed: Bed) -> None:
    first, second, third, fourth = await ready(bed, 4)
    bed.engine.hints = told = Told(fourth, third)

    leases = await bed.claim(3)

    assert {lease.task_id for lease in leases} == {first, third, fourth}
    [(hinted, granted, wanted)] = told.judged
    assert (hinted, wanted) == ([fourth, third], 3)
    assert set(granted) == {("film/cut@1", task) for task in (first, third, fourth)}
    assert (await bed.take()).task_id == second


async def test_of_more_hints_than_slots_the_most_urgent_are_claimed(bed: Bed) -> None:
    tasks = await ready(bed, 4)
    bed.engine.hints = Told(*reversed(tasks))

    assert [lease.task_id for lease in await bed.claim(2)] == tasks[:2]


async def test_hints_that_are_wrong_stale_or_doubled_change_nothing(bed: Bed) -> None:
    running, ended, *waiting = await ready(bed, 5)
    await bed.claim(1)
    await bed.done(await bed.take())
    bed.engine.hints = Told(running, ended, waiting[0], waiting[0], 10**15, (1 << 63) - 1)

    leases = await bed.claim(10)

    assert [lease.task_id for lease in leases] == waiting
    assert [lease.token for lease in leases] == [1] * 3
    await bed.audited()


async def test_a_hint_at_a_lane_that_the_worker_does_not_serve_is_not_followed(bed: Bed) -> None:
    await ready(bed, 1)
    foreign = a_flow("glue", name="other")
    await bed.engine.jobs.register(foreign)
    await bed.engine.jobs.submit("other")
    [other] = [row["id"] for row in await bed.sql("select id from task where lane like 'other%'")]
    bed.engine.hints = Told(other)

    assert other not in {lease.task_id for lease in await bed.claim(5)}


async def test_a_hint_does_not_lift_a_pause_nor_unpark_nor_open_what_waits(bed: Bed) -> None:
    await bed.enact(a_flow("cut", "join"))
    await bed.submit(run_at=bed.now + 60_000)
    due = await bed.submit()
    tasks = [row["id"] for row in await bed.sql("select id from task order by id")]
    bed.engine.hints = Told(*tasks)
    await bed.engine.jobs.pause("film")

    assert await bed.claim(5) == []
    await bed.engine.jobs.pause("film", False)
    [lease] = await bed.claim(5)

    assert (lease.stage, lease.job_id) == ("cut", due)
    await bed.audited()


async def test_a_hint_at_a_task_of_a_deleted_subject_is_passed_over(bed: Bed) -> None:
    tasks = await ready(bed, 1, subject=("video", "v"))
    await bed.sql(f"insert into subject_gone (kind, id, owner, at, actor) values ('video', 'v', '', {bed.now}, '')")
    bed.engine.hints = Told(*tasks)

    assert await bed.claim(5) == []


async def test_a_disabled_worker_gets_nothing_by_hints_either(bed: Bed) -> None:
    tasks = await ready(bed, 2)
    bed.engine.hints = Told(*tasks)
    await bed.sql(f"update worker set mode = 'draining' where id = {bed.worker}")

    assert await bed.claim(5) == []


async def test_a_repeated_request_gets_the_same_leases_whatever_is_hinted_then(bed: Bed) -> None:
    first, second, third = await ready(bed, 3)
    bed.engine.hints = told = Told(second)
    granted = await bed.claim(1, request="r")

    told.ids = [first, third]
    again = await bed.claim(1, request="r")

    assert [(lease.task_id, lease.token) for lease in again] == [(second, 1)] == [(x.task_id, x.token) for x in granted]


async def test_two_who_were_given_the_same_hints_get_different_tasks(bed: Bed) -> None:
    tasks = await ready(bed, 4)
    bob = await bed.enlist("bob")
    bed.engine.hints = Told(*tasks[:2])

    ours, his = await bed.claim(2), await bed.claim(2, bob)

    assert {lease.task_id for lease in ours} == set(tasks[:2])
    assert {lease.task_id for lease in his} == set(tasks[2:])


async def test_a_job_that_winds_down_is_not_begun_by_a_hint(bed: Bed) -> None:
    tasks = await ready(bed, 2)
    bed.engine.hints = Told(*tasks)
    await bed.give_rows()
    await bed.sql(f"update {bed.table('job')} set cancel_asked = true")

    leases = await bed.claim(5)

    assert leases == [] or not bed.is_postgres, "SQLite has one writer: such a task does not exist there"


async def test_everything_is_done_once_with_hints_as_without(bed: Bed) -> None:
    tasks = await ready(bed, 30)
    bed.engine.hints = told = Told()
    seen = []

    for turn in range(40):
        told.ids = [*tasks[turn : turn + 7], 99_999]
        leases = await bed.claim(3)
        seen += [lease.task_id for lease in leases]
        await bed.engine.settle([LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases])

    assert sorted(seen) == sorted(tasks)
    await bed.audited()


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_without_hints_a_claim_is_told_nothing_of_them(dialect: str) -> None:
    plain, hinted = (load(dialect)[name] for name in ("claim", "claim_hinted"))  # type: ignore[arg-type]

    assert "hinted" not in plain.text
    assert set(hinted.params) - set(plain.params) == {"hinted"}
    assert "--" not in hinted.text
