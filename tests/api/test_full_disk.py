"""A disk that is full in the middle: said so, and nothing of what had come is lost. The kernel itself refuses more."""

import asyncio
import hashlib
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from telecine.api.http.problems import of_error
from telecine.artifacts import Artifacts
from telecine.errors import ArtifactError, NoSpace
from telecine.worker.http.artifact_client import PART
from tests.api.in_process_server import Front
from tests.api.raw_requests import created, offset_of, ready, sent
from tests.api.test_worker_bytes import begun, sha
from tests.api.test_worker_bytes import sent as put
from tests.api.webhook_server import until
from tests.api.worker_client import a_file, held, nowhere

MIB = 1 << 20
MOST = 4 * MIB  # the database of a test is smaller


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size`: to whoever writes it is a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_an_upload_stops_with_507_and_goes_on_when_there_is_space_again(front: Front) -> None:
    await ready(front)
    data = os.urandom(6 * MIB)
    place = await created(front.ada, len(data) + 1)

    with full_at(MOST):
        refused = await sent(front.ada, place, 0, data)
        offset = await offset_of(front.ada, place)
        again = await sent(front.ada, place, offset, data[offset:])
    went_on = await sent(front.ada, place, offset, data[offset:])

    assert [(one.status_code, one.json()["code"]) for one in (refused, again)] == [(507, "no_space")] * 2
    assert "the disk is full" in refused.json()["detail"]
    assert (went_on.status_code, await offset_of(front.ada, place)) == (204, len(data))
    assert (front.settings.uploads / place.rsplit("/", 1)[1]).read_bytes() == data


async def test_a_plain_film_that_does_not_fit_leaves_nothing(front: Front) -> None:
    await ready(front)

    with full_at(MOST):
        refused = await front.ada.put("/api/v1/uploads/film.mp4", content=os.urandom(6 * MIB))

    assert (refused.status_code, refused.json()["code"]) == (507, "no_space")
    assert (await front.ada.get("/api/v1/uploads")).json()["items"] == []
    assert list(front.settings.uploads.iterdir()) == []


async def test_a_worker_is_told_507_and_goes_on_where_it_broke_off(front: Front) -> None:
    hand, lease = await begun(front)
    data = os.urandom(6 * MIB)
    where = f"/api/worker/artifacts/{lease.task_id}/{lease.token}/film"

    with full_at(MOST):
        refused = await put(hand, lease, "film", data)
        have = int((await hand.client.head(where)).headers["upload-offset"])
    span = f"bytes {have}-{len(data) - 1}/{len(data)}"
    rest = await hand.client.put(where, content=data[have:], headers={"X-SHA256": sha(data), "Content-Range": span})

    assert (refused.status_code, refused.json()["code"]) == (507, "no_space")
    assert "disk is full" in refused.json()["detail"]
    assert 0 < have <= MOST
    assert (rest.status_code, rest.json()["sha256"]) == (200, sha(data))


@pytest.mark.parametrize("size", [3 * MIB, 40 * MIB])
async def test_an_artifact_that_does_not_fit_is_not_there_at_all(front: Front, tmp_path: Path, size: int) -> None:
    artifacts = Artifacts(str(tmp_path / "shelf"))
    film = a_file(tmp_path, os.urandom(size))

    with full_at(2 * MIB), pytest.raises(ArtifactError) as full:
        await artifacts.put("7/film", film)

    assert isinstance(full.value, NoSpace)
    assert of_error(full.value).status_code == 507
    assert "the disk is full" in str(full.value)
    assert await artifacts.under("7/") == []
    assert (await artifacts.put("7/film", film)).sha256 == hashlib.sha256(film.read_bytes()).hexdigest()


async def test_a_worker_waits_for_space_and_its_bytes_arrive(
    front: Front, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """To it this is an outage like others: it comes again while its lease is held."""
    hand, lease = await begun(front)
    data = os.urandom(PART + MIB)
    film = a_file(tmp_path, data)

    with full_at(MOST):
        going = asyncio.create_task(hand.words.place.put(held(lease), "film", film, nowhere))
        await until(lambda: _refused(caplog))
    _, stored = await going

    assert stored.sha256 == sha(data)


async def _refused(caplog: pytest.LogCaptureFixture) -> bool:
    return caplog.text.count("answered with 507") > 1
