"""An outcome that the database does not take: failed only if it is refused for its own value, and said alone.

The errors are real: a trigger raises what the result asks for, as long as the table `trouble` has a row.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from telecine.engine import Engine, Submission
from telecine.errors import Unreachable
from telecine.facts import Done, Lease, LeaseOutcome, SettleReply
from telecine.store.open import open_store
from telecine.worker import outbox as module
from telecine.worker.attempts import Attempt, HeldAttempts
from telecine.worker.engine_api import EngineApi
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
       end if;
       if new.result ->> 'sleep' is not null and exists (select from trouble) then
           perform pg_sleep((new.result ->> 'sleep')::float);
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


class Counted:
    """An engine, and how many outcomes each settle had."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.batches: list[int] = []

    async def settle(self, words: Sequence[LeaseOutcome]) -> list[SettleReply]:
        self.batches.append(len(words))
        return await self._engine.settle(words)


@asynccontextmanager
async def saying(
    bed: Bed, *results: Any, engine: Engine | Counted | None = None
) -> AsyncIterator[tuple[HeldAttempts, list[Lease], Outbox]]:
    """A worker's outbox that has one outcome for each task, with these results."""
    for statement in TRIGGER if bed.is_postgres else SQLITE_TRIGGER:
        await bed.sql(statement)
    await bed.enact(LINE)
    await bed.engine.jobs.submit_many([Submission(flow="film")] * len(results))
    leases = await bed.claim(len(results))
    held = HeldAttempts()
    outbox = Outbox(cast("EngineApi", engine or bed.engine), held, World(dice=Loaded()), lambda: None)
    for lease, result in zip(leases, results, strict=True):
        attempt = Attempt(lease, until=float("inf"))
        held.attempts[attempt.key] = attempt
        outbox.say(attempt, Done(result=result))
    running = asyncio.create_task(outbox.run())
    try:
        yield held, leases, outbox
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
    async with saying(bed, {"a": 1}, {"raise": "22P02"}, {"b": 2}) as (held, leases, _):
        await until_held(held, 0)

        assert await states(bed, leases) == ["done", "error", "done"]
        [row] = await bed.sql(f"select error from attempt where task_id = {leases[1].task_id}")
        assert "bad_result" in str(row["error"])
        assert "it is asked for" in str(row["error"])
        assert "telecine.db" not in str(row["error"])  # owners of jobs read it


@POSTGRES
@pytest.mark.parametrize("state", ["XX000", "57014", "53100", "53200", "58030", "55000", "P0001", "25006", "40001"])
async def test_what_is_not_about_the_value_is_said_again_until_it_is_taken(bed: Bed, state: str) -> None:
    async with saying(bed, {"a": 1}, {"raise": state}) as (held, leases, _):
        await asyncio.sleep(0.3)
        assert (await states(bed, leases))[1] == "running"

        await bed.sql("delete from trouble")
        await until_held(held, 0)

        assert await states(bed, leases) == ["done", "done"]
        assert (held.done, held.failed) == (2, 0)


@POSTGRES
async def test_neighbours_do_not_wait_for_an_outcome_that_is_said_again(bed: Bed) -> None:
    async with saying(bed, {"raise": "XX000"}, {"a": 1}, {"b": 2}) as (held, leases, _):
        await until_held(held, 1)

        assert await states(bed, leases) == ["running", "done", "done"]


@POSTGRES
async def test_what_our_bug_keeps_from_being_stored_is_given_back_after_a_while(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "BUG_SECONDS", 0.2)

    async with saying(bed, {"raise": "42P01"}) as (held, leases, _):
        await until_held(held, 0)

        assert await states(bed, leases) == ["ready"]
        [row] = await bed.sql("select outcome from attempt")
        assert row["outcome"] == "released"
        assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]  # that it began, that it is over


# -- an outcome for which alone the database seems to be away -----------------------------------------------------


@POSTGRES
@pytest.mark.parametrize("state", ["57014", "53100", "53200", "58030"])
async def test_neighbours_do_not_wait_for_one_outcome_for_which_the_database_is_away(
    bed: Bed, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 0.3)
    monkeypatch.setattr(module, "BUG_SECONDS", 0.1)  # it is no bug, however long it takes

    async with saying(bed, {"a": 1}, {"raise": state}, {"b": 2}) as (held, leases, _):
        await until_held(held, 1)
        assert await states(bed, leases) == ["done", "running", "done"]
        await asyncio.sleep(0.5)
        assert await states(bed, leases) == ["done", "running", "done"]

        await bed.sql("delete from trouble")
        await until_held(held, 0)

        assert await states(bed, leases) == ["done", "done", "done"]
        assert (held.done, held.failed) == (3, 0)


@POSTGRES
async def test_an_outcome_that_runs_into_the_time_limit_of_statements_goes_apart(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 0.3)
    store = open_store(f"{bed.url}&statement_timeout=200", dice=random.Random(2))
    store.now = bed.now
    bed.guests.append(store)
    hasty = Counted(Engine(store, world=World(dice=Loaded())))

    async with saying(bed, {"a": 1}, {"sleep": 5}, {"b": 2}, engine=hasty) as (held, leases, _):
        await until_held(held, 1)
        assert await states(bed, leases) == ["done", "running", "done"]
        before = len(hasty.batches)
        await asyncio.sleep(1.0)
        # At least as long as such a try takes, nobody tries it.
        assert hasty.batches[before:] in ([1], [1, 1], [1, 1, 1])

        await bed.sql("delete from trouble")
        await until_held(held, 0)
        assert await states(bed, leases) == ["done", "done", "done"]


@POSTGRES
async def test_what_becomes_ready_later_does_not_wait_for_such_an_outcome_either(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 0.3)
    counted = Counted(bed.engine)

    async with saying(bed, {"raise": "53100"}, engine=counted) as (held, leases, outbox):
        async with asyncio.timeout(20):
            while not outbox._troubles:
                await asyncio.sleep(0.01)
            monkeypatch.setattr(module, "TOGETHER_SECONDS", 60.0)
            tried = len(counted.batches)
            while len(counted.batches) < tried + 3:
                await asyncio.sleep(0.01)
        await bed.engine.jobs.submit_many([Submission(flow="film")] * 2)
        for lease in await bed.claim(2):
            attempt = Attempt(lease, until=float("inf"))
            held.attempts[attempt.key] = attempt
            outbox.say(attempt, Done(result={"c": 3}))
        await until_held(held, 1)
        assert await states(bed, leases) == ["running"]
        assert set(counted.batches) == {1, 2}  # those two went together, and at once


class Away:
    """An engine whose database is away until it is told otherwise."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.is_away = True
        self.batches: list[int] = []

    async def settle(self, words: Sequence[LeaseOutcome]) -> list[SettleReply]:
        self.batches.append(len(words))
        if self.is_away:
            raise Unreachable("it is away")
        return await self._engine.settle(words)


async def test_while_the_database_is_away_for_all_most_outcomes_stay_together(
    bed: Bed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 0.3)
    away = Away(bed.engine)

    async with saying(bed, *({"n": n} for n in range(40)), engine=cast("Engine", away)) as (held, leases, _):
        async with asyncio.timeout(20):
            while 30 not in away.batches:
                await asyncio.sleep(0.01)
        assert set(away.batches) == {40, 35, 30, 1}
        away.is_away = False
        await until_held(held, 0)

        assert set(await states(bed, leases)) == {"done"}
        assert (held.done, held.failed) == (40, 0)
