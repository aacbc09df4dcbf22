"""How an upload ends before its time, whose it is, and what space it may take."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from telecine.api.uploads.disk import UploadFile
from telecine.engine.accounts.keys import Scope
from telecine.engine.uploads.records import NewUpload
from telecine.errors import NoSpace
from telecine.world import World
from tests.api.in_process_server import Front
from tests.api.raw_requests import BYTES, ROOT, TUS, created, file_of, offset_of, ready, sent

CONTENT = bytes(range(256)) * 16


# -- the end of it -----------------------------------------------------------------------------------


async def test_an_upload_that_was_given_up_is_gone_with_its_bytes(front: Front) -> None:
    place = await created(front.ada, len(CONTENT))
    await sent(front.ada, place, 0, CONTENT[:1000])

    assert (await front.ada.delete(place, headers=TUS)).status_code == 204

    assert (await front.ada.head(place, headers=TUS)).status_code == 404
    assert (await sent(front.ada, place, 1000, b"more")).status_code == 404
    assert not file_of(front, place).exists()


async def test_an_upload_without_news_expires_and_its_space_is_free(front: Front) -> None:
    desk = await ready(front)
    place = await created(front.ada, len(CONTENT))
    await sent(front.ada, place, 0, CONTENT[:1000])
    now = (await front.ada.get(place)).json()["created_at"]
    front.parts.store.now = now + 25 * 3_600_000

    answer = await sent(front.ada, place, 1000, b"more")
    await desk.look()

    assert (answer.status_code, answer.json()["code"]) == (410, "expired")
    assert (await front.ada.head(place, headers=TUS)).status_code == 404
    assert not file_of(front, place).exists()


async def test_each_byte_puts_the_end_off(front: Front) -> None:
    desk = await ready(front)
    place = await created(front.ada, len(CONTENT))
    now = (await front.ada.get(place)).json()["created_at"]
    front.parts.store.now = now + 23 * 3_600_000
    await sent(front.ada, place, 0, CONTENT[:1000])
    front.parts.store.now = now + 46 * 3_600_000

    await desk.look()

    assert await offset_of(front.ada, place) == 1000


# -- whose it is -------------------------------------------------------------------------------------


async def test_an_upload_of_somebody_else_is_as_absent_as_none(front: Front) -> None:
    place = await created(front.ada, 100, name="secret.mp4")
    nowhere = f"{ROOT}/{'0' * 32}"

    async def asked(client: Any, at: str) -> list[tuple[int, str]]:
        answers = [
            await client.head(at, headers=TUS), await client.get(at), await sent(client, at, 0, b"x"),
            await client.delete(at, headers=TUS),
        ]  # fmt: skip
        told = [(one.json() | {"instance": ""} if one.content else {}) for one in answers]
        return [
            (one.status_code, str(it).replace(at.rsplit("/", 1)[1], "?")) for one, it in zip(answers, told, strict=True)
        ]

    assert await asked(front.bob, place) == await asked(front.bob, nowhere)
    assert [status for status, _ in await asked(front.bob, place)] == [404] * 4
    assert (await front.bob.get(ROOT)).json()["items"] == []
    assert await offset_of(front.ada, place) == 0
    assert await offset_of(front.admin, place) == 0


async def test_only_owners_and_administrators_upload(front: Front) -> None:
    for client, status in ((front.nobody, 401), (front.worker, 403)):
        answers = [
            await client.post(ROOT, headers={**TUS, "Upload-Length": "10"}), await client.get(ROOT),
            await client.head(f"{ROOT}/{'0' * 32}", headers=TUS), await client.put(f"{ROOT}/film.mp4", content=b"x"),
            await client.patch(f"{ROOT}/{'0' * 32}", headers={**BYTES, "Upload-Offset": "0"}, content=b"x"),
            await client.delete(f"{ROOT}/{'0' * 32}", headers=TUS),
        ]  # fmt: skip

        assert [one.status_code for one in answers] == [status] * len(answers)


async def test_what_is_no_id_leads_nowhere(front: Front) -> None:
    await created(front.ada, 10)

    for name in ("..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "0" * 31, "0" * 33, "A" * 32, "%00"):
        answer = await front.ada.patch(f"{ROOT}/{name}", headers={**BYTES, "Upload-Offset": "0"}, content=b"x")
        assert answer.status_code in (404, 405), name

    assert list(front.settings.uploads.glob("*")) == []


async def test_a_name_is_a_label_and_never_a_path(front: Front) -> None:
    for name in ("../../etc/cron.d/x", "C:\\films\\x", "a/b/x", "x\n\x07"):
        place = await created(front.ada, 10, filename=name)
        assert (await front.ada.get(place)).json()["name"] == "x"
        await sent(front.ada, place, 0, b"bytes")

    assert all(len(path.name) == 32 for path in front.settings.uploads.iterdir())


async def test_a_list_has_pages_and_only_ones_own(front: Front) -> None:
    places = [await created(front.ada, 10) for _ in range(3)]
    await created(front.bob, 10)

    first = (await front.ada.get(ROOT, params={"limit": 2})).json()
    rest = (await front.ada.get(ROOT, params={"limit": 2, "cursor": first["next"]})).json()

    found = [one["id"] for one in first["items"] + rest["items"]]
    assert sorted(found) == sorted(place.rsplit("/", 1)[1] for place in places)
    assert rest["next"] is None
    assert len((await front.admin.get(ROOT)).json()["items"]) == 4
    assert (await front.ada.get(ROOT, params={"cursor": "no"})).status_code == 422


async def test_a_browser_that_cannot_patch_says_so_with_post(front: Front) -> None:
    place = await created(front.ada, 100)

    headers = {**BYTES, "Upload-Offset": "0", "X-HTTP-Method-Override": "PATCH"}
    answer = await front.ada.post(place, headers=headers, content=b"bytes")

    assert (answer.status_code, answer.headers["upload-offset"]) == (204, "5")
    assert (await front.ada.post(place, headers=BYTES)).status_code == 405


# -- space -------------------------------------------------------------------------------------------


async def test_space_is_promised_once(front: Front) -> None:
    desk = await ready(front)
    room = desk.uploads
    place = await created(front.ada, 600)
    await sent(front.ada, place, 0, b"x" * 100)

    fits = await room.add(_new("ada", 500), room=1000)
    with pytest.raises(Exception, match="no room for 1 bytes: 0 are left beside 2 unfinished uploads"):
        await room.add(_new("ada", 1), room=1000)

    assert fits.length == 500


def _new(owner: str, length: int) -> Any:
    return NewUpload(id=World().new_id(), owner=owner, name="x", length=length, metadata={}, spec={})


async def test_who_asks_at_once_for_the_same_space_does_not_get_it_twice(front: Front) -> None:
    desk = await ready(front)

    ends = await asyncio.gather(*(desk.uploads.add(_new("ada", 300), 1000) for _ in range(8)), return_exceptions=True)

    assert sum(not isinstance(end, BaseException) for end in ends) == 3


async def test_a_disk_without_room_is_said_before_a_byte_is_sent(front: Front) -> None:
    full = Front(front.settings.model_copy(update={"upload_reserve_bytes": 1 << 60}))
    await full.open()
    client = await full.client(Scope.OWNER, owner="eve")

    announced = await client.post(ROOT, headers={**TUS, "Upload-Length": "10"})
    put = await client.put(f"{ROOT}/film.mp4", content=b"x" * 10)

    assert [announced.status_code, put.status_code] == [507, 507]
    assert "no room for 10 bytes" in announced.json()["detail"]
    await full.close()


def test_a_disk_that_is_full_in_the_middle_says_so() -> None:
    with (
        UploadFile(os.open("/dev/full", os.O_WRONLY), Path("/dev/full")) as slot,
        pytest.raises(NoSpace, match="disk is full"),
    ):
        slot.write(b"x")
