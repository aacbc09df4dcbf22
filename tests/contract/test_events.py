"""Events: numbered after the commit, without gaps, from any number on, missed by nobody."""

import asyncio
import random
from itertools import pairwise

import asyncpg

from telecine.engine.events.stream import Event, EventBatch, Heartbeat, Reset, Stream
from telecine.facts import Done
from telecine.store.open import open_store
from tests.support.builders import a_flow, a_stage
from tests.support.scene import Scene, alone, alone_on_postgres, on_postgres, played

FILM = a_flow(a_stage("cut"), a_stage("publish", "cut"))
PATIENCE = 20.0
SAY = "insert into unnumbered (at, kind, data) values (1, $1, null)"


async def events(stream: Stream, after: int = 0, **more: int) -> list[Event]:
    batch = await stream.after(after, **more)
    assert isinstance(batch, EventBatch)
    return list(batch.events)


async def tell(scene: Scene, jobs: int) -> None:
    for _ in range(jobs):
        await scene.submit()


@played
async def test_a_jobs_events_tell_its_story_in_order_with_names(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.run_all()

    told = await events(Stream(scene.store), job_id=job_id)

    assert [(e.kind, e.stage) for e in told if e.kind.startswith(("job", "task"))] == [
        ("job.created", None),
        ("task.started", "cut"),
        ("task.done", "cut"),
        ("task.started", "publish"),
        ("task.done", "publish"),
        ("job.completed", None),
    ]
    assert {e.job_id for e in told} == {job_id}
    assert told[1].worker == scene.worker


@played
async def test_events_of_tasks_say_which_position_of_the_stage(scene: Scene) -> None:
    await scene.enact(a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True)))
    job_id = await scene.submit()
    await scene.settle(await scene.claim(), Done(plan={"cut": ["a", "b", "c"]}))
    await scene.settle(await scene.claim(3))

    told = await events(Stream(scene.store), job_id=job_id)

    started = [(e.stage, e.position) for e in told if e.kind == "task.started"]
    assert started == [("plan", 0), ("cut", 0), ("cut", 1), ("cut", 2)]
    assert {e.position for e in told if e.task_id is None} == {None}


@alone
async def test_events_resume_after_any_number(scene: Scene) -> None:
    await scene.enact(FILM)
    await tell(scene, 5)
    await scene.run_all()
    stream = Stream(scene.store)
    whole = await events(stream)

    for place, event in enumerate(whole):
        assert await events(stream, event.seq) == whole[place + 1 :]
    assert [e.seq for e in whole] == list(range(1, len(whole) + 1))


@played
async def test_pages_of_events_join(scene: Scene) -> None:
    await scene.enact(FILM)
    await tell(scene, 7)
    stream = Stream(scene.store)

    found, seq = [], 0
    while True:
        batch = await stream.after(seq, limit=3)
        assert isinstance(batch, EventBatch)
        if not batch.events:
            break
        found.extend(batch.events)
        seq = batch.seq

    assert found == await events(stream)
    assert len(found) == 8


@played
async def test_a_reader_of_one_quiet_job_moves_on_with_the_others(scene: Scene) -> None:
    """Otherwise pruning would one day overtake it, and it would be reset for nothing."""
    await scene.enact(FILM)
    job_id = await scene.submit()
    stream = Stream(scene.store)
    first = await stream.after(0, job_id=job_id)
    await tell(scene, 3)

    second = await stream.after(first.seq, job_id=job_id)

    assert isinstance(second, EventBatch)
    assert (second.events, second.seq) == ((), await stream.newest())


@alone
async def test_who_asks_for_what_was_pruned_is_reset_to_the_newest(scene: Scene) -> None:
    await scene.enact(FILM)
    await tell(scene, 4)
    stream = Stream(scene.store)
    newest = await stream.newest()
    await scene.sql("delete from event where seq <= 2")
    await scene.sql("update event_counter set pruned = 2")

    assert await stream.after(1) == Reset(newest)
    assert await stream.after(newest + 1) == Reset(newest), "a number that was never given: a backup was restored"
    assert [e.seq for e in await events(stream, 2)] == list(range(3, newest + 1))


@played
async def test_following_yields_events_as_they_come_and_heartbeats_between(scene: Scene) -> None:
    await scene.enact(FILM)
    await tell(scene, 1)
    stream = Stream(scene.store)
    following = stream.follow(poll=0.01, heartbeat=0.05)

    async with asyncio.timeout(PATIENCE):
        quiet = await anext(following)
        job_id = await scene.submit()
        event = await anext(following)
        while isinstance(event, Heartbeat):
            event = await anext(following)
    await following.aclose()

    assert quiet == Heartbeat(await stream.newest() - 1)
    assert isinstance(event, Event)
    assert (event.kind, event.job_id) == ("job.created", job_id)


@played
async def test_a_follower_that_fell_behind_hears_so_and_goes_on(scene: Scene) -> None:
    await scene.enact(FILM)
    await tell(scene, 2)
    stream = Stream(scene.store)
    newest = await stream.newest()
    await scene.sql("update event_counter set pruned = 2")
    following = stream.follow(after=0, poll=0.01)

    async with asyncio.timeout(PATIENCE):
        first = await anext(following)
        await tell(scene, 1)
        second = await anext(following)
    await following.aclose()

    assert first == Reset(newest)
    assert isinstance(second, Event)
    assert second.seq == newest + 1


@on_postgres
async def test_an_open_transaction_delays_only_its_own_events_and_its_late_commit_is_missed_by_nobody(
    scene: Scene,
) -> None:
    await scene.enact(FILM)
    stream = Stream(scene.store)
    before = await stream.newest()
    slow = await asyncpg.connect(scene.url)
    transaction = slow.transaction()
    await transaction.start()
    await slow.execute(SAY, "slow")

    await tell(scene, 3)
    meanwhile = await events(stream, before)
    await transaction.commit()
    late = await events(stream, meanwhile[-1].seq)
    await slow.close()

    assert [e.kind for e in meanwhile] == ["job.created"] * 3
    assert [(e.kind, e.seq) for e in late] == [("slow", before + 4)]


@on_postgres
async def test_a_transaction_that_gave_up_leaves_no_gap(scene: Scene) -> None:
    await scene.enact(FILM)
    stream = Stream(scene.store)
    before = await stream.newest()
    slow = await asyncpg.connect(scene.url)
    transaction = slow.transaction()
    await transaction.start()
    await slow.execute(SAY, "never")
    await tell(scene, 1)
    await transaction.rollback()
    await slow.close()
    await tell(scene, 1)

    assert [e.seq for e in await events(stream, before)] == [before + 1, before + 2]


@alone_on_postgres
async def test_readers_that_number_at_once_give_each_event_one_number(scene: Scene) -> None:
    """Two stores are two processes as far as the database can tell."""
    await scene.enact(FILM)
    other = open_store(scene.url, dice=random.Random(2), size=4)
    readers = [Stream(scene.store), Stream(other)]
    count = 300

    async def write() -> None:
        connection = await asyncpg.connect(scene.url)
        for number in range(count):
            await connection.execute(SAY, f"event {number}")
        await connection.close()

    async def read(stream: Stream) -> list[Event]:
        found: list[Event] = []
        async for event in stream.follow(after=0, poll=0.001):
            if isinstance(event, Event):
                found.append(event)
            if len([e for e in found if e.kind.startswith("event ")]) == count:
                return found
        raise AssertionError("following never ends")

    async with asyncio.timeout(PATIENCE * 3):
        _, *told = await asyncio.gather(write(), *(read(readers[n % 2]) for n in range(4)))
    await other.close()

    assert all(some == told[0] for some in told)
    assert [e.seq for e in told[0]] == list(range(1, len(told[0]) + 1))


@alone_on_postgres
async def test_thousands_of_events_get_their_numbers_without_a_nested_walk(scene: Scene) -> None:
    """Fresh tables have no statistics; a plan that compares all with all took minutes here."""
    count = 20_000
    await scene.sql(f"insert into unnumbered (at, kind) select 1, 'x' from generate_series(1, {count})")
    stream = Stream(scene.store)

    async with asyncio.timeout(PATIENCE):
        newest = await stream.newest()

    assert newest == count
    assert (await events(stream, count - 3))[0].seq == count - 2


@on_postgres
async def test_writers_that_commit_in_any_order_are_all_heard_once(scene: Scene) -> None:
    await scene.enact(FILM)
    stream = Stream(scene.store)
    start = await stream.newest()
    writers, each = 8, 15

    async def write(name: int) -> None:
        dice = random.Random(name)
        connection = await asyncpg.connect(scene.url)
        for number in range(each):
            async with connection.transaction():
                await connection.execute(SAY, f"{name}.{number}")
                await connection.execute("select pg_sleep($1)", dice.random() * 0.02)
        await connection.close()

    async def read() -> list[Event]:
        found: list[Event] = []
        async for event in stream.follow(after=start, poll=0.001):
            if isinstance(event, Event):
                found.append(event)
            if len(found) == writers * each:
                return found
        raise AssertionError("following never ends")

    async with asyncio.timeout(PATIENCE * 3):
        told, *_ = await asyncio.gather(read(), *(write(name) for name in range(writers)))

    assert all(b.seq == a.seq + 1 for a, b in pairwise(told))
    for name in range(writers):
        assert [e.kind for e in told if e.kind.startswith(f"{name}.")] == [f"{name}.{n}" for n in range(each)]
