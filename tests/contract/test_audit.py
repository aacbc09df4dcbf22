"""The audit finds nothing in what the engine does, and everything that somebody breaks by hand."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from telecine.engine.events.stream import EventBatch, Stream
from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance.audit import AuditFinding, Auditor
from telecine.facts import HOUR, Done, Failed, KeptArtifact, LogEntry, Piece
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.scene import ROWS, Scene, alone, played

FILM = a_flow(
    a_stage("look"),
    a_stage("cut", "look", fan_out=True),
    a_stage("poster", "look", optional=True, policy=a_policy(max_attempts=1)),
    a_stage("extra", "look", fan_out=True),
    a_stage("publish", "cut poster extra"),
)
CORRUPTIONS = {
    "stage.total": "update {stage} set total = total + 1 where job_id = 1 and number = 1",
    "stage.remaining": "update {stage} set remaining = remaining - 1 where job_id = 1 and number = 1",
    "stage.failed": "update {stage} set failed = 1 where job_id = 1 and number = 1",
    "stage.cancelled": "update {stage} set cancelled = 1 where job_id = 1 and number = 1",
    "stage.waits": "update {stage} set waits = 2 where job_id = 1 and number = 4",
    "stage.state": "update {stage} set state = 'done' where job_id = 1 and number = 1",
    "stage": "delete from {stage} where job_id = 1 and number = 4",
    "task.stage": "update task set stage = 9 where job_id = 1 and stage = 4",
    "job.phase": "update {job} set phase = 'planning' where id = 1",
    "job.status": "update {job} set status = 'validating' where id = 1",
    "job.outcome": "update {job} set status = 'completed', outcome = 'completed', ended_at = 1 where id = 1",
    "job.failing": "update {job} set failing = true where id = 1",
    "job.started_at": "update {job} set started_at = null, status = 'pending' where id = 1",
    "job.warnings": "update {job} set warnings = 3 where id = 1",
    "job.waits": "update {job} set waits = 1 where id = 1",
    "job.flow_id": "update {job} set flow_id = 99 where id = 1",
    "job_after.orphan": "insert into job_after (job_id, after_id) values (1, 4711)",
    "task.token": "update task set token = token + 1 where job_id = 1 and stage = 0",
    "task.state": "update {attempt} set state = 'ready' where job_id = 1 and state = 'done'",
    "task.lease": "update task set lease_until = null where state = 'running'",
    "task.worker": "update task set worker = 4711 where state = 'running'",
    "task.parked": "update task set parked = true where state = 'running'",
    "task.kept": "update task set kept = 0 where kept > 0",
    "stage.orphan": "insert into {stage} (job_id, number, name, state, waits, total, remaining)"
    " values (4711, 0, 'x', 'new', 0, 0, 0)",
    "task.orphan": "update task set job_id = 4711 where job_id = 1",
    "job_log.orphan": "update job_log set job_id = 4711",
    "attempt.orphan": "update {attempt} set task_id = task_id + 4711 where job_id = 1",
    "artifact.orphan": "update artifact set job_id = 4711 where job_id = 1",
    "idempotency.orphan": "update idempotency set job_id = 4711",
    "subject_version.orphan": "update subject_version set subject_id = 'nobody'",
    "version_of_artifact.orphan": "update artifact set version_id = 4711",
    "current_version.orphan": "update subject set current_version = 4711",
}


async def rich(scene: Scene) -> None:
    """Jobs in many situations: job 1 is in the middle of its work, others have ended in every way."""
    await scene.enact(FILM)
    first = await scene.submit(key="k", subject=("movie", "7"))
    [look] = await scene.claim()
    await scene.engine.keep(look.task_id, look.token, [KeptArtifact(name="seen", token=1, value=1)])
    await scene.engine.log([LogEntry(task_id=look.task_id, token=look.token, message="hello")])
    await scene.settle(look, Done(plan={"cut": [1, 2, Piece(input=3, optional=True)]}, publish=True))
    leases = {(lease.stage, lease.position): lease for lease in await scene.claim(9)}
    await scene.fail_for_good(leases["cut", 2])
    await scene.fail_for_good(leases["poster", 0])
    await scene.settle(leases["cut", 1], Failed("wobbly"))
    waiting = await scene.submit(after=(first,))
    await scene.engine.jobs.cancel(await scene.submit(skip=("poster",)))
    failed = await scene.submit()
    other = await scene.enlist("bob")
    [lease] = await scene.claim(1, other)
    await scene.fail_for_good(lease)
    await scene.engine.jobs.retry(failed)
    await scene.settle(await scene.claim(1, other), Done(stop=True))
    await scene.submit(run_at=scene.now + HOUR)
    assert waiting


def an_auditor(scene: Scene) -> Auditor:
    return Auditor(scene.store, GraphCache())


async def lift_checks(scene: Scene) -> None:
    """Let the schema no longer refuse what we are about to break."""
    if not scene.is_postgres:
        await scene.sql("pragma ignore_check_constraints = on")
        return
    for row in await scene.sql(
        "select conrelid::regclass::text as t, conname as c from pg_constraint"
        " where contype = 'c' and connamespace = current_schema()::regnamespace"
    ):
        await scene.sql(f"alter table {row['t']} drop constraint {row['c']}")


@asynccontextmanager
async def undone(scene: Scene) -> AsyncIterator[None]:
    """Put the rows back as they were."""
    names = ("job", "job_after", "stage", "task", "attempt", "artifact", "job_log", "idempotency", "subject")
    tables = [*(scene.table(name) for name in names), "subject_version"]
    for table in tables:
        await scene.sql(f"create table saved_{table} as select * from {table}")
    yield
    for table in tables:
        await scene.sql(f"delete from {table}")
        await scene.sql(f"insert into {table} select * from saved_{table}")
        await scene.sql(f"drop table saved_{table}")


@played
async def test_the_audit_finds_nothing_in_what_the_engine_did(scene: Scene) -> None:
    await rich(scene)

    for batch in (1, 3, 500):
        assert await an_auditor(scene).look_at_everything(batch) == ()


@played
async def test_the_audit_finds_nothing_at_any_moment_of_a_jobs_life(scene: Scene) -> None:
    await scene.enact(FILM)
    auditor = an_auditor(scene)
    for outcome in (Done(), Failed("no"), Failed("no", permanent=True)):
        await scene.submit()
        [look] = await scene.claim()
        await scene.settle(look, Done(plan={"cut": [1, 2], "extra": [1]}))
        while leases := await scene.claim(1):
            assert await auditor.look_at_everything() == ()
            await scene.settle(leases, outcome)
            assert await auditor.look_at_everything() == ()
            scene.pass_time(HOUR)
    for job in (await scene.views.jobs()).items:
        if job.status == "failed":
            await scene.engine.jobs.retry(job.id)
            assert await auditor.look_at_everything() == ()
    await scene.run_all()
    assert await auditor.look_at_everything() == ()


@played
async def test_the_audit_finds_nothing_while_others_work(scene: Scene) -> None:
    """It looks between and beside their transactions; a difference that is only a race would be a false alarm."""
    await scene.enact(FILM)
    jobs = [await scene.submit() for _ in range(30)]
    auditor = an_auditor(scene)
    looks = 0

    async def work(name: str) -> None:
        worker = await scene.enlist(name)
        while leases := await scene.claim(3, worker):
            for lease in leases:
                plan = {"cut": [1, 2, 3]} if lease.stage == "look" else None
                late = lease.stage == "cut" and lease.job_id % 7 == 0
                await scene.settle(lease, Failed("no", permanent=True) if late else Done(plan=plan))

    working = asyncio.gather(*(work(f"w{n}") for n in range(4)))
    while not working.done():
        assert await auditor.look_at_everything(10) == ()
        looks += 1
    await working

    assert looks > 1
    assert {(await scene.views.job(job_id)).status for job_id in jobs} == {"completed", "failed"}


@alone
async def test_the_audit_finds_what_is_broken_by_hand(scene: Scene) -> None:
    """One after the other on the same rows, each undone before the next."""
    await rich(scene)
    await lift_checks(scene)
    for check, corruption in CORRUPTIONS.items():
        async with undone(scene):
            await scene.sql(corruption.format(**{name: scene.table(name) for name in ROWS}))

            findings = await an_auditor(scene).look_at_everything()

            assert check in {finding.check for finding in findings}, check
            assert all(finding.message.endswith(".") for finding in findings)
    assert await an_auditor(scene).look_at_everything() == ()


@alone
async def test_a_finding_is_one_sentence_and_one_event(scene: Scene) -> None:
    await rich(scene)
    await scene.sql(CORRUPTIONS["stage.remaining"].format(**{name: scene.table(name) for name in ROWS}))
    auditor = an_auditor(scene)
    before = await Stream(scene.store).newest()

    [finding] = (await auditor.look()).findings
    await auditor.look_at_everything()
    batch = await Stream(scene.store).after(before)

    text = "job 1: remaining of stage 'cut' is stored as 1, and is 2."
    assert finding == AuditFinding("stage.remaining", text, job_id=1)
    assert isinstance(batch, EventBatch)
    [event] = batch.events
    assert (event.kind, event.job_id) == ("audit.finding", 1)
    assert event.data == {"check": "stage.remaining", "message": text}


@played
async def test_the_audit_goes_round_in_batches(scene: Scene) -> None:
    await rich(scene)
    auditor = an_auditor(scene)

    places = [(await auditor.look(batch=2)).next for _ in range(4)]

    assert [place.part for place in places if place] == ["jobs", "jobs", "stage", "stage"]
