"""An outcome that the database does not take: failed only if it is refused for its own value, and said alone.

The errors are real: a trigger raises what the result asks for, as long as the table `trouble` has a row.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from telecine.engine import Submission
from telecine.facts import Done, Lease
from telecine.worker import outbox as module
from telecine.worker.attempts import Attempt, HeldAttempts
from telecine.worker.outbox import Outbox
from telecine.world import World
from tests.support.builders import Loaded, a_flow
from tests.support.engine_fixture import Bed

TRIGGER = (
    "create table trouble (id integer)",
    "insert into trouble values (1)",
    """create function complain() returns trigger language plpgsql as $$ begin
       if new.result ->> 'raise' is not null and exists (select from trouble) then
           raise exception 'it is asked for' using errcode = new.result ->> 'raise';
       end if; return new; end $$""",
    "create trigger complain before update on task for each row execute function complain()",
)
SQLITE_TRIGGER = (
    """create trigger complain before update of result on task when new.result like '%raise%'
       begin select raise(abort, 'it is asked for'); end""",
)
POSTGRES = pytest.mark.parametrize("bed", ["postgres alone"], indirect=True)
BOTH = pytest.mark.parametrize("bed", ["sqlite", "postgres alone"], indirect=True)
LINE = a_flow("cut", "join")


@asynccontextmanager
async def saying(bed: Bed, *results: Any) -> AsyncIterator[tuple[HeldAttempts, list[Lease]]]:
    """A worker's outbox that has one outcome for each task, with these results."""
    for statement in TRIGGER if bed.is_postgres else SQLITE_TRIGGER:
        await bed.sql(statement)
    await bed.enact(LINE)
    await bed.engine.submit_many([Submission(flow="film")] * len(results))
    leases = await bed.claim(len(results))
    held = HeldAttempts()
    outbox = Outbox(bed.engine, held, World(dice=Loaded()), lambda: None)
    for lease, result in zip(leases, results, strict=True):
        attempt = Attempt(lease, until=float("inf"))
        held.attempts[attempt.key] = attempt
        outbox.say(attempt, Done(result=result))
    running = asyncio.create_task(outbox.run())
    try:
        yield held, leases
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def states(bed: Bed, leases: list[Lease]) -> list[str]:
    return [(await bed.task(lease.task_id))["state"] for lease in leases]


async def until_held(held: HeldAttempts, count: int) -> None:
    async with asyncio.timeout(20):
        while len(held.attempts) != count:
            await asyncio.sleep(0.01)


@BOTH
async def test_a_value_that_the_database_refuses_fails_its_own_task_and_no_other(bed: Bed) -> None:
    async with saying(bed, {"a": 1}, {"raise": "22P02"}, {"b": 2}) as (held, leases):
        await until_held(held, 0)

        assert await states(bed, leases) == ["done", "error", "done"]
        [row] = await bed.sql(f"select error from attempt where task_id = {leases[1].task_id}")
        assert "bad_result" in str(row["error"])
        assert "it is asked for" in str(row["error"])
        assert "telecine.db" not in str(row["error"])  # owners of jobs read it


@POSTGRES
@pytest.mark.parametrize("state", ["XX000", "57014", "53100", "53200", "58030", "55000", "P0001", "25006", "40001"])
async def test_what_is_not_about_the_value_is_said_again_until_it_is_taken(bed: Bed, state: str) -> None:
    async with saying(bed, {"a": 1}, {"raise": state}) as (held, leases):
        await asyncio.sleep(0.3)
        assert (await states(bed, leases))[1] == "running"

        await bed.sql("delete from trouble")
        await until_held(held, 0)

        assert await states(bed, leases) == ["done", "done"]
        assert (held.done, held.failed) == (2, 0)


@POSTGRES
async def test_neighbours_do_not_wait_for_an_outcome_that_is_said_again(bed: Bed) -> None:
    async with saying(bed, {"raise": "XX000"}, {"a": 1}, {"b": 2}) as (held, leases):
        await until_held(held, 1)

        assert await states(bed, leases) == ["running", "done", "done"]


@POSTGRES
async def test_what_our_bug_keeps_from_being_stored_is_given_back_after_a_while(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "BUG_SECONDS", 0.2)

    async with saying(bed, {"raise": "42P01"}) as (held, leases):
        await until_held(held, 0)

        assert await states(bed, leases) == ["ready"]
        [row] = await bed.sql("select outcome from attempt")
        assert row["outcome"] == "released"
        assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]  # that it began, that it is over
