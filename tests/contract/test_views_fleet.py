"""Lists of jobs, workers, flows and counts."""

import pytest

from telecine.engine.queries.fleet import shown_of
from telecine.engine.queries.job_lists import JobFilter
from telecine.errors import NotFound
from telecine.facts import DAY, HOUR, MINUTE, SECOND, HeldLease, Mode, Status
from telecine.worker_facts import Totals
from tests.support.builders import a_flow, a_stage
from tests.support.scene import Scene, played

FILM = a_flow(a_stage("look", phase=Status.PLANNING), a_stage("cut", "look"))
SONG = a_flow("hum", name="song")


async def ids(scene: Scene, **wanted: object) -> list[int]:
    return [job.id for job in (await scene.views.jobs(JobFilter(**wanted))).items]  # type: ignore[arg-type]


# -- Lists of jobs -----------------------------------------------------------------------------------


@played
async def test_jobs_are_found_by_status_flow_owner_and_subject_newest_first(scene: Scene) -> None:
    await scene.enact(FILM, SONG)
    failed = await scene.submit(owner="ann")
    await scene.fail_for_good((await scene.claim())[0])
    planning = await scene.submit(subject=("movie", "7"), owner="bob")
    await scene.claim()
    song = await scene.submit("song", owner="ann")
    cancelled = await scene.submit(owner="bob")
    await scene.engine.jobs.cancel(cancelled)
    pending = await scene.submit()

    assert await ids(scene) == [pending, cancelled, song, planning, failed]
    assert await ids(scene, status="open") == [pending, song, planning]
    assert await ids(scene, status="pending") == [pending, song]
    assert await ids(scene, status="planning") == [planning]
    assert await ids(scene, status="failed") == [failed]
    assert await ids(scene, status="cancelled", owner="bob") == [cancelled]
    assert await ids(scene, flow="song") == [song]
    assert await ids(scene, flow="film", status="open") == [pending, planning]
    assert await ids(scene, owner="ann") == [song, failed]
    assert await ids(scene, owner="ann", status="open") == [song]
    assert await ids(scene, owner="") == [pending]
    assert await ids(scene, subject=("movie", "7")) == [planning]
    assert await ids(scene, subject=("movie", "7"), owner="ann") == []


@played
async def test_jobs_are_found_by_the_time_of_their_submit(scene: Scene) -> None:
    await scene.enact(FILM)
    days = {}
    for day in range(6):
        days[day] = [await scene.submit() for _ in range(5)]
        scene.pass_time(DAY)
    start = scene.now - 6 * DAY

    found = await ids(scene, since=start + DAY, until=start + 3 * DAY)

    assert found == [*reversed(days[2]), *reversed(days[1])]
    assert await ids(scene, since=start + 5 * DAY, status="open") == [*reversed(days[5])]
    assert await ids(scene, until=start) == []
    assert await ids(scene, since=scene.now) == []
    assert len(await ids(scene, since=start, flow="film")) == 30


@played
async def test_pages_of_jobs_join_without_gap_or_repeat_while_new_ones_come(scene: Scene) -> None:
    await scene.enact(FILM)
    wanted = [await scene.submit() for _ in range(7)]

    found, cursor = [], None
    while True:
        page = await scene.views.jobs(limit=3, cursor=cursor)
        found.extend(job.id for job in page.items)
        await scene.submit()
        if page.next is None:
            break
        cursor = page.next

    assert found == [*reversed(wanted)]


@played
async def test_ended_jobs_are_listed_by_their_end_in_pages(scene: Scene) -> None:
    await scene.enact(SONG)
    jobs = [await scene.submit("song") for _ in range(5)]
    order = [jobs[2], jobs[0], jobs[4], jobs[1], jobs[3]]
    for job_id in order:
        await scene.engine.jobs.cancel(job_id)
        scene.pass_time(1)

    found, cursor = [], None
    while cursor is not None or not found:
        page = await scene.views.jobs(JobFilter(status="cancelled"), limit=2, cursor=cursor)
        found.extend(job.id for job in page.items)
        cursor = page.next

    assert found == [*reversed(order)]


# -- Workers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "liveness", "activity", "word"),
    [
        ("disabled", "offline", "busy", "disabled"),
        ("draining", "offline", "busy", "offline"),
        ("draining", "online", "busy", "draining"),
        ("active", "online", "busy", "busy"),
        ("active", "online", "idle", "idle"),
    ],
)
def test_the_one_word_is_the_first_fact_that_holds(mode: str, liveness: str, activity: str, word: str) -> None:
    assert shown_of({"mode": mode, "liveness": liveness, "activity": activity}) == word


@played
async def test_a_worker_shows_three_facts_its_tasks_and_its_totals(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    idle = await scene.views.worker(scene.worker)
    [lease] = await scene.claim()
    held = [HeldLease(task_id=lease.task_id, token=lease.token, progress=0.25)]
    await scene.engine.beat(scene.worker, held, Totals(load=1, done=3, failed=2))

    busy = await scene.views.worker(scene.worker)

    assert (idle.shown, idle.mode, idle.liveness, idle.activity) == ("idle", "active", "online", "idle")
    assert (busy.shown, busy.load, busy.done, busy.failed, busy.slots) == ("busy", 1, 3, 2, 4)
    [task] = busy.tasks
    assert (task.task_id, task.job_id, task.flow, task.stage) == (lease.task_id, job_id, "film", "look")
    assert (task.token, task.progress) == (1, 0.25)


@played
async def test_a_worker_is_offline_after_half_a_minute_without_a_beat(scene: Scene) -> None:
    await scene.enact(FILM)

    scene.pass_time(30 * SECOND - 1)
    just = await scene.views.worker(scene.worker)
    scene.pass_time(1)
    late = await scene.views.worker(scene.worker)

    assert (just.liveness, late.liveness, late.shown) == ("online", "offline", "offline")


@played
async def test_a_worker_that_left_is_listed_only_when_asked_for(scene: Scene) -> None:
    await scene.enact(FILM)
    bob = await scene.enlist("bob")
    await scene.engine.retire(bob)
    await scene.engine.set_mode(scene.worker, Mode.DRAINING)

    assert [(w.name, w.shown) for w in await scene.views.workers()] == [("ann", "draining")]
    assert [(w.name, w.shown) for w in await scene.views.workers(gone=True)] == [
        ("ann", "draining"),
        ("bob", "offline"),
    ]
    with pytest.raises(NotFound):
        await scene.views.worker(bob + 1_000)


@played
async def test_a_revoked_worker_is_disabled_for_good(scene: Scene) -> None:
    await scene.enact(FILM)

    await scene.engine.set_mode(scene.worker, Mode.DISABLED, revoke=True)

    assert (await scene.views.worker(scene.worker)).shown == "disabled"


# -- Flows and counts --------------------------------------------------------------------------------


@played
async def test_flows_show_their_stages_and_whether_they_are_paused(scene: Scene) -> None:
    await scene.enact(FILM, SONG)
    await scene.engine.jobs.pause("song")

    film, song = await scene.views.flows()

    assert (film.name, film.paused, song.name, song.paused) == ("film", False, "song", True)
    assert [(s.name, s.phase, s.needs, s.lane) for s in film.stages] == [
        ("look", "planning", (), "film/look@1"),
        ("cut", "processing", ("look",), "film/cut@1"),
    ]


@played
async def test_counts_tell_states_lanes_ages_and_the_last_minute(scene: Scene) -> None:
    await scene.enact(FILM, SONG)
    await scene.submit()
    await scene.settle(await scene.claim())
    await scene.claim()
    for _ in range(2):
        await scene.submit()
    await scene.submit(run_at=scene.now + HOUR)
    scene.pass_time(2 * MINUTE)
    await scene.submit("song")
    await scene.engine.jobs.cancel(await scene.submit("song"))
    await scene.beat()

    stats = await scene.views.stats()

    assert stats.jobs == {
        "pending": 4,
        "processing": 1,
        "completed": 0,
        "failed": 0,
        "cancelled": 1,
    }
    assert stats.tasks == {"new": 3, "ready": 3, "parked": 1, "running": 1}
    assert [(lane.lane, lane.ready, lane.oldest_ms) for lane in stats.lanes] == [
        ("film/look@1", 2, 2 * MINUTE),
        ("song/hum@1", 1, 0),
    ]
    assert stats.oldest_ready_ms == 2 * MINUTE
    assert stats.ended_last_minute == {"completed": 0, "failed": 0, "cancelled": 1}
    assert (stats.workers, stats.slots) == (1, 4)


@played
async def test_counts_stop_at_the_cap(scene: Scene) -> None:
    await scene.enact(SONG)
    for _ in range(5):
        await scene.submit("song")

    stats = await scene.views.stats(cap=3)

    assert (stats.cap, stats.jobs["pending"], stats.tasks["ready"]) == (3, 3, 3)


@played
async def test_counts_of_an_empty_database_are_nought(scene: Scene) -> None:
    stats = await scene.views.stats()

    assert (stats.lanes, stats.oldest_ready_ms, stats.workers) == ((), 0, 0)
    assert set(stats.tasks.values()) == {0}
