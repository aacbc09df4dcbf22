"""What becomes of an upload that is whole: a video and its job, exactly once, whoever dies when; or a refusal."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from telecine.api.uploads.upload_service import desk_of
from telecine.apps.transcode.spec import parse
from telecine.apps.transcode.videos.from_upload import become
from telecine.engine.maintenance.artifact_gc import clear
from telecine.engine.uploads.records import free_with
from telecine.errors import NotFound
from telecine.wiring import open_artifacts
from telecine.wiring.server import open_house
from telecine.worker.housekeeping import ArtifactTrash
from tests.api.in_process_server import Front
from tests.api.raw_requests import ROOT, TUS, a_film, created, jobs_of, offset_of, ready, sent
from tests.media.test_far_sources import in_bucket
from tests.support.s3 import serve_s3


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return a_film(tmp_path_factory.mktemp("film"))


async def uploaded(front: Front, content: bytes, **said: str) -> Any:
    """What GET says of it afterwards."""
    place = await created(front.ada, len(content), **said)
    answer = await sent(front.ada, place, 0, content)
    assert answer.status_code == 204, answer.text
    return (await front.ada.get(place)).json()


async def whole_and_unseen(front: Front, content: bytes, **said: str) -> str:
    """An upload as a server leaves it that dies right after the last byte."""
    desk = desk_of(front.house)
    place = await created(front.ada, len(content), **said)
    upload = await desk.uploads.find(place.rsplit("/", 1)[1])
    file_of(front, upload.id).write_bytes(content)
    await desk.uploads.grow(upload, len(content))
    return upload.id


def file_of(front: Front, upload_id: str) -> Path:
    folder = front.settings.uploads
    folder.mkdir(exist_ok=True)
    return folder / upload_id


def stored(front: Front, upload_id: str) -> Path:
    return Path(front.settings.artifacts_url) / "uploads" / upload_id / "source"


async def test_the_last_byte_makes_a_video_and_its_job(front: Front, film: bytes) -> None:
    await ready(front)
    place = await created(
        front.ada, len(film), filename="My Film.mp4", ladder="web", qualities="720p, 360p", priority="high", poster="no"
    )
    await sent(front.ada, place, 0, film[:1000])

    answer = await sent(front.ada, place, 1000, film[1000:])

    shown = (await front.ada.get(place)).json()
    [job] = await jobs_of(front)
    spec = parse(json.loads(job["spec"]))
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, str(len(film)))
    assert (answer.headers["telecine-state"], answer.headers["telecine-job"]) == ("done", str(job["id"]))
    assert answer.headers["telecine-video"] == shown["video"] == job["subject_id"]
    assert shown["video"].startswith("my-film-")
    assert (shown["state"], shown["job"], shown["sha256"]) == ("done", job["id"], hashlib.sha256(film).hexdigest())
    assert (spec.source, spec.size, spec.sha256) == (f"upload://{shown['id']}", len(film), shown["sha256"])
    assert (spec.ladder, spec.qualities, spec.poster, spec.name) == ("web", ["720p", "360p"], False, "My Film")
    assert job["owner"] == "ada"
    assert stored(front, shown["id"]).read_bytes() == film
    assert list(front.settings.uploads.iterdir()) == []


async def test_after_the_end_the_offset_is_the_length_and_nothing_follows(front: Front, film: bytes) -> None:
    await ready(front)
    shown = await uploaded(front, film)
    place = f"{ROOT}/{shown['id']}"

    again = await sent(front.ada, place, len(film), b"")

    assert await offset_of(front.ada, place) == len(film)
    assert (again.status_code, again.headers["telecine-video"]) == (204, shown["video"]), "the last answer got lost"
    assert (await sent(front.ada, place, 0, b"x")).status_code == 409
    assert (await front.ada.delete(place, headers=TUS)).status_code == 409
    assert len(await jobs_of(front)) == 1


async def test_what_is_no_film_is_refused_in_a_sentence_and_leaves_nothing(front: Front) -> None:
    await ready(front)
    content = b"#!/bin/sh\necho this is no film\n" * 100
    place = await created(front.ada, len(content), name="film.mp4")

    answer = await sent(front.ada, place, 0, content)

    shown = (await front.ada.get(place)).json()
    assert (answer.status_code, answer.json()["code"]) == (422, "media_refused")
    assert (shown["state"], shown["error"]) == ("refused", answer.json()["detail"])
    assert (await front.ada.head(place, headers=TUS)).status_code == 410
    assert await jobs_of(front) == []
    assert not stored(front, shown["id"]).exists()
    assert list(front.settings.uploads.iterdir()) == []
    assert (await front.ada.delete(place, headers=TUS)).status_code == 204


async def test_a_film_that_is_not_the_one_that_was_promised_is_refused(front: Front, film: bytes) -> None:
    await ready(front)
    place = await created(front.ada, len(film), sha256="0" * 64)

    answer = await sent(front.ada, place, 0, film)

    assert answer.status_code == 422
    assert "another SHA-256" in answer.json()["detail"]
    assert await jobs_of(front) == []


async def test_the_same_film_twice_is_one_video_and_lies_there_once(front: Front, film: bytes) -> None:
    await ready(front)
    first = await uploaded(front, film, name="film.mp4")

    second = await uploaded(front, film, name="renamed.mp4")
    await clear(front.parts.store, ArtifactTrash(open_artifacts(front.settings)))

    assert (second["video"], second["job"]) == (first["video"], first["job"])
    assert (first["how"], second["how"]) == ("submitted", "continued")
    assert stored(front, first["id"]).exists()
    assert not stored(front, second["id"]).exists()
    assert len(await jobs_of(front)) == 1


async def test_a_job_that_winds_down_is_not_taken_for_the_same(front: Front, film: bytes) -> None:
    await ready(front)
    first = await uploaded(front, film, name="film.mp4")
    yes = "true" if "postgres" in front.settings.database_url else 1
    await front.bed.sql(f"update {front.bed.table('job')} set cancel_asked = {yes}")

    second = await uploaded(front, film, name="film.mp4")

    assert second["video"] == first["video"]
    assert second["job"] != first["job"]
    assert stored(front, second["id"]).exists()


async def test_two_owners_with_the_same_film_have_a_video_each(front: Front, film: bytes) -> None:
    await ready(front)
    ours = await uploaded(front, film, name="film.mp4")
    place = await created(front.bob, len(film), name="film.mp4")
    await sent(front.bob, place, 0, film)

    theirs = (await front.bob.get(place)).json()

    assert theirs["video"] != ours["video"]
    assert [job["owner"] for job in await jobs_of(front)] == ["ada", "bob"]


# -- Crashes -----------------------------------------------------------------------------------------


async def test_bytes_that_were_written_and_not_counted_are_sent_again(front: Front, film: bytes) -> None:
    await ready(front)
    place = await created(front.ada, len(film))
    await sent(front.ada, place, 0, film[:1000])
    with file_of(front, place.rsplit("/", 1)[1]).open("ab") as file:
        file.write(b"written by a server that was killed then")

    assert await offset_of(front.ada, place) == 1000
    await sent(front.ada, place, 1000, film[1000:])

    shown = (await front.ada.get(place)).json()
    assert shown["sha256"] == hashlib.sha256(film).hexdigest()
    assert stored(front, shown["id"]).read_bytes() == film


async def test_bytes_that_were_counted_and_are_gone_are_said_to_be_lost(front: Front) -> None:
    place = await created(front.ada, 100)
    await sent(front.ada, place, 0, b"x" * 50)
    file_of(front, place.rsplit("/", 1)[1]).write_bytes(b"x" * 20)
    short = await sent(front.ada, place, 50, b"y")
    file_of(front, place.rsplit("/", 1)[1]).unlink()

    gone = await sent(front.ada, place, 50, b"y")

    assert [(one.status_code, one.json()["code"]) for one in (short, gone)] == [(410, "lost")] * 2


async def test_what_a_server_left_unfinished_is_finished_by_the_next(front: Front, film: bytes) -> None:
    desk = await ready(front)
    before_looking = await whole_and_unseen(front, film, name="one.mp4")
    after_storing = await whole_and_unseen(front, film, name="two.mp4", ladder="web")
    await open_artifacts(front.settings).take(f"uploads/{after_storing}/source", file_of(front, after_storing))
    refused = await whole_and_unseen(front, b"no film at all" * 10)

    await desk.look()
    await desk.look()

    states = {one["id"]: one for one in (await front.ada.get(ROOT)).json()["items"]}
    assert {states[one]["state"] for one in (before_looking, after_storing)} == {"done"}
    assert states[refused]["state"] == "refused"
    assert sorted(states[one]["job"] for one in (before_looking, after_storing)) == [
        job["id"] for job in await jobs_of(front)
    ]
    assert list(front.settings.uploads.iterdir()) == []


async def test_two_servers_that_finish_the_same_upload_make_one_video(front: Front, film: bytes) -> None:
    desk = await ready(front)
    upload_id = await whole_and_unseen(front, film)
    other = desk_of(open_house(front.parts))

    await asyncio.gather(desk.look(), other.look(), desk.finisher.finish(upload_id))
    await desk.look()

    assert (await desk.uploads.find(upload_id)).state == "done"
    assert len(await jobs_of(front)) == 1


async def test_of_two_who_make_a_video_of_it_one_does(front: Front, film: bytes) -> None:
    """Also without the lock of the file, which servers on other disks would not share."""
    desk = await ready(front)
    upload = await desk.uploads.find(await whole_and_unseen(front, film))

    await asyncio.gather(*(become(front.parts.engine, upload, hashlib.sha256(film).hexdigest()) for _ in range(4)))

    assert len(await jobs_of(front)) == 1
    assert (await desk.uploads.find(upload.id)).state == "done"


async def test_bytes_that_no_server_has_are_given_up_after_a_while(front: Front, film: bytes) -> None:
    desk = await ready(front)
    upload_id = await whole_and_unseen(front, film)
    file_of(front, upload_id).unlink()
    await desk.look()
    waiting = await desk.uploads.find(upload_id)
    front.parts.store.now = waiting.now + 25 * 3_600_000

    await desk.look()

    given_up = await desk.uploads.find(upload_id)
    assert (waiting.state, given_up.state) == ("checking", "refused")
    assert "lost" in str(given_up.error)


async def test_files_of_no_upload_are_tidied_up_and_others_left_alone(front: Front, film: bytes) -> None:
    desk = await ready(front)
    done = (await uploaded(front, film))["id"]
    kept = (await created(front.ada, 10)).rsplit("/", 1)[1]
    for name in (done, kept, "f" * 32, "notes.txt"):
        file_of(front, name).write_bytes(b"")

    await desk.look()

    assert sorted(path.name for path in front.settings.uploads.iterdir()) == sorted([kept, "notes.txt"])


async def test_a_video_that_is_deleted_takes_its_film_with_it(front: Front, film: bytes) -> None:
    desk = await ready(front)
    shown = await uploaded(front, film)

    await front.parts.store.run(lambda: free_with(shown["video"]))
    await clear(front.parts.store, ArtifactTrash(open_artifacts(front.settings)))

    assert not stored(front, shown["id"]).exists()
    with pytest.raises(NotFound):
        await desk.uploads.find(shown["id"])


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Any]:
    with serve_s3(tmp_path) as bucket:
        yield bucket


async def test_an_upload_goes_into_a_bucket_whole(front: Front, film: bytes, bucket: Any) -> None:
    far = Front(front.settings.model_copy(update=in_bucket(bucket)))
    await far.open()
    await ready(far)

    shown = await uploaded(far, film)

    found = await open_artifacts(far.settings).digest(f"uploads/{shown['id']}/source")
    assert (found.size, found.sha256) == (len(film), hashlib.sha256(film).hexdigest())
    assert list(far.settings.uploads.iterdir()) == []
    await far.close()
