"""Keys, events, logs and workers grow old too."""

import pytest

from telecine.engine import Registration
from telecine.engine.accounts.keys import Keys, Scope
from telecine.engine.events.stream import Reset, Stream
from telecine.engine.jobs.delete_job import delete
from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.engine.maintenance.retention import NOTHING, Ages
from telecine.engine.maintenance.watch_folders import WatchedFiles
from telecine.engine.queries import ownership
from telecine.errors import KeyReused, NotFound, WrongState
from telecine.facts import DAY, JobId, LogEntry
from telecine.world import World
from tests.support.builders import a_flow
from tests.support.retention import count, retire_all
from tests.support.scene import Scene, alone, played

SONG = a_flow("hum", name="song")
FILM = a_flow("look", "cut")


@played
async def test_an_idempotency_key_lives_thirty_days_beyond_the_end_of_its_job(scene: Scene) -> None:
    await scene.enact(SONG)
    ages = Ages(jobs=7 * DAY)
    job_id = await scene.submit("song", key="k")
    await scene.submit("song", key="open")
    scene.pass_time(40 * DAY)
    await scene.settle((await scene.claim())[0])
    scene.pass_time(29 * DAY)

    early = await retire_all(scene, ages)
    same = await scene.engine.jobs.submit("song", key="k")
    with pytest.raises(KeyReused):
        await scene.engine.jobs.submit("song", {"other": 1}, key="k")
    scene.pass_time(2 * DAY)
    late = await retire_all(scene, ages)
    fresh = await scene.engine.jobs.submit("song", key="k")

    assert (early.jobs, early.keys) == (1, 0)
    assert (same.job_id, same.created) == (job_id, False)
    assert (late.keys, fresh.created) == (1, True)
    assert [row["key"] for row in await scene.sql("select key from idempotency order by key")] == ["k", "open"]


@alone
async def test_old_events_are_pruned_up_to_a_number_also_where_nobody_reads(scene: Scene) -> None:
    await scene.enact(SONG)
    for _ in range(3):
        await scene.submit("song")
    scene.pass_time(8 * DAY)
    await scene.submit("song")

    retired = await retire_all(scene)
    stream = Stream(scene.store)
    newest = await stream.newest()

    assert retired.events == 4, "one worker, three jobs"
    assert await stream.after(0) == Reset(newest)
    assert await stream.after(3) == Reset(newest)
    [event] = (await stream.after(4)).events  # type: ignore[union-attr]
    assert (event.kind, event.seq) == ("job.created", 5)
    assert await retire_all(scene) == NOTHING


@played
async def test_an_old_event_behind_a_young_one_waits_for_it(scene: Scene) -> None:
    """Numbers follow commits and times follow statements, so the two orders may cross; the edge must not."""
    await scene.enact(SONG)
    await scene.submit("song")
    scene.pass_time(8 * DAY)
    await scene.submit("song")
    await scene.sql(f"insert into {scene.new_events} (at, kind) values ({scene.now - 8 * DAY}, 'late')")

    assert (await retire_all(scene)).events == 2
    assert await count(scene, "event") == 2


@played
async def test_old_logs_go_although_their_job_stays(scene: Scene) -> None:
    await scene.enact(FILM)
    await scene.submit()
    [lease] = await scene.claim()
    await scene.engine.log([LogEntry(task_id=lease.task_id, token=1, message="old")])
    scene.pass_time(61 * DAY)
    await scene.engine.log([LogEntry(task_id=lease.task_id, token=1, message="new")])

    assert (await retire_all(scene)).logs == 1
    assert [row["message"] for row in await scene.sql("select message from job_log")] == ["new"]


@played
async def test_workers_that_left_long_ago_go(scene: Scene) -> None:
    await scene.enact(FILM)
    await scene.engine.retire(await scene.enlist("bob"))
    scene.pass_time(91 * DAY)
    await scene.engine.retire(await scene.enlist("eve"))

    assert (await retire_all(scene)).workers == 1
    assert [worker.name for worker in await scene.views.workers(gone=True)] == ["ann", "eve"]


@played
async def test_which_key_a_worker_came_with_goes_with_the_worker(scene: Scene) -> None:
    await scene.enact(FILM)
    remotes = RemoteWorkers(scene.engine)
    old = await remotes.enlist("1f0c9a3be27d", "first", Registration(name="bob", hostname="far", lanes=()))
    await scene.engine.retire(old)
    scene.pass_time(91 * DAY)
    here = await remotes.enlist("1f0c9a3be27d", "second", Registration(name="eve", hostname="far", lanes=()))

    early = await remotes.key_of(old)
    await retire_all(scene)

    assert (early, await remotes.key_of(old), await remotes.key_of(here)) == ("1f0c9a3be27d", None, "1f0c9a3be27d")
    assert await count(scene, "worker_key") == 1


@played
async def test_a_deleted_job_is_forgotten_after_ninety_days_and_never_comes_back_before(scene: Scene) -> None:
    await scene.enact(SONG)
    gone, kept = [await scene.submit("song") for _ in range(2)]
    await scene.settle(await scene.claim(2))
    await delete(scene.engine, gone)
    scene.pass_time(89 * DAY)

    early = await retire_all(scene)
    hidden = await scene.store.read(lambda: ownership.owners([gone], None))
    scene.pass_time(2 * DAY)
    late = await retire_all(scene)

    assert (early.deleted, late.deleted) == (0, 1)
    assert hidden == await scene.store.read(lambda: ownership.owners([gone], None)) == {}
    assert [row["job_id"] for row in await scene.sql("select job_id from archive")] == [kept]
    assert await count(scene, "job_gone") == 0


@played
async def test_a_deleted_job_stays_known_while_a_file_of_it_is_shown(scene: Scene) -> None:
    await scene.enact(SONG)
    job = await scene.submit("song")
    await scene.settle(await scene.claim())
    await delete(scene.engine, job)
    await scene.sql(
        "insert into artifact (job_id, token, name, stage, position, stage_version, version_id, created_at)"
        f" values ({job}, 1, 'film', 'hum', 0, 1, 7, 1)"
    )
    scene.pass_time(400 * DAY)

    shown = await retire_all(scene)
    await scene.sql("delete from artifact")
    freed = await retire_all(scene)

    assert (shown.deleted, freed.deleted) == (0, 1)


@played
async def test_a_watched_file_is_forgotten_a_year_after_it_was_last_seen(scene: Scene) -> None:
    watched = WatchedFiles(scene.store)
    for path in ("/films/here.mp4", "/films/gone.mp4"):
        await watched.put(path, "1-1")
    scene.pass_time(400 * DAY)

    nobody_looked = await retire_all(scene)
    await watched.touch(["/films/here.mp4", "/films/never.mp4"])
    looked = await retire_all(scene)

    assert (nobody_looked.watched, looked.watched) == (0, 1)
    assert await watched.known(["/films/here.mp4", "/films/gone.mp4"]) == {"/films/here.mp4": "1-1"}


@played
async def test_keys_and_sessions_are_forgotten_some_time_after_their_end(scene: Scene) -> None:
    keys = Keys(scene.store, World())
    await keys.issue(Scope.OWNER, owner="ada", name="for ever")
    await keys.issue(Scope.OWNER, owner="ada", name="expired", life=DAY)
    await keys.issue(Scope.ADMIN, kind="session", name="session", life=DAY)
    revoked = await keys.issue(Scope.OWNER, owner="ada", name="revoked", life=900 * DAY)
    worked = await keys.issue(Scope.WORKER, name="far", life=DAY)
    await keys.revoke(revoked.id)
    await RemoteWorkers(scene.engine).enlist(worked.id, "first", Registration(name="far", hostname="far", lanes=()))

    found = []
    for days in (7, 2, 80, 3):
        scene.pass_time(days * DAY)
        found.append((await retire_all(scene)).secrets)

    assert found == [0, 1, 0, 2]
    assert sorted(key.name for key in await keys.list()) == ["far", "for ever"]


@played
async def test_an_archived_job_says_so_when_it_is_to_be_changed(scene: Scene) -> None:
    await scene.enact(SONG)
    job_id = await scene.submit("song")
    await scene.fail_for_good((await scene.claim())[0])
    scene.pass_time(365 * DAY)
    assert (await retire_all(scene)).jobs == 1

    engine = scene.engine
    for asked in (engine.jobs.retry(job_id), engine.jobs.cancel(job_id), engine.jobs.edit(job_id, priority="high")):
        with pytest.raises(
            WrongState, match=f"job {job_id} was archived: it can be read, not changed; submit it again"
        ):
            await asked
    with pytest.raises(NotFound, match="there is no job 4711"):
        await engine.jobs.retry(JobId(4711))
