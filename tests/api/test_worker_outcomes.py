"""A worker over HTTP has an outcome for which alone the server's database seems to be away."""

import asyncio

import pytest

from telecine.engine import Submission
from telecine.facts import Done
from telecine.worker import outbox as module
from telecine.worker.attempts import HeldAttempts
from telecine.worker.outbox import Outbox
from telecine.world import World
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, LANES, a_hand, held
from tests.support.engine_fixture import Bed

# The module has its tables for itself.
TRIGGER = (
    """create function complain() returns trigger language plpgsql as $$ begin
       if new.result ->> 'raise' is not null then
           raise exception 'it is asked for' using errcode = new.result ->> 'raise';
       end if; return new; end $$""",
    "create trigger complain before update on task for each row execute function complain()",
)


async def until_held(some: HeldAttempts, count: int) -> None:
    async with asyncio.timeout(20):
        while len(some.attempts) != count:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("front", ["postgres"], indirect=True)
async def test_neighbours_do_not_wait_for_one_outcome_for_which_the_database_is_away(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "TOGETHER_SECONDS", 0.3)
    bed: Bed = front.bed
    for statement in TRIGGER:
        await bed.sql(statement)
    hand = await a_hand(front)
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit_many([Submission(flow="film")] * 3)
    leases = await hand.words.claim(hand.worker, "request-1", LANES, 3)
    some = HeldAttempts()
    outbox = Outbox(hand.words, some, World(), lambda: None)
    for lease, result in zip(leases, ({"a": 1}, {"raise": "57014"}, {"b": 2}), strict=True):
        attempt = held(lease)
        some.attempts[attempt.key] = attempt
        outbox.say(attempt, Done(result=result))
    running = asyncio.create_task(outbox.run())
    try:
        await until_held(some, 1)
        assert [(await bed.task(lease.task_id))["state"] for lease in leases] == ["done", "running", "done"]
        await bed.sql("drop trigger complain on task")
        await until_held(some, 0)
        assert (some.done, some.failed) == (3, 0)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
