"""PostgreSQL: jobs of one task have no stage row, but for those from before that."""

from telecine.engine.audit import Auditor, Finding
from telecine.engine.shelf import Shelf
from telecine.facts import Failed, Word
from tests.audit import audit
from tests.make import a_flow, a_stage
from tests.scene import Scene, on_postgres

SONG = a_flow(a_stage("sing"), name="song")

# What the migration leaves as it was: a job of one task with a stage row.
AS_BEFORE = """
with before as (update task set alone = false where alone returning job_id, stage)
insert into stage_row (job_id, number, name, state, waits, total, remaining)
select job_id, stage, 'sing', 'ready', 0, 1, 1 from before
"""


@on_postgres
async def test_a_job_from_before_has_a_stage_row_and_goes_its_way_with_it(scene: Scene) -> None:
    await scene.enact(SONG)
    for _ in range(3):
        await scene.engine.submit("song")
    await scene.sql(AS_BEFORE)
    await scene.engine.submit("song")

    [first, second, third, lone] = await scene.claim(4)
    await scene.settle([first, lone])
    await scene.engine.settle([Word(second.task_id, second.token, Failed("no", permanent=True))])
    await scene.engine.cancel(third.job_id)
    await scene.engine.release([(third.task_id, third.token)])
    await scene.engine.retry(second.job_id)
    await scene.settle(await scene.claim(1))

    rows = await scene.sql(
        "select name, state, remaining, ended_at is not null as ended from stage_row order by job_id"
    )
    assert [(row["state"], row["remaining"], row["ended"]) for row in rows] == [
        *(("done", 0, True), ("done", 0, True), ("cancelled", 0, True))
    ]
    assert await audit(scene.sql) == []
    assert await findings(scene) == ()


@on_postgres
async def test_the_audit_sees_a_stage_that_is_told_twice(scene: Scene) -> None:
    await scene.enact(SONG)
    job_id = (await scene.engine.submit("song")).job_id
    await scene.sql(
        "insert into stage_row (job_id, number, name, state, waits, total, remaining)"
        f" values ({job_id}, 0, 'sing', 'ready', 0, 1, 1)"
    )

    assert [one.check for one in await findings(scene)] == ["stage"]


async def findings(scene: Scene) -> tuple[Finding, ...]:
    return await Auditor(scene.store, Shelf()).look_at_everything()
