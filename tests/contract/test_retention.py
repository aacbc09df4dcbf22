"""What is old goes away, batch by batch; what somebody may still need does not."""

import asyncio
import json
import random
from dataclasses import replace

import pytest

from telecine.engine.jobs.graph_cache import GraphCache
from telecine.engine.maintenance import retention
from telecine.engine.maintenance.audit import Auditor
from telecine.engine.maintenance.retention import NOTHING, Ages, Retired, retire_jobs
from telecine.errors import NotFound
from telecine.facts import DAY, Done, Failed, KeptArtifact, Lease, LogEntry
from telecine.store.open import open_store
from tests.support.builders import a_flow, a_stage
from tests.support.retention import count, retire_all
from tests.support.scene import Scene, played

FILM = a_flow(a_stage("look"), a_stage("cut", "look", fan_out=True), a_stage("publish", "cut"))
SONG = a_flow("hum", name="song")
LONG = 31 * DAY
TABLES = ("job", "stage", "task", "attempt", "artifact", "job_log", "job_after")


async def keep(scene: Scene, lease: Lease, *keys: str) -> None:
    items = [KeptArtifact(name=key, token=lease.token, key=key, size=1, sha256="ab") for key in keys]
    await scene.engine.keep(lease.task_id, lease.token, items)


async def a_film(scene: Scene, *keys: str, publish: bool = False, subject: str = "7", **options: object) -> int:
    """A job that ran to its end and left these files."""
    job_id = await scene.submit(subject=("movie", subject), **options)
    [look] = await scene.claim()
    await scene.engine.log([LogEntry(task_id=look.task_id, token=look.token, message="looking")])
    await scene.settle(look, Done(plan={"cut": [{"n": 1}, {"n": 2}]}))
    cuts = await scene.claim(2)
    if keys:
        await keep(scene, cuts[0], *keys)
    await scene.settle(cuts, Done(result="cut"))
    await scene.settle(await scene.claim(), Done(publish=publish))
    return job_id


@played
async def test_an_old_job_moves_to_the_archive_and_is_found_as_before(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await a_film(scene, "k1", owner="ann")
    views = scene.views
    job, tasks, attempts = await views.job(job_id), await views.tasks(job_id), await views.attempts(job_id)
    logs, outputs = await views.logs(job_id), await views.outputs(job_id)
    scene.pass_time(LONG)

    retired = await retire_all(scene)

    assert (retired.jobs, retired.files) == (1, ("k1",))
    assert [await count(scene, table) for table in TABLES] == [0] * len(TABLES)
    assert await views.job(job_id) == replace(job, archived_at=scene.now)
    assert await views.tasks(job_id) == tasks
    assert await views.attempts(job_id) == attempts
    assert await views.logs(job_id) == logs
    assert await views.outputs(job_id) == outputs
    first = await views.tasks(job_id, limit=3)
    rest = await views.tasks(job_id, limit=3, cursor=first.next)
    assert (*first.items, *rest.items) == tasks.items
    with pytest.raises(NotFound):
        await views.task(tasks.items[0].id)
    assert await Auditor(scene.store, GraphCache()).look_at_everything() == ()


@played
async def test_only_jobs_that_ended_long_enough_ago_are_moved(scene: Scene) -> None:
    await scene.enact(SONG)
    old = await scene.submit("song")
    await scene.engine.jobs.cancel(old)
    still_open = await scene.submit("song")
    scene.pass_time(30 * DAY)
    just = await scene.submit("song")
    await scene.engine.jobs.cancel(just)
    scene.pass_time(1)

    retired = await retire_all(scene)

    assert retired.jobs == 1
    assert [job.id for job in (await scene.views.jobs()).items] == [just, still_open]
    assert (await scene.views.job(old)).archived_at == scene.now


@played
async def test_batches_take_the_oldest_first_and_may_end_between_any_two(scene: Scene) -> None:
    await scene.enact(SONG)
    jobs = []
    for _ in range(5):
        jobs.append(await scene.submit("song"))
        await scene.engine.jobs.cancel(jobs[-1])
        scene.pass_time(1)
    scene.pass_time(LONG)

    first = await retire_jobs(scene.store, GraphCache(), Ages(), most=2)
    left = [job.id for job in (await scene.views.jobs()).items]
    rest = await retire_all(scene)

    assert first == Retired(jobs=2)
    assert left == [jobs[4], jobs[3], jobs[2]]
    assert rest.jobs == 3
    assert await count(scene, "archive") == 5


@played
async def test_files_of_the_version_that_is_shown_stay_when_its_job_goes(scene: Scene) -> None:
    await scene.enact(FILM)
    await a_film(scene, "old", publish=True)
    await a_film(scene, "new", publish=True)
    scene.pass_time(LONG)

    retired = await retire_all(scene)

    assert (retired.jobs, retired.versions, retired.files) == (2, 1, ("old",))
    assert [row["key"] for row in await scene.sql("select key from artifact")] == ["new"]
    assert [row["number"] for row in await scene.sql("select number from subject_version")] == [2]
    assert await Auditor(scene.store, GraphCache()).look_at_everything() == ()


@played
async def test_files_of_a_kept_version_stay_until_nobody_keeps_it(scene: Scene) -> None:
    await scene.enact(FILM)
    await a_film(scene, "old", publish=True)
    await a_film(scene, "new", publish=True)
    await scene.sql("update subject_version set keep = true where number = 1")
    scene.pass_time(LONG)

    kept = await retire_all(scene)
    await scene.sql("update subject_version set keep = false")
    freed = await retire_all(scene)

    assert (kept.jobs, kept.files) == (2, ())
    assert (freed.versions, freed.files) == (1, ("old",))


@played
async def test_a_version_whose_job_is_archived_goes_once_another_took_its_place(scene: Scene) -> None:
    await scene.enact(FILM)
    await a_film(scene, "old", publish=True)
    scene.pass_time(LONG)
    first = await retire_all(scene)
    await a_film(scene, "new", publish=True)
    scene.pass_time(7 * DAY - 1)

    young = await retire_all(scene)
    scene.pass_time(1)
    old = await retire_all(scene)

    assert (first.jobs, first.files) == (1, ())
    assert (young.versions, young.files) == (0, ())
    assert (old.jobs, old.versions, old.files) == (0, 1, ("old",))


@played
async def test_a_version_that_was_replaced_goes_although_its_job_is_still_there(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await a_film(scene, "old", publish=True)
    await a_film(scene, "new", publish=True)

    at_once = await retire_all(scene, Ages(versions=0))
    assert (at_once.jobs, at_once.versions, at_once.files) == (0, 1, ("old",))
    assert [row["key"] for row in await scene.sql("select key from artifact")] == ["new"]
    assert (await scene.views.job(job_id)).output_count == 0
    assert await Auditor(scene.store, GraphCache()).look_at_everything() == ()


@played
async def test_a_version_outlives_its_job_for_as_long_as_it_could_be_shown_again(scene: Scene) -> None:
    await scene.enact(FILM)
    await a_film(scene, "old", publish=True)
    scene.pass_time(LONG)
    await a_film(scene, "new", publish=True)

    archived = await retire_all(scene)
    scene.pass_time(7 * DAY)
    freed = await retire_all(scene)

    assert (archived.jobs, archived.versions, archived.files) == (1, 0, ())
    assert (freed.jobs, freed.versions, freed.files) == (0, 1, ("old",))


@played
async def test_a_version_that_is_shown_or_kept_again_in_the_last_moment_stays(scene: Scene) -> None:
    """The look was earlier, without a lock; what it found is looked at again under the lock of the subject."""
    await scene.enact(FILM)
    await a_film(scene, "old", publish=True)
    await a_film(scene, "new", publish=True)
    await scene.sql("update subject_version set keep = true where number = 1")
    ids = [row["id"] for row in await scene.sql("select id from subject_version")]

    assert await scene.store.run(lambda: retention._drop_versions(ids)) == NOTHING
    assert await count(scene, "artifact") == 2


@played
async def test_bytes_that_another_row_names_are_not_free(scene: Scene) -> None:
    await scene.enact(FILM)
    await a_film(scene, "shared", "alone")
    scene.pass_time(LONG)
    await a_film(scene, "shared")

    retired = await retire_all(scene)

    assert (retired.jobs, retired.files) == (1, ("alone",))


@played
async def test_a_job_that_was_retried_meanwhile_is_not_moved(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.fail_for_good((await scene.claim())[0])
    scene.pass_time(LONG)
    old = (await scene.sql("select id, ended_at, generation, 1 as tasks from job"))[0]
    await scene.engine.jobs.retry(job_id)
    await scene.fail_for_good((await scene.claim())[0])
    scene.pass_time(LONG)

    document = await scene.store.read(lambda: retention.documents_of([job_id], GraphCache()))
    moved = await scene.store.run(lambda: retention.move([old], document, 0))

    assert moved == NOTHING
    assert (await scene.views.job(job_id)).generation == 2
    assert (await retire_all(scene)).jobs == 1


@played
async def test_two_passes_at_once_move_each_job_once(scene: Scene) -> None:
    await scene.enact(SONG)
    count_of = 40
    for _ in range(count_of):
        await scene.submit("song")
    await scene.run_all()
    scene.pass_time(LONG)
    other = open_store(scene.url, dice=random.Random(2))
    other.now = scene.now

    async def all_of(store: object) -> Retired:
        total = NOTHING
        while batch := await retire_jobs(store, GraphCache(), Ages(), most=5):  # type: ignore[arg-type]
            total = total + batch
        return total

    passes = await asyncio.gather(all_of(scene.store), all_of(other), all_of(scene.store))
    rest = await all_of(other)
    await other.close()

    assert sum(some.jobs for some in passes) + rest.jobs == count_of
    assert await count(scene, "archive") == count_of
    assert await count(scene, "job") == 0


@played
async def test_a_job_may_come_after_one_that_is_in_the_archive(scene: Scene) -> None:
    await scene.enact(SONG)
    good = await scene.submit("song")
    await scene.run_all()
    scene.pass_time(LONG)
    await retire_all(scene)

    follower = await scene.submit("song", after=(good,))

    assert await scene.run_all() == 1
    assert (await scene.views.job(follower)).status == "completed"


@played
async def test_a_failed_job_keeps_its_story_in_the_archive(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit(spec={"file": "a.mov"})
    await scene.settle(await scene.claim(), Failed("no such codec", code="codec", permanent=True))
    scene.pass_time(LONG)
    await retire_all(scene)

    job = await scene.views.job(job_id)
    [attempt] = (await scene.views.attempts(job_id)).items
    [row] = await scene.sql("select owner, flow, outcome, document from archive")

    assert (job.status, job.spec) == ("failed", {"file": "a.mov"})
    assert job.error == {"code": "codec", "message": "no such codec", "stage": "look", "attempt": 1}
    assert (attempt.outcome, attempt.error) == ("failed", {"code": "codec", "message": "no such codec"})
    assert (row["flow"], row["outcome"]) == ("film", "failed")
    assert set(json.loads(row["document"])) == {"job", "tasks", "attempts", "artifacts", "logs"}


@played
async def test_a_job_whose_graph_is_lost_holds_up_nobody(scene: Scene) -> None:
    await scene.enact(SONG)
    broken, _ = await scene.submit("song"), await scene.submit("song")
    await scene.run_all()
    await scene.give_rows()
    await scene.sql(f"update {scene.table('job')} set flow_id = 4711 where id = {broken}")
    scene.pass_time(LONG)

    assert (await retire_all(scene)).jobs == 1
    assert await count(scene, "job") == 1
