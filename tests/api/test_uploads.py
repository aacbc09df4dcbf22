"""tus 1.0, rule by rule: creation, offsets, checksums, termination, expiry, and whose an upload is."""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator

import pytest

from telecine.api.uploads import body_writer
from tests.api.in_process_server import Front
from tests.api.raw_requests import BYTES, ROOT, TUS, created, file_of, offset_of, packed, pieces, sent

CONTENT = bytes(range(256)) * 16


async def test_options_say_what_is_spoken_to_anybody(front: Front) -> None:
    answer = await front.nobody.options(ROOT)

    assert answer.status_code == 204
    assert answer.headers["tus-version"] == "1.0.0"
    assert answer.headers["tus-extension"] == "creation,creation-with-upload,checksum,termination,expiration"
    assert answer.headers["tus-checksum-algorithm"] == "sha1,sha256"
    assert int(answer.headers["tus-max-size"]) == front.settings.max_source_bytes


async def test_a_new_upload_has_a_place_an_offset_and_an_end(front: Front) -> None:
    place = await created(front.ada, 100, name="film.mp4", filetype="video/mp4", ladder="web")

    found = await front.ada.head(place, headers=TUS)
    shown = (await front.ada.get(place)).json()
    assert (found.headers["upload-offset"], found.headers["upload-length"]) == ("0", "100")
    assert found.headers["upload-expires"].endswith("GMT")
    assert found.headers["cache-control"] == "no-store"
    told = packed(name="film.mp4", filetype="video/mp4", ladder="web")
    assert sorted(found.headers["upload-metadata"].split(",")) == sorted(told.split(","))
    assert (shown["name"], shown["state"], shown["progress"]) == ("film.mp4", "open", 0.0)


async def test_bytes_come_in_any_number_of_pieces(front: Front) -> None:
    place = await created(front.ada, len(CONTENT))

    first = await sent(front.ada, place, 0, CONTENT[:1000])
    second = await sent(front.ada, place, 1000, pieces(CONTENT[1000:1500], CONTENT[1500:2000]))

    assert (first.status_code, first.headers["upload-offset"]) == (204, "1000")
    assert (second.status_code, second.headers["upload-offset"]) == (204, "2000")
    assert file_of(front, place).read_bytes() == CONTENT[:2000]
    assert file_of(front, place).stat().st_mode & 0o777 == 0o600


async def test_the_first_bytes_may_come_with_the_announcement(front: Front) -> None:
    answer = await front.ada.post(ROOT, headers={**BYTES, "Upload-Length": "4096"}, content=CONTENT[:10])

    assert (answer.status_code, answer.headers["upload-offset"]) == (201, "10")
    assert await offset_of(front.ada, answer.headers["location"]) == 10


async def test_bytes_for_another_offset_are_a_conflict(front: Front) -> None:
    place = await created(front.ada, len(CONTENT))
    await sent(front.ada, place, 0, CONTENT[:1000])

    answers = [await sent(front.ada, place, offset, b"more") for offset in (0, 999, 1001)]

    assert [(one.status_code, one.headers["upload-offset"]) for one in answers] == [(409, "1000")] * 3
    assert "stands at byte 1000" in answers[0].json()["detail"]
    assert await offset_of(front.ada, place) == 1000


async def test_more_bytes_than_announced_are_too_many_and_none_is_taken(front: Front) -> None:
    place = await created(front.ada, 10)

    told = await sent(front.ada, place, 0, b"elevenbytes")
    found = await sent(front.ada, place, 0, pieces(b"eleven", b"bytes"))

    assert [told.status_code, found.status_code] == [413, 413]
    assert await offset_of(front.ada, place) == 0


BAD: list[tuple[dict[str, str], int, str]] = [
    ({}, 412, "Tus-Resumable"),
    ({"Tus-Resumable": "0.2.2", "Upload-Length": "10"}, 412, "Tus-Resumable"),
    ({**TUS}, 400, "Upload-Length"),
    ({**TUS, "Upload-Length": "-1"}, 400, "number of bytes"),
    ({**TUS, "Upload-Length": "٣"}, 400, "number of bytes"),
    ({**TUS, "Upload-Length": "9" * 30}, 400, "number of bytes"),
    ({**TUS, "Upload-Length": "0"}, 400, "without bytes"),
    ({**TUS, "Upload-Defer-Length": "1"}, 400, "must be known"),
    ({**TUS, "Upload-Length": str(1 << 50)}, 413, "max_source_bytes"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": "name not*base64"}, 400, "Base64"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": "name /w=="}, 400, "not text in Base64"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": "name eA==,name eA=="}, 400, "pairs"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": f"x {'A' * 9000}"}, 400, "longer"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": packed(lader="web")}, 422, "did you mean 'ladder'"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": packed(ladder="nope")}, 422, "nope"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": packed(qualities="721p")}, 422, "no rung '721p'"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": packed(ladder="[" * 3_000)}, 422, "nested too deeply"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": packed(source="/etc/passwd")}, 422, "not for an upload"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": packed(priority="soon")}, 422, "priority"),
    ({**TUS, "Upload-Length": "10", "Upload-Metadata": packed(sprites="perhaps")}, 422, "sprites"),
]


async def test_an_announcement_that_makes_no_sense_is_refused_in_a_sentence(front: Front) -> None:
    for headers, status, words in BAD:
        answer = await front.ada.post(ROOT, headers={name: value.encode() for name, value in headers.items()})

        assert answer.status_code == status, answer.text
        assert words in answer.json()["detail"]
        assert answer.headers["tus-resumable"] == "1.0.0"

    assert (await front.ada.get(ROOT)).json()["items"] == []


async def test_while_the_settings_name_no_ladder_that_there_is_no_upload_begins(front: Front) -> None:
    front.house.settings = front.house.settings.model_copy(update={"ladder": "wbe"})
    headers = {**TUS, "Upload-Length": "10", "Upload-Metadata": packed(name="film.mp4")}

    answer = await front.ada.post(ROOT, headers=headers)
    good = await front.ada.post(ROOT, headers={**headers, "Upload-Metadata": packed(name="film.mp4", ladder="web")})

    assert (answer.status_code, good.status_code) == (422, 201)
    assert "there is no ladder 'wbe'; did you mean 'web'?" in answer.json()["detail"]


WRONG: list[tuple[dict[str, str], int]] = [
    ({**TUS, "Upload-Offset": "0"}, 415),
    ({**BYTES}, 400),
    ({**BYTES, "Upload-Offset": "x"}, 400),
    ({**BYTES, "Upload-Offset": "0", "Upload-Checksum": "md5 AAAA"}, 400),
    ({**BYTES, "Upload-Offset": "0", "Upload-Checksum": "sha1 AAAA"}, 400),
    ({**BYTES, "Upload-Offset": "0", "Tus-Resumable": "2.0"}, 412),
]


async def test_bytes_with_wrong_headers_are_not_taken(front: Front) -> None:
    place = await created(front.ada, 10)

    answers = [await front.ada.patch(place, headers=headers, content=b"bytes") for headers, _ in WRONG]

    assert [one.status_code for one in answers] == [status for _, status in WRONG]
    assert await offset_of(front.ada, place) == 0


# -- checksums ---------------------------------------------------------------------------------------


async def test_bytes_with_their_checksum_are_taken(front: Front) -> None:
    for algorithm in ("sha1", "sha256"):
        place = await created(front.ada, len(CONTENT))
        digest = base64.b64encode(hashlib.new(algorithm, CONTENT[:1000]).digest()).decode()

        answer = await sent(front.ada, place, 0, CONTENT[:1000], **{"Upload-Checksum": f"{algorithm} {digest}"})

        assert (answer.status_code, answer.headers["upload-offset"]) == (204, "1000")


async def test_bytes_with_a_wrong_checksum_were_never_there(front: Front) -> None:
    place = await created(front.ada, len(CONTENT))
    await sent(front.ada, place, 0, CONTENT[:1000])
    digest = base64.b64encode(hashlib.sha1(b"others").digest()).decode()

    answer = await sent(front.ada, place, 1000, CONTENT[1000:2000], **{"Upload-Checksum": f"sha1 {digest}"})

    assert (answer.status_code, answer.json()["code"]) == (460, "checksum_mismatch")
    assert await offset_of(front.ada, place) == 1000
    assert (await sent(front.ada, place, 1000, b"")).status_code == 204
    assert file_of(front, place).read_bytes() == CONTENT[:1000]


# -- two at once -------------------------------------------------------------------------------------


class Slow:
    """A body whose second half comes when it is told to."""

    def __init__(self, first: bytes, second: bytes) -> None:
        self._parts = (first, second)
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._parts[0]
        self.begun.set()
        await self.go_on.wait()
        yield self._parts[1]


async def test_of_two_who_send_at_once_one_wins_and_the_other_is_told(front: Front) -> None:
    place = await created(front.ada, len(CONTENT))
    slow = Slow(CONTENT[:500], CONTENT[500:1000])
    first = asyncio.create_task(sent(front.ada, place, 0, slow))
    await slow.begun.wait()

    second = await sent(front.ada, place, 0, b"x" * 500)
    ended = await front.ada.delete(place, headers=TUS)
    slow.go_on.set()

    assert (second.status_code, second.json()["code"]) == (423, "locked")
    assert ended.status_code == 423
    assert (await first).headers["upload-offset"] == "1000"
    assert file_of(front, place).read_bytes() == CONTENT[:1000]


async def test_whoever_comes_back_is_not_kept_out_by_his_own_ghost(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(body_writer, "QUIET_SECONDS", 0.0)
    place = await created(front.ada, len(CONTENT))
    ghost = Slow(CONTENT[:500], b"")
    first = asyncio.create_task(sent(front.ada, place, 0, ghost))
    await ghost.begun.wait()

    assert await offset_of(front.ada, place) == 500, "what the ghost had sent is counted"
    assert (await sent(front.ada, place, 500, CONTENT[500:1000])).headers["upload-offset"] == "1000"

    assert (await first).status_code == 408
    assert file_of(front, place).read_bytes() == CONTENT[:1000]
