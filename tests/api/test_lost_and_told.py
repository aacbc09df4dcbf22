"""Bytes that must not be lost between two looks, and words that are not for whoever asks."""

import hashlib
from pathlib import Path

import pytest

from telecine.api.uploads.upload_service import desk_of
from telecine.apps.transcode.names import NAME
from telecine.engine import Submission
from telecine.engine.jobs import delete_subject
from telecine.engine.maintenance.artifact_gc import clear
from telecine.engine.uploads import submit_upload
from telecine.errors import ArtifactError, TelecineError, Unreachable
from telecine.facts import JobId
from telecine.wiring import open_artifacts
from telecine.worker.housekeeping import ArtifactTrash
from tests.api.in_process_server import Front
from tests.api.raw_requests import a_film, created, jobs_of, ready, sent


async def test_a_film_whose_video_was_deleted_while_it_came_is_not_thrown_away(front: Front, tmp_path: Path) -> None:
    """It was looked for before the transaction, and found; when that begins, nothing of it is there."""
    await ready(front)
    film, engine, desk = a_film(tmp_path), front.parts.engine, desk_of(front.house)
    place = await created(front.ada, len(film), name="film.mp4")
    await sent(front.ada, place, 0, film)
    first = (await front.ada.get(place)).json()
    again = await desk.uploads.find((await created(front.ada, len(film), name="film.mp4")).rsplit("/", 1)[1])
    again = await desk.uploads.grow(again, len(film))
    await delete_subject.delete(engine, ("video", first["video"]))
    spec = {"source": f"upload://{again.id}", "sha256": first["sha256"], "size": len(film)}
    one = Submission(flow=NAME, spec=spec, owner="ada", subject=("video", first["video"]))
    wanted = (one, *await engine.jobs.flow_row(NAME))

    await front.parts.store.run(
        lambda: submit_upload._submit_upload(again, hashlib.sha256(film).hexdigest(), JobId(first["job"]), wanted)
    )
    await clear(front.parts.store, ArtifactTrash(open_artifacts(front.settings)))

    found = await desk.uploads.find(again.id)
    assert (found.state, found.job_id != first["job"]) == ("done", True)
    assert (await front.ada.get(f"/api/v1/videos/{found.subject_id}")).status_code == 200
    assert found.job_id in [job["id"] for job in await jobs_of(front)]


@pytest.mark.parametrize("kind", [Unreachable, ArtifactError])
async def test_what_a_driver_says_is_not_told_to_strangers(
    front: Front, monkeypatch: pytest.MonkeyPatch, kind: type[TelecineError]
) -> None:
    async def away(text: str, row_of: object) -> None:
        raise kind("cannot reach db.internal as telecine") from OSError("db.internal")

    monkeypatch.setattr(front.house.keys, "find", away)

    answer = await front.ada.get("/api/v1/me")

    assert (answer.status_code, answer.json()["code"]) == (503, kind.code)
    assert "internal" not in answer.text
    assert answer.headers["retry-after"] == "2"
