"""PostgreSQL: events wait for their numbers, many in one row; whoever gives the numbers takes rows whole."""

from telecine.engine import Registration, Submission
from telecine.engine.events.stream import Event, EventBatch, Stream
from telecine.facts import WorkerId
from tests.support.builders import a_flow, a_stage
from tests.support.scene import Scene, alone_on_postgres, played

SONG = a_flow(a_stage("sing"), name="song")
MANY = 30


async def told(stream: Stream, after: int = 0) -> list[Event]:
    batch = await stream.after(after)
    assert isinstance(batch, EventBatch)
    return list(batch.events)


async def with_jobs(scene: Scene, jobs: int) -> list[int]:
    await scene.enact(SONG)
    return [one.job_id for one in await scene.engine.jobs.submit_many([Submission(flow="song")] * jobs)]


@alone_on_postgres
async def test_what_is_said_alike_of_many_is_one_row(scene: Scene) -> None:
    jobs = await with_jobs(scene, MANY)
    await scene.settle(await scene.claim(MANY))

    rows = await scene.sql("select kind, events from unnumbered where events > 1 order by id")

    assert [(row["kind"], row["events"]) for row in rows] == [
        *(("job.created", MANY), ("task.started", MANY), ("task.done", MANY), ("job.completed", MANY))
    ]
    found = [e for e in await told(Stream(scene.store)) if e.job_id is not None]
    assert [e.seq for e in found] == list(range(found[0].seq, found[0].seq + 4 * MANY))
    for place, kind in enumerate(("job.created", "task.started", "task.done", "job.completed")):
        some = found[place * MANY : (place + 1) * MANY]
        assert {e.kind for e in some} == {kind}
        assert [e.job_id for e in some] == jobs
    assert await scene.sql("select 1 from unnumbered") == []


@played
async def test_each_event_has_its_own_task_token_stage_and_worker(scene: Scene) -> None:
    """Also when the last words of two workers come in one batch."""
    await with_jobs(scene, 4)
    other = WorkerId(await scene.engine.enlist(Registration(name="bob", hostname="there", lanes=tuple(scene.lanes))))
    leases = [*await scene.claim(2), *await scene.claim(2, other)]
    start = await scene.engine.events.newest()

    await scene.settle([leases[n] for n in (2, 0, 3, 1)])

    done = {(e.task_id, e.token, e.job_id, e.worker) for e in await told(scene.engine.events, start) if e.task_id}
    assert done == {(x.task_id, x.token, x.job_id, x.worker) for x in leases}
    ended = [e for e in await told(scene.engine.events, start) if e.kind == "job.completed"]
    assert {(e.task_id, e.token, e.stage, e.worker) for e in ended} == {(None, None, None, None)}
    assert {e.job_id for e in ended} == {x.job_id for x in leases}


@alone_on_postgres
async def test_rows_are_taken_whole_and_less_than_wanted_means_that_no_more_are_there(scene: Scene) -> None:
    await scene.enact(SONG)
    stream = Stream(scene.store)
    await stream.newest()
    rows = "(1, 'a', '{1,2,3}'), (1, 'b', null), (1, 'c', '{4,5}'), (1, 'd', '{6}')"
    await scene.sql(f"insert into unnumbered (at, kind, job_ids) values {rows}")

    assert [await stream.number(wanted) for wanted in (3, 2, 9, 9)] == [3, 3, 1, 0]

    found = [(e.kind, e.job_id) for e in (await told(stream))[-7:]]
    assert found == [("a", 1), ("a", 2), ("a", 3), ("b", None), ("c", 4), ("c", 5), ("d", 6)]


@alone_on_postgres
async def test_a_row_of_a_late_commit_is_numbered_behind_those_that_were_heard(scene: Scene) -> None:
    await scene.enact(SONG)
    stream = Stream(scene.store)
    start = await stream.newest()
    async with scene.store.connections.borrow() as slow:  # type: ignore[attr-defined]
        await slow.execute("begin")
        await slow.execute("insert into unnumbered (at, kind, job_ids) values (1, 'slow', '{7,8}')")
        await scene.sql("insert into unnumbered (at, kind, job_ids) values (1, 'quick', '{1,2,3}')")
        first = await told(stream, start)
        await slow.execute("commit")

    late = await told(stream, first[-1].seq)

    assert [e.kind for e in first] == ["quick"] * 3
    assert [(e.kind, e.seq) for e in late] == [("slow", start + 4), ("slow", start + 5)]


@alone_on_postgres
async def test_thousands_that_are_submitted_together_are_told_by_rows_that_are_not_too_long(scene: Scene) -> None:
    jobs = await with_jobs(scene, 5_001)

    rows = await scene.sql("select events, job_ids[1] as first from unnumbered where kind = 'job.created' order by id")

    assert [(row["events"], row["first"]) for row in rows] == [(5_000, jobs[0]), (1, jobs[5_000])]
