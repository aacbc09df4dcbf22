"""What an owner may have here is bounded: unfinished uploads and the sources of his videos together."""

import asyncio
from collections.abc import Iterator

import httpx
import pytest

from telecine.engine.jobs import delete_subject
from tests.api.in_process_server import Front
from tests.api.raw_requests import ROOT, TUS, a_film, created, ready, sent

SPARE = 1_000


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return a_film(tmp_path_factory.mktemp("film"))


@pytest.fixture
def tight(front: Front, film: bytes, runner: asyncio.Runner) -> Iterator[Front]:
    """A server on which an owner may have one film and a little more."""
    tight = Front(front.settings.model_copy(update={"upload_quota_bytes": len(film) + SPARE}))
    runner.run(tight.open())
    runner.run(ready(tight))
    yield tight
    runner.run(tight.close())


async def announced(client: httpx.AsyncClient, length: int) -> httpx.Response:
    return await client.post(ROOT, headers={**TUS, "Upload-Length": str(length)})


async def uploaded(front: Front, film: bytes, **said: str) -> httpx.Response:
    place = await created(front.ada, len(film), **said)
    return await sent(front.ada, place, 0, film)


async def test_one_film_more_than_is_his_is_refused_before_a_byte_is_sent(tight: Front, film: bytes) -> None:
    await uploaded(tight, film, name="film.mp4")

    answers = [
        await announced(tight.ada, SPARE + 1),
        await tight.ada.put(f"{ROOT}/other.mp4", content=b"x" * (SPARE + 1)),
    ]
    fits = await announced(tight.ada, SPARE)

    assert [(one.status_code, one.json()["code"]) for one in answers] == [(413, "quota_exceeded")] * 2
    assert f"you have {len(film):,} of {len(film) + SPARE:,} here" in answers[0].json()["detail"]
    assert answers[0].headers["tus-resumable"] == "1.0.0"
    assert fits.status_code == 201


async def test_who_announces_many_at_once_gets_no_more_than_is_his(tight: Front, film: bytes) -> None:
    half = (len(film) + SPARE) // 2

    answers = await asyncio.gather(*(announced(tight.ada, half) for _ in range(8)))

    assert sorted(one.status_code for one in answers) == [201, 201, *[413] * 6]


async def test_an_upload_that_is_given_up_makes_room(tight: Front, film: bytes) -> None:
    place = await created(tight.ada, len(film) + SPARE)
    full = await announced(tight.ada, 1)
    await tight.ada.delete(place, headers=TUS)

    assert (full.status_code, (await announced(tight.ada, 1)).status_code) == (413, 201)


async def test_what_was_refused_as_no_film_does_not_count(tight: Front, film: bytes) -> None:
    noise = b"x" * (len(film) + SPARE)
    place = await created(tight.ada, len(noise))
    refused = await sent(tight.ada, place, 0, noise)

    assert (refused.status_code, (await announced(tight.ada, len(film))).status_code) == (422, 201)


async def test_a_film_that_was_here_before_is_counted_once(tight: Front, film: bytes) -> None:
    first = await uploaded(tight, film, name="film.mp4")
    await tight.bed.sql("update upload set length = 1, received = 1")  # room for a second one while it comes
    again = await uploaded(tight, film, name="same.mp4")
    await tight.bed.sql(f"update upload set length = {len(film)}, received = {len(film)}")

    assert (first.headers["telecine-how"], again.headers["telecine-how"]) == ("submitted", "continued")
    assert (await announced(tight.ada, SPARE)).status_code == 201


async def test_a_video_that_is_deleted_makes_room(tight: Front, film: bytes) -> None:
    video = (await uploaded(tight, film, name="film.mp4")).headers["telecine-video"]
    full = await announced(tight.ada, len(film))
    await tight.ada.delete(f"/api/v1/videos/{video}")
    await delete_subject.clear_gone(tight.parts.engine)

    assert (full.status_code, (await announced(tight.ada, len(film))).status_code) == (413, 201)


async def test_one_owner_leaves_the_other_his_own_and_the_operator_is_not_bound(tight: Front, film: bytes) -> None:
    await created(tight.ada, len(film) + SPARE)

    answers = [await announced(who, len(film) + SPARE) for who in (tight.bob, tight.admin, tight.admin)]

    assert [one.status_code for one in answers] == [201, 201, 201]


async def test_without_a_quota_there_is_none(front: Front, film: bytes) -> None:
    await ready(front)

    answers = [await announced(front.ada, len(film)) for _ in range(3)]

    assert [one.status_code for one in answers] == [201] * 3
