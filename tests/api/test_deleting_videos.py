"""Delete a video: gone at once for everybody, its bytes when nobody works on it, whoever dies meanwhile."""

import asyncio
from pathlib import Path

from telecine.engine.jobs.delete_subject import clear_gone
from telecine.engine.maintenance.artifact_gc import clear
from telecine.facts import Done, Status
from telecine.wiring import open_artifacts, open_engine
from telecine.worker.housekeeping import ArtifactTrash
from tests.api.in_process_server import Front
from tests.api.live_server import cinema
from tests.api.video_fixtures import FLOW, begun, keep, published
from tests.media.make_video import Film, Shot, shoot
from tests.media.transcode_env import settings_in, small, until

VIDEOS = "/api/v1/videos"


def files(front: Front) -> set[str]:
    folder = front.house.artifacts.folder
    assert folder is not None
    return {str(path.relative_to(folder)).partition("/")[0] for path in folder.rglob("*") if path.is_file()}


async def tidied(front: Front) -> None:
    """What housekeeping does about it."""
    await clear_gone(front.parts.engine)
    await clear(front.parts.store, ArtifactTrash(front.house.artifacts))


async def test_a_deleted_video_is_not_there_and_its_bytes_go(front: Front) -> None:
    await published(front, "film-1")
    kept = await published(front, "film-2")

    first = await front.ada.delete(f"{VIDEOS}/film-1")
    again = await front.ada.delete(f"{VIDEOS}/film-1")
    await tidied(front)

    assert (first.status_code, again.status_code) == (204, 404)
    assert (await front.ada.get(f"{VIDEOS}/film-1")).status_code == 404
    assert [one["id"] for one in (await front.ada.get(VIDEOS)).json()["items"]] == ["film-2"]
    assert files(front) == {str(kept)}


async def test_whoever_works_on_it_is_told_and_what_he_uploads_meanwhile_goes_too(front: Front) -> None:
    job_id = await begun(front, "film-1")
    lease = front.running["film-1"]

    await front.ada.delete(f"{VIDEOS}/film-1")
    await tidied(front)
    while_it_runs = files(front)
    await keep(front, lease, "720p/00001.m4s", b"one more")
    orders = await front.bed.beaten(lease)
    refused = await front.bed.done(lease)
    await front.bed.release(lease)
    await tidied(front)

    assert while_it_runs == {str(job_id)}
    assert orders.stop == ((lease.task_id, lease.token),)
    assert (refused.accepted, refused.code) == (False, "job_cancelled")
    assert files(front) == set()


async def test_what_an_upload_left_behind_goes_with_its_video(front: Front) -> None:
    await published(front, "film-1")
    path = front.house.artifacts.path("uploads/" + "a" * 32 + "/source")
    assert path is not None
    path.parent.mkdir(parents=True)
    path.write_bytes(b"film")
    await front.bed.sql(
        "insert into upload (id, owner, name, length, received, state, subject_id, created_at, updated_at, expires_at) "
        f"values ('{'a' * 32}', 'ada', 'film.mp4', 4, 4, 'done', 'film-1', 0, 0, 0)"
    )

    await front.ada.delete(f"{VIDEOS}/film-1")
    await tidied(front)

    assert files(front) == set()


async def test_after_a_deletion_the_same_source_is_begun_anew(front: Front) -> None:
    await front.bed.enact(FLOW)
    source = {"source": "https://films.example/a.mp4"}
    first = (await front.ada.post(VIDEOS, json=source)).json()
    lease = await front.bed.take()
    await front.ada.delete(f"{VIDEOS}/{first['id']}")

    at_once = (await front.ada.post(VIDEOS, json=source)).json()
    again = (await front.ada.post(VIDEOS, json=source)).json()
    await front.bed.release(lease)
    await tidied(front)

    assert (at_once["id"], at_once["how"]) == (first["id"], "submitted")
    assert at_once["job_id"] != first["job_id"]
    assert again == {**at_once, "how": "continued"}
    assert (await front.ada.get(f"{VIDEOS}/{first['id']}")).json()["status"] == "pending"
    assert (await front.bed.take()).job_id == at_once["job_id"]


async def test_after_its_bytes_went_nothing_of_old_jobs_goes_on(front: Front) -> None:
    await front.bed.enact(FLOW)
    source = {"source": "https://films.example/a.mp4"}
    first = (await front.ada.post(VIDEOS, json=source)).json()
    lease = await front.bed.take()
    await keep(front, lease, "720p/00000.m4s", b"x")
    await front.ada.delete(f"{VIDEOS}/{first['id']}")
    await front.bed.release(lease)
    await tidied(front)

    anew = (await front.ada.post(VIDEOS, json=source)).json()

    assert (anew["id"], anew["how"]) == (first["id"], "submitted")
    assert anew["job_id"] != first["job_id"]
    video = (await front.ada.get(f"{VIDEOS}/{first['id']}")).json()
    assert [one["id"] for one in video["jobs"]] == [anew["job_id"]]
    assert (video["version"], video["versions"]) == (None, [])


async def test_a_job_that_is_cancelled_is_no_twin_to_go_on_with(front: Front) -> None:
    await front.bed.enact(FLOW)
    source = {"source": "https://films.example/a.mp4"}
    first = (await front.ada.post(VIDEOS, json=source)).json()
    lease = await front.bed.take()
    await front.ada.post(f"/api/v1/jobs/{first['job_id']}/cancel")

    second = (await front.ada.post(VIDEOS, json=source)).json()
    third = (await front.ada.post(VIDEOS, json=source)).json()

    assert second["job_id"] != first["job_id"]
    assert (second["how"], third["how"]) == ("submitted", "continued")
    assert third["job_id"] == second["job_id"]
    await front.bed.say(lease, Done())


def test_a_server_that_dies_after_the_answer_has_deleted_it_all_the_same(tmp_path: Path) -> None:
    """Its embedded worker dies with it in the middle of a film."""
    film = shoot(tmp_path / "film.mp4", Film(shots=(Shot(count=200),)))
    folder = tmp_path / "house"
    with cinema(folder, source_folders=(str(tmp_path),)) as house:
        begun = house.begun(small(film, preset="veryslow", chunk_segments=1))
        house.until(begun["id"], "a segment is there", lambda _: any((folder / "artifacts").rglob("*.m4s")))

        assert house.ada.delete(f"{VIDEOS}/{begun['id']}").status_code == 204
        house.kill()

    async def next_server() -> None:
        settings = settings_in(folder)
        async with open_engine(settings) as parts:

            async def ended() -> bool:
                await parts.engine.sweep(1)
                await clear_gone(parts.engine)
                return not (await parts.engine.queries.jobs()).items

            await until(ended, "its job was put away")
            await clear(parts.store, ArtifactTrash(open_artifacts(settings)))
            assert (await parts.engine.queries.job(begun["job_id"])).status == Status.CANCELLED

    asyncio.run(next_server())
    assert [path for path in (folder / "artifacts").rglob("*") if path.is_file()] == []
