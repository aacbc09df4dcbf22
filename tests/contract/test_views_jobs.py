"""What a job shows, checked against hand-made stories."""

import json
from dataclasses import asdict

import pytest

from telecine.errors import BadSpec, NotFound
from telecine.facts import HOUR, Done, Failed, KeptArtifact, LogEntry, Piece, Released, Status
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.scene import Scene, played

FILM = a_flow(
    a_stage("look", phase=Status.PLANNING, title="Look at the film"),
    a_stage("cut", "look", fan_out=True, weight=6.0),
    a_stage("poster", "look", optional=True, policy=a_policy(max_attempts=1)),
    a_stage("publish", "cut poster", phase=Status.UPLOADING_OUTPUTS, weight=2.0),
)


@played
async def test_a_new_job_shows_its_spec_its_stages_and_no_progress(scene: Scene) -> None:
    await scene.enact(FILM)

    job = await scene.views.job(await scene.submit(spec={"file": "a.mov"}, owner="ann", subject=("movie", "7")))

    assert (job.status, job.progress, job.spec, job.owner) == ("pending", 0.0, {"file": "a.mov"}, "ann")
    assert (job.subject, job.plan, job.created_at, job.started_at) == (("movie", "7"), {}, scene.now, None)
    assert [(s.name, s.state, s.total) for s in job.stages] == [
        ("look", "ready", 1),
        ("cut", "new", 0),
        ("poster", "new", 1),
        ("publish", "new", 1),
    ]
    assert job.stages[0].title == "Look at the film"


@played
async def test_progress_weighs_stages_and_counts_what_runs_by_its_share(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    [look] = await scene.claim()
    await scene.beat(look, progress=0.5)

    halfway = await scene.views.job(job_id)
    await scene.settle(look, Done(plan={"cut": [1, 2, 3, 4]}))
    planned = await scene.views.job(job_id)
    cuts = [lease for lease in await scene.claim(5) if lease.stage == "cut"]
    await scene.settle(cuts[:1])
    await scene.beat(*cuts[1:], progress=0.25)
    cutting = await scene.views.job(job_id)

    assert halfway.progress == pytest.approx(0.5 / 10)
    assert planned.progress == pytest.approx(1 / 10)
    assert cutting.progress == pytest.approx((1 + 6 * (1 + 3 * 0.25) / 4) / 10)
    assert (cutting.status, cutting.plan) == ("processing", {"cut": 4})
    assert [(s.name, s.state, s.counts) for s in cutting.stages][1:3] == [
        ("cut", "running", {"done": 1, "running": 3}),
        ("poster", "running", {"running": 1}),
    ]


@played
async def test_the_line_of_a_job_in_a_list_shows_the_same_progress(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.settle(await scene.claim(), Done(plan={"cut": [1, 2, 3, 4]}))
    leases = await scene.claim(3)
    await scene.settle(leases[:1])
    await scene.beat(*leases[1:], progress=0.75)

    job = await scene.views.job(job_id)
    [line] = (await scene.views.jobs()).items

    assert line.progress == pytest.approx(job.progress)
    assert 0.1 < line.progress < 1.0


@played
async def test_what_was_kept_counts_also_while_its_task_waits_or_begins_anew(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.settle((await scene.claim())[0], Done(plan={"cut": [1, 2]}))
    first, second = [lease for lease in await scene.claim(5) if lease.stage == "cut"]
    await scene.engine.keep(first.task_id, first.token, [KeptArtifact(name="half", token=first.token, value=1)])
    await scene.beat(first, second, progress=0.5)

    await scene.settle([first, second], Released("drained"))
    waiting = (await scene.views.job(job_id)).progress
    [line] = (await scene.views.jobs()).items
    await scene.claim(2)
    anew = (await scene.views.job(job_id)).progress

    assert waiting == pytest.approx((1 + 6 * 0.5 / 2) / 10), "one of two kept something"
    assert (line.progress, anew) == (pytest.approx(waiting), pytest.approx(waiting))


@played
async def test_a_finished_job_shows_files_times_workers_and_full_progress(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    begun = scene.now
    [look] = await scene.claim()
    scene.pass_time(1_000)
    file = KeptArtifact(name="a.m4s", token=look.token, key="1/look/a.m4s", size=3, sha256="ab", facts={"frames": 9})
    await scene.engine.keep(look.task_id, look.token, [file, KeptArtifact(name="seen", token=look.token, value=1)])
    await scene.settle(look, Done(plan={"cut": [1]}))
    other = await scene.enlist("bob")
    await scene.settle(await scene.claim(5, other))
    await scene.run_all()

    job = await scene.views.job(job_id)

    assert (job.status, job.progress, job.retries, job.error) == ("completed", 1.0, 0, None)
    assert (job.created_at, job.started_at, job.ended_at) == (begun, begun, begun + 1_000)
    assert [worker.name for worker in job.workers] == ["ann", "bob"]
    assert job.output_count == 1, "a checkpoint is no file"
    [output] = job.outputs
    assert (output.stage, output.key, output.size, output.sha256) == ("look", "1/look/a.m4s", 3, "ab")
    assert output.facts == {"frames": 9}
    assert (job.stages[0].started_at, job.stages[0].ended_at) == (begun, begun + 1_000)
    assert json.loads(json.dumps(asdict(job)))["outputs"][0]["key"] == "1/look/a.m4s"


@played
async def test_a_failed_job_shows_what_broke_where_and_how_often(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.settle(await scene.claim(), Done(plan={"cut": [1]}))
    leases = {lease.stage: lease for lease in await scene.claim(5)}
    await scene.settle(leases["poster"])
    await scene.settle(leases["cut"], Failed("wobbly", code="io"))
    scene.pass_time(HOUR)
    await scene.settle(await scene.claim(), Failed("no such codec", code="codec", permanent=True))

    job = await scene.views.job(job_id)

    assert (job.status, job.retries, job.ended_at) == ("failed", 1, scene.now), "the second was not tried again"
    assert job.phase == next(stage.phase for stage in job.stages if stage.name == "cut")
    assert job.error == {"code": "codec", "message": "no such codec", "stage": "cut", "attempt": 2}
    assert job.progress == pytest.approx((1 + 1) / 10), "what failed or was cancelled is no progress"
    assert [s.state for s in job.stages] == ["done", "error", "done", "cancelled"]


@played
async def test_errors_of_optional_parts_are_warnings(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.settle(await scene.claim(), Done(plan={"cut": [1, Piece(input=2, optional=True)]}))
    leases = {(lease.stage, lease.position): lease for lease in await scene.claim(5)}
    await scene.fail_for_good(leases["poster", 0], code="dark")
    await scene.fail_for_good(leases["cut", 1])
    await scene.settle(leases["cut", 0])
    await scene.run_all()

    job = await scene.views.job(job_id)

    assert (job.status, job.warning_count) == ("completed", 2)
    assert [(w.stage, w.position, w.code) for w in job.warnings] == [("cut", 1, "broken"), ("poster", 0, "dark")]


@played
async def test_a_job_shows_for_which_jobs_it_waits_and_that_it_is_being_cancelled(scene: Scene) -> None:
    await scene.enact(FILM)
    first = await scene.submit()
    second = await scene.submit(after=(first,))
    await scene.claim()
    await scene.engine.jobs.cancel(first)

    assert (await scene.views.job(second)).waits_for == (first,)
    assert (await scene.views.job(first)).cancel_asked


@played
async def test_a_retried_job_shows_its_generation_and_keeps_its_history(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.fail_for_good((await scene.claim())[0])
    await scene.engine.jobs.retry(job_id)

    job = await scene.views.job(job_id)
    attempts = (await scene.views.attempts(job_id)).items

    assert (job.status, job.generation, job.retries, job.error) == ("pending", 2, 1, None)
    assert [(a.stage, a.outcome, a.generation, a.worker.name) for a in attempts] == [("look", "failed", 1, "ann")]


@played
async def test_attempts_tasks_and_files_come_in_pages(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    await scene.settle(await scene.claim(), Done(plan={"cut": [1, 2, 3]}))
    leases = await scene.claim(4)
    for lease in leases:
        file = KeptArtifact(name="a", token=lease.token, key=f"k{lease.task_id}", size=1, sha256="ab")
        await scene.engine.keep(lease.task_id, lease.token, [file])
    await scene.settle(leases)

    for view, count in ((scene.views.tasks, 6), (scene.views.attempts, 5), (scene.views.outputs, 4)):
        whole = await view(job_id)
        found, cursor = [], None
        while True:
            page = await view(job_id, limit=2, cursor=cursor)
            found.extend(page.items)
            cursor = page.next
            if cursor is None:
                break
        assert whole.next is None
        assert found == list(whole.items)
        assert len(found) == count
    assert [t.position for t in (await scene.views.tasks(job_id, stage="cut", state="done")).items] == [0, 1, 2]


@played
async def test_logs_are_read_after_a_line_by_kind_and_by_level(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()
    [look] = await scene.claim()
    where = {"task_id": look.task_id, "token": look.token}
    lines = [LogEntry(message=level, level=level, **where) for level in ("debug", "info", "warning", "error")]
    await scene.engine.log([*lines, LogEntry(message="ffprobe", kind="step", data={"exit": 0}, **where)])

    whole = await scene.views.logs(job_id)
    loud = await scene.views.logs(job_id, level="warning")
    [step] = await scene.views.logs(job_id, kind="step")
    rest = await scene.views.logs(job_id, after=whole[3].id)

    assert [line.message for line in whole] == ["debug", "info", "warning", "error", "ffprobe"]
    assert [line.message for line in loud] == ["warning", "error"]
    assert (step.stage, step.data) == ("look", {"exit": 0})
    assert rest == (step,)


@played
async def test_unknown_jobs_tasks_cursors_and_limits_are_refused_in_one_sentence(scene: Scene) -> None:
    await scene.enact(FILM)
    job_id = await scene.submit()

    for call in (scene.views.job(99), scene.views.task(99), scene.views.tasks(99), scene.views.logs(99)):
        with pytest.raises(NotFound, match="99"):
            await call
    for call in (
        scene.views.tasks(job_id, cursor="x"),
        scene.views.jobs(cursor="1-2-3"),
        scene.views.jobs(limit=501),
        scene.views.jobs(limit=0),
        scene.views.tasks(job_id, stage="nowhere"),
    ):
        with pytest.raises(BadSpec):
            await call
