"""A retry over HTTP that names its generation may be said again; it opens the next one, once."""

from typing import Any

import httpx
import pytest

from tests.api.in_process_server import Front
from tests.support.builders import a_flow


async def cancelled(front: Front) -> int:
    await front.bed.enact(a_flow())
    job = await front.bed.submit(owner="ada")
    await front.ada.post(f"/api/v1/jobs/{job}/cancel")
    return job


async def retried(front: Front, job: int, body: Any = None) -> httpx.Response:
    return await front.ada.post(f"/api/v1/jobs/{job}/retry", json=body)


async def test_a_repeat_opens_no_second_generation_whatever_became_of_the_job(front: Front) -> None:
    job = await cancelled(front)

    answers = [await retried(front, job, {"generation": 1}) for _ in range(2)]
    await front.ada.post(f"/api/v1/jobs/{job}/cancel")
    late = await retried(front, job, {"generation": 1})
    shown = (await front.ada.get(f"/api/v1/jobs/{job}")).json()

    assert [(one.status_code, one.json()["status"]) for one in (*answers, late)] == [
        (200, "pending"),
        (200, "pending"),
        (200, "cancelled"),
    ]
    assert (shown["generation"], shown["status"]) == (2, "cancelled")


async def test_who_knows_an_older_or_a_later_job_is_refused(front: Front) -> None:
    job = await cancelled(front)
    for generation in (1, 2):
        await retried(front, job, {"generation": generation})
        await front.ada.post(f"/api/v1/jobs/{job}/cancel")

    answers = [await retried(front, job, {"generation": generation}) for generation in (1, 9)]

    assert [(one.status_code, one.json()["code"]) for one in answers] == [(412, "version_mismatch")] * 2


async def test_without_a_generation_it_is_as_it_was(front: Front) -> None:
    job = await cancelled(front)

    answers = [await retried(front, job), await retried(front, job, {}), await retried(front, job)]

    assert [one.status_code for one in answers] == [200, 409, 409]


@pytest.mark.parametrize("wrong", [{"generation": 0}, {"generation": "1"}, {"generation": True}, {"other": 1}])
async def test_what_is_no_generation_is_refused(front: Front, wrong: dict[str, object]) -> None:
    job = await cancelled(front)

    assert (await retried(front, job, wrong)).status_code == 422
