"""The short way of jobs of one task, beside others who hold what it needs. On PostgreSQL: SQLite has one writer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import asyncpg
import pytest

from telecine.engine.jobs import job_rows
from telecine.engine.jobs.submit import Submission
from telecine.engine.leases.claim import ClaimQuery, claim
from telecine.facts import JUST_DONE, LEASE, Lease, LeaseOutcome
from telecine.store import postgres
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

T = TypeVar("T")
# So many that it matters to the planner, in an order that has nothing to do with their ids, but for the first two.
LIE_BACKWARDS = """
create temporary table moved as
select * from task order by case when state = 'running' then -id else id * 7919 % 1009 end;
delete from task; insert into task select * from moved; analyze task
"""

pytestmark = pytest.mark.parametrize("bed", ["postgres alone"], indirect=True)


async def locking_in_order(bed: Bed, asked: Coroutine[Any, Any, T], table: str, ids: tuple[int, int]) -> T:
    """What `asked` answers. While somebody holds the second row it has locked the first: whoever takes both in that
    order gets nothing before it is done."""
    both = f"select id from {table} where id in {ids} order by id for no key update"
    hold = f"select 1 from {table} where id = {ids[1]} for no key update"
    async with holding(bed, hold) as let_go, connected(bed) as other:
        asking = asyncio.create_task(asked)
        await somebody_waits(bed, 1)
        reading = asyncio.create_task(other.fetch(both))
        await somebody_waits(bed, 2)
        await let_go()
        answer = await asking
        found = await reading
    assert tuple(row["id"] for row in found) == ids
    return answer


async def test_tasks_are_locked_in_the_order_of_their_ids_whatever_the_order_of_the_words(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = refusals(monkeypatch)
    await bed.enact(a_flow("one", name="lone"))
    await bed.engine.jobs.submit_many([Submission(flow="lone")] * 2_000)
    first, second = await bed.claim(2)
    async with connected(bed) as shuffler:
        await shuffler.execute(LIE_BACKWARDS)

    words = bed.engine.settle([done(second), done(first)])
    answers = await locking_in_order(bed, words, "task", (first.task_id, second.task_id))

    assert [answer.accepted for answer in answers] == [True, True]
    assert torn == []


async def test_a_claim_begins_jobs_in_the_order_of_their_ids_however_they_lie(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = refusals(monkeypatch)
    await bed.enact(a_flow("one", name="lone"))
    about = [Submission(flow="lone", subject=("voice", name)) for name in ("high", "low")]
    first, second = (made.job_id for made in await bed.engine.jobs.submit_many(about))
    # The later job is the more urgent one, and whoever goes through the table as it lies meets it first.
    await bed.engine.jobs.edit(second, priority=9)
    await bed.sql(f"update job_row set warnings = 0 where id = {first}")

    leases = await locking_in_order(bed, bed.claim(2), "job_row", (first, second))

    assert [lease.job_id for lease in leases] == [second, first]
    assert torn == []


async def test_a_job_that_gets_its_rows_while_it_is_claimed_is_claimed_with_them(bed: Bed) -> None:
    await bed.enact(a_flow("one", name="lone"))
    job = await bed.submit("lone")
    other = await bed.another_engine()

    async with holding(bed, f"select 1 from worker where id = {bed.worker} for no key update") as let_go:
        claiming = asyncio.create_task(bed.claim(1))
        await somebody_waits(bed, 1)
        await other.jobs.cancel(job)
        await other.jobs.retry(job)
        await let_go()
        [lease] = await claiming
    [answer] = await bed.engine.settle([done(lease)])

    assert answer.accepted
    generations = await bed.sql(f"select generation from attempt where task_id = {lease.task_id}")
    assert [row["generation"] for row in generations] == [2]
    await bed.audited()


async def test_a_job_that_is_claimed_while_it_gets_its_rows_has_begun_by_them(bed: Bed) -> None:
    await bed.enact(a_flow("one", name="lone"))
    job = await bed.submit("lone")
    ask = ClaimQuery(bed.worker, "r", bed.lanes, 1, LEASE)

    async with connected(bed) as connection:
        await connection.execute("begin")
        await bed.store.drive(connection, claim(ask))  # type: ignore[attr-defined]
        editing = asyncio.create_task(bed.engine.jobs.edit(job, priority=9))
        await somebody_waits(bed, 1)
        await connection.execute("commit")
        await editing

    row = await bed.job(job)
    assert (row["status"], row["started_at"], row["priority"]) == ("processing", bed.now, 9)
    await bed.audited()


async def test_rows_are_given_in_the_order_of_the_ids(bed: Bed, monkeypatch: pytest.MonkeyPatch) -> None:
    torn = refusals(monkeypatch)
    await bed.enact(a_flow("one", name="lone"))
    first, second = (made.job_id for made in await bed.engine.jobs.submit_many([Submission(flow="lone")] * 2))

    held = await locking_in_order(bed, bed.store.run(lambda: job_rows.hold([second, first])), "task", (first, second))

    assert [row["id"] for row in held] == [first, second]
    assert torn == []


def done(lease: Lease) -> LeaseOutcome:
    return LeaseOutcome(lease.task_id, lease.token, JUST_DONE)


def refusals(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The transactions that were torn and made again: a deadlock costs a second, even if all is well in the end."""
    seen: list[str] = []
    once = postgres.Postgres._once

    async def watched(self: postgres.Postgres, steps: object) -> object:
        try:
            return await once(self, steps)  # type: ignore[arg-type]
        except postgres.AGAIN as error:
            seen.append(type(error).__name__)
            raise

    monkeypatch.setattr(postgres.Postgres, "_once", watched)
    return seen


@contextlib.asynccontextmanager
async def connected(bed: Bed) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(bed.url)
    try:
        yield connection
    finally:
        await connection.close()


@contextlib.asynccontextmanager
async def holding(bed: Bed, lock: str) -> AsyncIterator[object]:
    """Somebody who holds a row until he is told to let it go."""
    async with connected(bed) as connection:
        await connection.execute("begin")
        await connection.fetch(lock)

        async def let_go() -> None:
            await connection.execute("commit")

        yield let_go


async def somebody_waits(bed: Bed, count: int) -> None:
    async with connected(bed) as connection, asyncio.timeout(30):
        while await connection.fetchval("select count(*) from pg_locks where not granted") < count:
            await asyncio.sleep(0.01)
