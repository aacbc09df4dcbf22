"""PostgreSQL: a job that is one plain task has no other row, until somebody asks something of it."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from telecine.engine import Submission
from telecine.engine.jobs.delete_job import delete
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.jobs.job_rows import hold
from telecine.engine.maintenance.audit import AuditFinding, Auditor
from telecine.engine.maintenance.retention import retire
from telecine.errors import Rejected
from telecine.facts import DAY, MINUTE, Done, Failed, Lease, Released
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed
from tests.support.scene import ROWS

pytestmark = pytest.mark.parametrize("bed", ["postgres"], indirect=True)
SONG = a_flow("sing", name="song")
WITH_ROWS = {"subject": ("video", "a")}


async def rows(bed: Bed) -> list[int]:
    return [await bed.count(bed.table(name)) for name in ROWS]


async def findings(bed: Bed) -> tuple[AuditFinding, ...]:
    return await Auditor(bed.store, GraphCache()).look_at_everything()


async def test_a_plain_job_that_goes_well_never_has_another_row(bed: Bed) -> None:
    await bed.enact(SONG)
    one = await bed.submit("song", owner="ann", spec={"key": "c"})
    await bed.engine.jobs.submit_many([Submission(flow="song", owner=who) for who in ("ann", "bob")])
    leases = await bed.claim(3)
    running = await bed.job(one)
    for lease in leases:
        await bed.done(lease, result={"high": "c"})

    ended = await bed.job(one)

    assert await rows(bed) == [0, 0, 0]
    assert [await bed.count(name) for name in ROWS] == [3, 3, 3]
    assert (running["status"], running["outcome"], running["started_at"]) == ("processing", None, bed.now)
    assert (ended["status"], ended["outcome"], ended["ended_at"]) == ("completed", "completed", bed.now)
    assert (ended["owner"], ended["flow"], ended["phase"]) == ("ann", "song", "uploading_outputs")
    [attempt] = await bed.attempts(leases[0].task_id)
    assert (attempt["outcome"], attempt["worker"], attempt["try"], attempt["generation"]) == ("done", bed.worker, 1, 1)
    await bed.audited()
    assert await findings(bed) == ()


@pytest.mark.parametrize(
    "how",
    [WITH_ROWS, {"dedupe_key": "d"}, {"run_at": MINUTE}, {"after": True}],
    ids=["about something", "that is unique", "for later", "after another"],
)
async def test_a_job_of_which_there_is_more_to_say_has_rows_from_the_start(bed: Bed, how: dict[str, Any]) -> None:
    await bed.enact(SONG)
    first = await bed.submit("song")
    how = {**how, **({"after": (first,)} if "after" in how else {})}
    how = {**how, **({"run_at": bed.now + how["run_at"]} if "run_at" in how else {})}

    await bed.submit("song", **how)

    assert await rows(bed) == [1, 1, 0]


async def _cancel(bed: Bed, lease: Lease) -> None:
    await bed.engine.jobs.cancel(lease.job_id)


async def _edit(bed: Bed, lease: Lease) -> None:
    await bed.engine.jobs.edit(lease.job_id, priority=9)


async def _fail(bed: Bed, lease: Lease) -> None:
    await bed.say(lease, Failed("no"))


async def _release(bed: Bed, lease: Lease) -> None:
    await bed.say(lease, Released())


async def _lose(bed: Bed, lease: Lease) -> None:
    await bed.lose(lease)


async def _delete(bed: Bed, lease: Lease) -> None:
    await delete(bed.engine, lease.job_id)


ASKED = {"cancel": _cancel, "edit": _edit, "fail": _fail, "release": _release, "lose": _lose, "delete": _delete}


@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
async def test_whoever_asks_something_of_a_job_gives_it_its_rows(
    bed: Bed, asked: Callable[[Bed, Lease], Awaitable[None]]
) -> None:
    await bed.enact(SONG)
    job_id = await bed.submit("song", owner="ann", spec={"key": "c"})
    lease = await bed.take()
    before = await bed.job(job_id)

    await asked(bed, lease)

    after = await bed.job(job_id)
    same = ("id", "flow_id", "flow", "owner", "spec", "created_at", "started_at", "phase", "generation")
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    assert (await rows(bed))[:2] == [1, 1]
    [task] = await bed.sql("select flow_id, owner, spec, phase, priority, outcome from task")
    assert set(task.values()) == {None}
    await bed.audited()
    assert await findings(bed) == ()


async def test_a_job_that_went_well_can_be_deleted(bed: Bed) -> None:
    await bed.enact(SONG)
    job_id = await bed.submit("song")
    await bed.say(await bed.take(), Done())

    assert await delete(bed.engine, job_id)

    assert [await bed.count(name) for name in (*ROWS, "task")] == [0, 0, 0, 0]


async def test_of_jobs_of_one_moment_the_first_to_come_is_the_first_to_begin_with_rows_or_without(bed: Bed) -> None:
    await bed.enact(SONG)
    hows: list[dict[str, Any]] = [{}, WITH_ROWS, {}, {"dedupe_key": "d"}, {}, WITH_ROWS]

    jobs = [await bed.submit("song", **how) for how in hows]

    assert [lease.job_id for lease in await bed.claim(6)] == jobs


async def test_who_asks_something_of_several_jobs_locks_their_tasks_before_any_job(bed: Bed) -> None:
    """As a claim does, which would otherwise wait for him, and he for it."""
    await bed.enact(SONG)
    with_rows, without = await bed.submit("song", **WITH_ROWS), await bed.submit("song")
    steps = hold([with_rows, without])

    first = next(steps)

    assert getattr(first, "name", "") == "job_row_add"
    steps.close()


async def test_the_audit_sees_a_job_that_is_told_twice(bed: Bed) -> None:
    await bed.enact(SONG)
    job_id = await bed.submit("song")
    await bed.sql(f"insert into job_row select * from job where id = {job_id}")

    assert {one.check for one in await findings(bed)} == {"job"}


async def test_the_audit_sees_a_stage_that_is_told_twice(bed: Bed) -> None:
    await bed.enact(SONG)
    job_id = await bed.submit("song")
    await bed.sql(
        "insert into stage_row (job_id, number, name, state, waits, total, remaining)"
        f" values ({job_id}, 0, 'sing', 'ready', 0, 1, 1)"
    )

    assert [one.check for one in await findings(bed)] == ["stage", "stage.orphan"]


async def test_the_audit_sees_a_job_without_rows_whose_graph_is_lost(bed: Bed) -> None:
    await bed.enact(SONG)
    await bed.submit("song")
    await bed.sql("update task set flow_id = 4711")

    assert [one.check for one in await findings(bed)] == ["job.flow_id"]


FALSEHOODS = {
    "a number that is not its job's": "update task set id = id + 1000000",
    "a state in which nobody looks for it": "update task set state = 'error'",
    "done without an outcome": "update task set state = 'done', ended_at = 5, done_by = 1",
    "done, and failed": "update task set state = 'done', outcome = 'failed', ended_at = 5, done_by = 1",
    "done by nobody": "update task set state = 'done', outcome = 'completed', ended_at = 5",
    "an outcome before its end": "update task set outcome = 'completed'",
    "of nobody": "update task set owner = null",
    "without a spec": "update task set spec = null",
    "off the scale": "update task set priority = 11",
    "tried again": "update task set token = 2",
    "an outcome where its job has rows": "update task set flow_id = null, outcome = 'completed'",
}


@pytest.mark.parametrize("falsehood", FALSEHOODS.values(), ids=FALSEHOODS)
async def test_the_database_refuses_a_falsehood_about_a_task_that_is_its_job(bed: Bed, falsehood: str) -> None:
    await bed.enact(SONG)
    await bed.submit("song")

    with pytest.raises(Rejected, match="violates check constraint"):
        await bed.sql(falsehood)


async def test_counts_are_capped_for_jobs_of_both_kinds_together(bed: Bed) -> None:
    await bed.enact(SONG)
    for how in [{}, WITH_ROWS] * 3:
        await bed.submit("song", owner="ann", **how)

    [open_] = await bed.ask("stats_open", most=2)
    [figure] = await bed.ask("figure_jobs", most=2)
    [tasks] = await bed.ask("stats_tasks_of_owner", owner="ann", most=2)

    assert (open_["count"], figure["count"], tasks["count"]) == (2, 2, 2)


async def test_a_job_without_rows_whose_graph_is_lost_is_kept_and_holds_up_nobody(bed: Bed) -> None:
    await bed.enact(SONG)
    broken, _ = await bed.submit("song"), await bed.submit("song")
    for lease in await bed.claim(2):
        await bed.done(lease)
    await bed.sql(f"update task set flow_id = 4711 where id = {broken}")
    bed.pass_time(400 * DAY)

    retired = [batch.jobs async for batch in retire(bed.store, GraphCache()) if batch.jobs]

    assert retired == [1]
    assert [row["id"] for row in await bed.sql("select id from job")] == [broken]
