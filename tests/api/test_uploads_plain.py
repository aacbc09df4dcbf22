"""One request, one film: for scripts that know nothing of tus."""

import base64
import hashlib
import json
from collections.abc import AsyncIterator

import pytest

from telecine.apps.transcode.spec import parse
from tests.api.in_process_server import Front
from tests.api.raw_requests import ROOT, a_film, jobs_of, pieces, ready


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return a_film(tmp_path_factory.mktemp("film"))


async def nothing_is_left(front: Front) -> bool:
    listed = (await front.ada.get(ROOT)).json()["items"]
    return not listed and not list(front.settings.uploads.glob("*")) and not await jobs_of(front)


async def test_a_film_in_one_request_is_a_video_with_a_job(front: Front, film: bytes) -> None:
    await ready(front)

    answer = await front.ada.put(f"{ROOT}/Big%20Film.mp4?ladder=web&qualities=360p&title=Mr.%20Big", content=film)

    [job] = await jobs_of(front)
    spec = parse(json.loads(job["spec"]))
    shown = answer.json()
    assert answer.status_code == 201, answer.text
    assert (shown["state"], shown["name"], shown["job"]) == ("done", "Big Film.mp4", job["id"])
    assert shown["video"].startswith("mr-big-")
    assert answer.headers["location"] == f"{ROOT}/{shown['id']}"
    assert (spec.ladder, spec.qualities, spec.name, spec.size) == ("web", ["360p"], "Mr. Big", len(film))
    assert (await front.ada.get(answer.headers["location"])).json() == shown


async def test_a_film_may_come_with_its_hash(front: Front, film: bytes) -> None:
    await ready(front)
    digest = hashlib.sha256(film)
    told = base64.b64encode(digest.digest()).decode()
    ways = [
        {"Content-Digest": f"sha-256=:{told}:"}, {"Digest": f"SHA-256={told}"},
        {"X-Checksum-Sha256": digest.hexdigest().upper()},
    ]  # fmt: skip

    answers = [await front.ada.put(f"{ROOT}/film.mp4", content=film, headers=headers) for headers in ways]

    assert [one.status_code for one in answers] == [201, 201, 201]
    assert len({one.json()["video"] for one in answers}) == 1


async def test_a_film_with_another_hash_is_refused_and_leaves_nothing(front: Front, film: bytes) -> None:
    await ready(front)

    wrong = await front.ada.put(f"{ROOT}/film.mp4", content=film, headers={"X-Checksum-Sha256": "0" * 64})
    garbled = await front.ada.put(f"{ROOT}/film.mp4", content=film, headers={"Content-Digest": "sha-256=:AAAA:"})

    assert (wrong.status_code, garbled.status_code) == (422, 400)
    assert "another SHA-256" in wrong.json()["detail"]
    assert await nothing_is_left(front)


async def test_what_is_no_film_is_refused_and_leaves_nothing(front: Front) -> None:
    await ready(front)

    answer = await front.ada.put(f"{ROOT}/film.mp4", content=b"no film at all" * 100)

    assert (answer.status_code, answer.json()["code"]) == (422, "media_refused")
    assert await nothing_is_left(front)


async def test_what_cannot_be_taken_is_said_before_it_is_sent(front: Front, film: bytes) -> None:
    await ready(front)
    unsized = await front.ada.put(f"{ROOT}/film.mp4", content=pieces(film))
    empty = await front.ada.put(f"{ROOT}/film.mp4", content=b"")
    typo = await front.ada.put(f"{ROOT}/film.mp4?lader=web", content=film)
    large = await front.ada.put(f"{ROOT}/film.mp4", headers={"Content-Length": str(1 << 50)}, content=pieces(b"x"))

    assert [one.status_code for one in (unsized, empty, typo, large)] == [411, 400, 422, 413]
    assert "did you mean 'ladder'" in typo.json()["detail"]
    assert await nothing_is_left(front)


async def test_a_film_that_breaks_off_leaves_nothing(front: Front, film: bytes) -> None:
    await ready(front)

    async def broken() -> AsyncIterator[bytes]:
        yield film[:1000]

    answer = await front.ada.put(f"{ROOT}/film.mp4", headers={"Content-Length": str(len(film))}, content=broken())

    assert answer.status_code == 408
    assert await nothing_is_left(front)


async def test_a_name_in_the_address_is_a_label(front: Front, film: bytes) -> None:
    await ready(front)

    answer = await front.ada.put(f"{ROOT}/..%5C..%5Cetc%5Cfilm.mp4", content=film)

    assert answer.json()["name"] == "film.mp4"
    assert list(front.settings.uploads.iterdir()) == []
