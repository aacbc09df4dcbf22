"""A deleted job is cancelled first and goes when its last lease has ended; no crash forgets the wish."""

from telecine.artifacts import Artifacts
from telecine.engine.jobs import delete_job
from telecine.engine.maintenance.retention import Ages
from telecine.facts import KeptArtifact, Lease
from telecine.wiring import make_locks
from telecine.worker.housekeeping import Housekeeper
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

JOBS = "/api/v1/jobs"


async def running(front: Front) -> tuple[int, Lease]:
    await front.bed.enact(a_flow())
    job = (await front.ada.post(JOBS, json={"flow": "film"})).json()["id"]
    return job, await front.bed.take()


def housekeeper(front: Front) -> Housekeeper:
    artifacts = Artifacts(front.settings.artifacts_url)
    return Housekeeper(front.parts.engine, make_locks(front.parts), name="t", artifacts=artifacts, ages=Ages())


async def test_a_running_job_is_cancelled_and_goes_with_its_last_lease(front: Front) -> None:
    job, lease = await running(front)

    asked = await front.ada.delete(f"{JOBS}/{job}")
    meanwhile = (await front.ada.get(f"{JOBS}/{job}")).json()
    refused = [
        await front.ada.post(f"{JOBS}/{job}/retry"),
        await front.ada.post(f"{JOBS}/{job}/cancel"),
        await front.ada.patch(f"{JOBS}/{job}", json={"priority": 1}),
    ]
    early = await delete_job.put_away_deleted(front.parts.store, front.parts.engine.graph_cache, 0)
    await front.bed.release(lease)
    await housekeeper(front).once()

    assert (asked.status_code, asked.json()["status"]) == (202, "cancelling")
    assert meanwhile["cancel_asked"] is True
    assert [answer.json()["code"] for answer in refused] == ["wrong_state"] * 3
    assert early.jobs == 0
    assert (await front.ada.get(f"{JOBS}/{job}")).status_code == 404
    assert await front.bed.count("job_gone", "cleared_at is null") == 0
    await front.bed.audited()


async def test_its_files_go_after_the_last_lease(front: Front) -> None:
    job, lease = await running(front)
    key = f"{job}/cut@1/0/1/a.bin"
    file = KeptArtifact(name="a.bin", token=1, key=key, size=1, sha256="0" * 64)
    await front.bed.engine.keep(lease.task_id, lease.token, [file])

    await front.ada.delete(f"{JOBS}/{job}")
    before = await front.bed.count("freed")
    await front.bed.release(lease)
    await delete_job.put_away_deleted(front.parts.store, front.parts.engine.graph_cache, 0)

    assert before == 0
    assert await front.bed.count("artifact") == 0
    assert await front.bed.count("freed", f"key = '{key}'") == 1


async def test_a_crash_after_the_wish_is_made_good_by_housekeeping(front: Front) -> None:
    """The server died when it had written the wish down and before it put the job away."""
    await front.flow()
    job = (await front.ada.post(JOBS, json={"flow": "film"})).json()["id"]
    await front.parts.store.run(lambda: delete_job._wish(job, front.parts.engine.graph_cache, "ada"))

    await housekeeper(front).once()

    assert (await front.ada.get(f"{JOBS}/{job}")).status_code == 404
    assert await front.bed.count("job_gone", "cleared_at is null") == 0


async def test_what_retention_was_faster_with_is_no_longer_waited_for(front: Front) -> None:
    await front.flow()
    job = (await front.ada.post(JOBS, json={"flow": "film"})).json()["id"]
    await front.ada.delete(f"{JOBS}/{job}")
    await front.bed.sql("update job_gone set cleared_at = null")

    await delete_job.put_away_deleted(front.parts.store, front.parts.engine.graph_cache, 0)

    assert await front.bed.count("job_gone", "cleared_at is null") == 0
