"""Pieces and pictures over HTTP: whole or in one range, by nobody's paths."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from telecine.engine.accounts.keys import Scope
from tests.api.in_process_server import Front
from tests.api.video_fixtures import SEGMENT, link_of, piece_of, published

SIZE = len(SEGMENT)


async def test_a_piece_is_sent_whole_and_may_be_kept_for_ever(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))

    answer = await front.ada.get(f"/media/v/film-1/{piece.path}")

    assert (answer.status_code, answer.content) == (200, SEGMENT)
    assert answer.headers["content-type"] == "video/iso.segment"
    assert answer.headers["content-length"] == str(SIZE)
    assert answer.headers["etag"] == piece.etag
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
    assert answer.headers["x-content-type-options"] == "nosniff"


RANGES = [
    ("bytes=0-0", 0, 0),
    ("bytes=100-299", 100, 299),
    ("bytes=10000-", 10_000, SIZE - 1),
    ("bytes=-5", SIZE - 5, SIZE - 1),
    ("bytes=-999999999999", 0, SIZE - 1),
    ("bytes=5-999999999999999999", 5, SIZE - 1),
    ("BYTES=7-8", 7, 8),
    (" bytes=, 7-8 ,", 7, 8),
]
BEYOND = [f"bytes={SIZE}-", "bytes=-0", f"bytes={10**30}-", f"bytes={SIZE}-{SIZE + 5}", f"bytes={SIZE}-,{2 * SIZE}-"]
IGNORED = [
    *("bytes=5-4", "bytes=-", "bytes=", "bytes", "bytes=a-b", "bytes=0-1,4-5", "bytes=0-1,5-4", "bytes=7 - 8"),
    *("bytes=" + ",".join(["0-"] * 900), "bytes=--5", "bytes=1-2-3", "bytes=0-0 0", "", "frames=0-9"),
    "bytes=\u0663-\u0664",
]


async def test_one_range_is_sent(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))

    for asked, first, last in RANGES:
        answer = await front.ada.get(f"/media/v/film-1/{piece.path}", headers={"Range": asked})

        assert (answer.status_code, answer.content) == (206, SEGMENT[first : last + 1]), asked
        assert answer.headers["content-range"] == f"bytes {first}-{last}/{SIZE}"
        assert answer.headers["content-length"] == str(last - first + 1)


async def test_a_range_beyond_the_end_is_refused(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))

    for asked in BEYOND:
        answer = await front.ada.get(f"/media/v/film-1/{piece.path}", headers={"Range": asked.encode()})

        assert (answer.status_code, answer.json()["code"]) == (416, "bad_range"), asked
        assert answer.headers["content-range"] == f"bytes */{SIZE}"


async def test_several_and_malformed_ranges_mean_the_whole(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))

    for asked in IGNORED:
        answer = await front.ada.get(f"/media/v/film-1/{piece.path}", headers={"Range": asked.encode()})

        assert (answer.status_code, answer.content) == (200, SEGMENT), asked
        assert "content-range" not in answer.headers


async def test_conditions_follow_the_standard(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    expected = [
        ({"If-Match": piece.etag}, 200),
        ({"If-Match": f'"a", {piece.etag}'}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": f"W/{piece.etag}"}, 412),
        ({"If-Match": '"other"'}, 412),
        ({"If-None-Match": f"W/{piece.etag}"}, 304),
        ({"If-None-Match": f'"a", {piece.etag}'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"Range": "bytes=0-9", "If-Range": f"W/{piece.etag}"}, 200),
        ({"Range": "bytes=0-9", "If-Range": "Wed, 21 Oct 2015 07:28:00 GMT"}, 200),
        ({"Range": f"bytes={SIZE}-", "If-None-Match": piece.etag}, 304),
    ]

    for headers, status in expected:
        answer = await front.ada.get(f"/media/v/film-1/{piece.path}", headers=headers)
        head = await front.ada.head(f"/media/v/film-1/{piece.path}", headers=headers)

        assert (answer.status_code, head.status_code) == (status, status), headers

    ranged = await front.ada.head(f"/media/v/film-1/{piece.path}", headers={"Range": "bytes=0-9"})
    assert (ranged.status_code, ranged.headers["content-length"]) == (200, str(SIZE))


async def test_a_unit_that_nobody_knows_and_another_version_of_the_file_mean_the_whole(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    address = f"/media/v/film-1/{piece.path}"
    part = {"Range": "bytes=0-9"}

    assert (await front.ada.get(address, headers={"Range": "frames=0-9"})).status_code == 200
    assert (await front.ada.get(address, headers={**part, "If-Range": '"other"'})).status_code == 200
    assert (await front.ada.get(address, headers={**part, "If-Range": piece.etag})).status_code == 206


async def test_who_has_it_already_is_told_so(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))

    for known in (piece.etag, f'"x", W/{piece.etag}', "*"):
        answer = await front.ada.get(f"/media/v/film-1/{piece.path}", headers={"If-None-Match": known})
        assert (answer.status_code, answer.content) == (304, b"")
        assert answer.headers["etag"] == piece.etag


async def test_head_says_all_but_the_bytes(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1"))
    address = f"/media/v/film-1/{piece.path}"

    whole, part = await front.ada.head(address), await front.ada.head(address, headers={"Range": "bytes=0-9"})

    assert (whole.status_code, whole.content, whole.headers["content-length"]) == (200, b"", str(SIZE))
    assert (part.status_code, part.content, part.headers["content-length"]) == (200, b"", str(SIZE))


async def test_pictures_lie_beside_their_version(front: Front) -> None:
    await published(front, "film-1")

    poster = await front.ada.get("/media/v/film-1/v1/poster.jpg")

    assert (poster.status_code, poster.headers["content-type"]) == (200, "image/jpeg")
    assert (await front.ada.get("/media/v/film-1/v2/poster.jpg")).status_code == 404
    assert (await front.ada.get("/media/v/film-1/v1/720p/00000.m4s")).status_code == 404


NAMES = [
    *("s/../../../etc/passwd", "s/%2e%2e%2f%2e%2e%2fetc%2fpasswd", "s/..%5c..%5cx", "s/1-1.m4s/../x"),
    *("v1/../../telecine.db", "v1/%2e%2e/%2e%2e/telecine.db", "v1//etc/passwd", "v1/poster.jpg%00.m4s", "v1/%00"),
    *("v1/plan.json", "v1/source", "s/1.m4s", "s/-1-1.m4s", "s/1-1.exe", f"s/{'9' * 18}-{'9' * 9}.m4s"),
    *("s/" + "9" * 300 + "-1.m4s", "v99999999999999999999/master.m3u8", "v0/x", "vx/x", "v1/"),
    *("preview/1/master.m3u8", "preview/x/y", "preview/99999999999999999999/x", "%00/x", "v1/%ff%fe"),
    *("s/1-1.m4s%0d%0aX: y", "v1/poster.jpg;x", "v1/POSTER.JPG", "v1/./poster.jpg"),
]


async def test_no_name_in_an_address_leads_anywhere(front: Front) -> None:
    await published(front, "film-1")
    base = await link_of(front, "film-1")

    for address in (f"{start}{name}" for name in NAMES for start in ("/media/v/film-1/", base)):
        status, headers = await as_it_is(front, address)

        assert status in (404, 422), address
        assert headers[b"content-type"] == b"application/problem+json"


async def as_it_is(front: Front, address: str) -> tuple[int, dict[bytes, bytes]]:
    """Ask without a client that would tidy the address up."""
    said: list[Any] = []
    key = front.ada.headers["authorization"].encode()
    scope = {
        "type": "http", "method": "GET", "path": unquote(address, errors="replace"), "raw_path": address.encode(),
        "query_string": b"", "headers": [(b"authorization", key)], "client": ("127.0.0.1", 1), "scheme": "http",
        "http_version": "1.1", "server": ("telecine.test", 80), "root_path": "",
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: Any) -> None:
        said.append(message)

    await front.app(scope, receive, send)
    return said[0]["status"], dict(said[0]["headers"])


async def test_a_video_of_a_strange_name_is_just_not_there(front: Front) -> None:
    for video in ("%00", "a%00b", "..", "%2e%2e", "a%2fb", "%ff", "x" * 300, "%F0%9F%8E%AC"):
        answer = await front.ada.get(f"/media/v/{video}/v1/master.m3u8")
        assert answer.status_code in (404, 422), video


async def test_bytes_that_are_gone_or_damaged_are_never_sent_as_if_they_were_whole(front: Front) -> None:
    job_id = await published(front, "film-1")
    piece = await piece_of(front, job_id)
    path = front.house.artifacts.path(f"{job_id}/video@1/0/1/720p/00000.m4s")
    assert path is not None

    path.write_bytes(SEGMENT[:-1])
    damaged = await front.ada.get(f"/media/v/film-1/{piece.path}")
    path.unlink()
    path.symlink_to("/etc/passwd")
    linked = await front.ada.get(f"/media/v/film-1/{piece.path}")
    path.unlink()
    missing = await front.ada.get(f"/media/v/film-1/{piece.path}")

    assert (damaged.status_code, damaged.json()["code"]) == (503, "artifact_damaged")
    assert (linked.status_code, missing.status_code) == (404, 404)


async def test_many_viewers_at_once_leave_no_file_open(front: Front) -> None:
    piece = await piece_of(front, await published(front, "film-1", data=SEGMENT * 30), SEGMENT * 30)
    client = await front.client(Scope.OWNER, owner="ada")

    answers = await asyncio.gather(*(client.get(f"/media/v/film-1/{piece.path}") for _ in range(30)))

    assert {answer.content == piece.data for answer in answers} == {True}
    assert open_below(front.house.artifacts.folder) == []


def open_below(folder: Path | None) -> list[str]:
    """Files below it that this process has open."""
    found = []
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.append(str(entry.readlink()))
    return [name for name in found if name.startswith(str(folder))]
