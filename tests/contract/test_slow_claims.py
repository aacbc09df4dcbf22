"""A claim that takes long, because somebody holds what it needs, meets cancels, drains and its own repeat."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from telecine.facts import Mode
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed, pairs

# SQLite has one writer at a time: no claim ever waits in the middle.
pytestmark = pytest.mark.parametrize("bed", ["postgres"], indirect=True)


@asynccontextmanager
async def holding(bed: Bed, job_id: int) -> AsyncIterator[asyncpg.Connection]:
    """Somebody else holds the job's row, until the end of the block."""
    connection = await asyncpg.connect(bed.url)
    try:
        await connection.execute("begin")
        await connection.execute(f"select 1 from job_row where id = {job_id} for update")
        yield connection
        await connection.execute("commit")
    finally:
        connection.terminate()


async def waiting(connection: asyncpg.Connection, count: int = 1) -> None:
    """Until so many statements wait for a lock."""
    async with asyncio.timeout(10):
        while await connection.fetchval("select count(distinct pid) from pg_locks where not granted") < count:
            await asyncio.sleep(0.005)


async def held_up(bed: Bed, job_id: int, act: Callable[[], Awaitable[Any]]) -> tuple[list[Any], Any]:
    """A claim waits for the job, which has a row; meanwhile `act` happens, and may wait for the claim."""
    await bed.give_rows()
    async with holding(bed, job_id) as other:
        claim = asyncio.create_task(bed.claim(1, request="r"))
        await waiting(other)
        acted = asyncio.create_task(act())
        done, _ = await asyncio.wait({acted}, timeout=0.3)
        if not done:
            await waiting(other, 2)
    return await claim, await acted


async def test_a_repeat_of_a_claim_that_is_still_under_way_gets_the_same_leases(bed: Bed) -> None:
    """Else its first leases would be known to nobody, and be lost for the time of a lease."""
    await bed.enact(a_flow("cut"))
    first, _ = await bed.submit(), await bed.submit()
    other = await bed.another_engine()

    leases, again = await held_up(bed, first, lambda: other.claim(bed.worker, "r", bed.lanes, 1))

    assert pairs(leases) == pairs(again)
    assert await bed.count("task", "state = 'running'") == 1
    await bed.audited()


async def test_a_drain_that_is_acknowledged_is_obeyed_by_a_claim_that_began_before(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    other = await bed.another_engine()
    granted_when_acknowledged = None

    async def drain() -> None:
        nonlocal granted_when_acknowledged
        await other.set_mode(bed.worker, Mode.DRAINING)
        granted_when_acknowledged = await bed.count("task", "state = 'running'")

    leases, _ = await held_up(bed, job_id, drain)

    assert granted_when_acknowledged == len(leases)


async def test_a_cancel_that_is_acknowledged_is_obeyed_by_a_claim_that_began_before(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    job_id = await bed.submit()
    other = await bed.another_engine()

    leases, _ = await held_up(bed, job_id, lambda: other.jobs.cancel(job_id))

    for lease in leases:
        assert (await bed.done(lease)).code == "job_cancelled"
        await bed.release(lease)
    assert await bed.status(job_id) == "cancelled"
    await bed.audited()
