"""Why a task waits, how a subject stands, what a worker is called: read off the queue."""

import pytest

from telecine.engine.queries import waiting_reasons
from telecine.errors import NotFound
from telecine.facts import HOUR, LEASE, MINUTE, Done, Failed, Mode, Piece, Status
from telecine.graph import lane
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.scene import Scene, played

FILM = a_flow(
    a_stage("look", title="Looking at the film", phase=Status.PLANNING),
    a_stage("cut", "look", fan_out=True, title="Cutting"),
    a_stage("publish", "cut", title="Publishing"),
)


async def waits(scene: Scene, job_id: int, place: int = 0) -> waiting_reasons.Waiting:
    tasks = (await scene.views.tasks(job_id)).items
    found = (await scene.views.task(tasks[place].id)).waiting
    assert found is not None
    return found


# -- Why it waits ------------------------------------------------------------------------------------


@played
async def test_a_task_waits_for_needs_by_name(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()

    found = await waits(scene, job_id, place=1)

    assert (found.reason, found.needs, found.text) == ("needs", ("cut",), "it needs: cut")


@played
async def test_a_task_waits_for_other_jobs(scene: Scene) -> None:
    await scene.enact(FILM)
    first = await scene.submit()
    second = await scene.submit(after=(first,))

    found = await waits(scene, second)

    assert (found.reason, found.after) == ("after", (first,))


@played
async def test_a_task_of_a_paused_flow_waits_for_that(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.engine.jobs.pause("film")

    assert (await waits(scene, job_id)).reason == "paused"


@played
async def test_a_task_of_later_is_scheduled_until_its_time_and_then_in_the_queue(scene: Scene) -> None:
    await scene.enact(FILM)
    due = scene.now + HOUR
    job_id = await scene.submit(run_at=due)
    [task] = (await scene.views.tasks(job_id, stage="look")).items

    found = await waits(scene, job_id)
    scene.pass_time(HOUR)
    await scene.beat()
    [late] = (await scene.views.tasks(job_id, stage="look")).items

    assert (task.shown, task.claim_state, found.reason, found.until) == ("scheduled", "unclaimed", "parked", due)
    assert (late.shown, (await waits(scene, job_id)).reason) == ("ready", "queue")


@played
async def test_a_failed_task_is_retrying_until_the_stored_time(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    [answer] = await scene.settle(await scene.claim(), Failed("wobbly", code="io"))
    [line] = (await scene.views.tasks(job_id, stage="look")).items

    task = await scene.views.task(line.id)

    assert (task.shown, task.claim_state, task.ready_at) == ("retrying", "retrying", answer.ready_at)
    assert task.waiting is not None
    assert (task.waiting.reason, task.waiting.until) == ("parked", answer.ready_at)
    assert task.error == {"code": "io", "message": "wobbly"}
    assert [(a.token, a.attempt, a.outcome, a.ready_at) for a in task.attempts] == [(1, 1, "failed", answer.ready_at)]


@played
async def test_a_task_whose_lane_no_live_worker_serves_says_so(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()

    served = await waits(scene, job_id)
    await scene.engine.set_mode(scene.worker, Mode.DRAINING)
    draining = await waits(scene, job_id)
    await scene.engine.set_mode(scene.worker, Mode.ACTIVE)
    scene.pass_time(MINUTE)
    silent = await waits(scene, job_id)

    assert (served.reason, draining.reason, silent.reason) == ("queue", "no_worker", "no_worker")
    assert "film/look@1" in silent.text


@played
async def test_a_worker_with_the_label_serves_the_narrower_lane(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.settle(await scene.claim(), Done(plan={"cut": [Piece(input=1, labels=("gpu",))]}))

    alone = await waits(scene, job_id, place=1)
    await scene.enlist("gpu box", labels=("gpu",))
    helped = await waits(scene, job_id, place=1)

    assert (alone.reason, helped.reason) == ("no_worker", "queue")
    assert lane("film", "cut", 1, ["gpu"]) in alone.text


@played
async def test_the_place_in_the_queue_counts_who_is_ahead_in_the_same_lane(scene: Scene) -> None:
    await scene.enact(FILM, a_flow("cut", name="other"))
    for _ in range(5):
        await scene.submit("other")
    await scene.submit(run_at=scene.now + HOUR)
    ids = [await scene.submit() for _ in range(3)]

    places = [(await waits(scene, job_id)).ahead for job_id in ids]
    await scene.engine.jobs.edit(ids[2], priority=10)
    after = [(await waits(scene, job_id)).ahead for job_id in ids]

    assert (places, after) == ([0, 1, 2], [1, 2, 0])


@played
async def test_the_place_in_the_queue_is_counted_only_so_far(scene: Scene) -> None:
    await scene.enact(FILM)
    for _ in range(4):
        job_id = await scene.submit()
    [task] = (await scene.views.tasks(job_id, stage="look")).items

    rows = await scene.ask("view_task", id=task.id, most=2)

    assert rows[0]["ahead"] == 2
    assert waiting_reasons.MAX_AHEAD == 10_000


@played
async def test_a_task_of_a_job_that_is_being_stopped_says_so(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    [task] = (await scene.views.tasks(job_id, stage="look")).items
    await scene.sql(f"update {scene.table('job')} set cancel_asked = true")

    found = await scene.views.task(task.id)

    assert found.waiting is not None
    assert found.waiting.reason == "stopping"


@played
async def test_claim_states_follow_the_lease(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()

    async def now() -> tuple[str, str]:
        [task] = (await scene.views.tasks(job_id, stage="look")).items
        return task.state, task.claim_state

    seen = [await now()]
    [lease] = await scene.claim()
    seen.append(await now())
    scene.pass_time(LEASE)
    seen.append(await now())
    await scene.engine.sweep()  # nobody swept before: everybody gets a fresh term
    await scene.settle(lease, Failed("no", permanent=True))
    seen.append(await now())
    await scene.engine.jobs.retry(job_id)
    await scene.settle(await scene.claim(), Done(plan={"cut": [1]}))
    seen.append(await now())

    assert seen == [
        ("ready", "unclaimed"),
        ("running", "claimed"),
        ("running", "expired"),
        ("error", "failed"),
        ("done", "completed"),
    ]


# -- Dead letters ------------------------------------------------------------------------------------


@played
async def test_dead_letters_are_the_tasks_that_failed_their_jobs_the_latest_first(scene: Scene) -> None:
    await scene.enact(FILM, a_flow(a_stage("hum", optional=True, policy=a_policy(max_attempts=1)), name="song"))
    for code in ("one", "two", "three"):
        await scene.submit()
        await scene.fail_for_good((await scene.claim())[0], code=code)
        scene.pass_time(1)
    await scene.submit("song")
    await scene.settle(await scene.claim(), Failed("off key"))

    whole = await scene.views.failed_tasks()
    first = await scene.views.failed_tasks(limit=2)
    second = await scene.views.failed_tasks(limit=2, cursor=first.next)

    assert [t.error["code"] for t in whole.items if t.error] == ["three", "two", "one"]
    assert (*first.items, *second.items) == whole.items
    assert second.next is None
    assert (await scene.views.failed_tasks(flow="song")).items == ()


# -- Subjects ----------------------------------------------------------------------------------------


@played
async def test_a_subject_stands_as_its_open_jobs_do(scene: Scene) -> None:
    await scene.enact(FILM)
    await scene.submit()
    job_id = await scene.submit(subject=("movie", "7"))
    queued = await scene.views.subject("movie", "7")
    lease = (await scene.claim(2))[1]
    await scene.beat(lease, progress=0.5)
    processing = await scene.views.subject("movie", "7")
    [answer] = await scene.settle(lease, Failed("no line", code="io"))
    retrying = await scene.views.subject("movie", "7")

    assert (queued.status, queued.job_id, queued.activity) == ("queued", job_id, "Looking at the film")
    assert queued.waiting is not None
    assert queued.waiting.ahead == 1
    assert (processing.status, processing.activity) == ("processing", "Looking at the film")
    assert processing.progress == pytest.approx(0.5 / 3)
    assert (retrying.status, retrying.next_at, retrying.attempt) == ("retrying", answer.ready_at, 1)
    assert (retrying.max_attempts, retrying.error) == (3, {"code": "io", "message": "no line"})


@played
async def test_facts_decide_about_a_subject_without_an_open_job(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit(subject=("movie", "7"))
    await scene.settle(await scene.claim(), Done(facts={"poster": True}, stop=True))

    plain = await scene.views.subject("movie", "7")
    judged = await scene.views.subject("movie", "7", lambda facts: "ready" if facts["poster"] else "missing-assets")

    assert (plain.status, plain.facts, plain.job_id) == ("known", {"poster": True}, job_id)
    assert judged.status == "ready"


@played
async def test_a_subject_whose_last_job_failed_shows_the_error_beside_its_facts(scene: Scene) -> None:
    await scene.enact(FILM)
    await scene.submit(subject=("movie", "7"))
    await scene.fail_for_good((await scene.claim())[0], code="codec")

    found = await scene.views.subject("movie", "7")

    assert found.status == "unknown"
    assert found.error is not None
    assert found.error["code"] == "codec"
    with pytest.raises(NotFound):
        await scene.views.subject("movie", "8")
