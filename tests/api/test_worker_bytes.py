"""Bytes of remote workers: stored under the fence, resumed where they broke off, seen only by whom they concern."""

import hashlib
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from telecine.errors import HandlerStopped, LeaseLost, NotFound
from telecine.facts import Done, KeptArtifact, Lease, LeaseOutcome
from telecine.worker.http.artifact_client import PART
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, Hand, a_file, a_hand, held, nowhere, of

SHA = "X-SHA256"


async def begun(front: Front, name: str = "ann", **how: Any) -> tuple[Hand, Lease]:
    """A worker that holds the first task of a job."""
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film", **how)
    hand = await a_hand(front, name)
    return hand, await hand.take()


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def sent(hand: Hand, lease: Lease, name: str, data: bytes, **headers: str) -> httpx.Response:
    where = f"/api/worker/artifacts/{lease.task_id}/{lease.token}/{name}"
    return await hand.client.put(where, content=data, headers={SHA: sha(data), **headers})


async def keep(hand: Hand, lease: Lease, name: str, data: bytes, folder: Path) -> KeptArtifact:
    key, stored = await hand.words.place.put(held(lease), name, a_file(folder, data), nowhere)
    kept = KeptArtifact(name=name, token=lease.token, key=key, size=stored.size, sha256=stored.sha256)
    await hand.words.keep(lease.task_id, lease.token, [kept])
    return kept


async def test_what_is_kept_lies_where_a_local_worker_would_put_it(front: Front, tmp_path: Path) -> None:
    hand, lease = await begun(front)
    data = b"segment " * 1000

    kept = await keep(hand, lease, "720p/00001.m4s", data, tmp_path)
    place = hand.words.place
    copy = tmp_path / "copy"
    got = await place.get(held(lease), str(kept.key), copy, nowhere)

    assert kept.key == f"{lease.job_id}/cut@1/0/{lease.token}/720p/00001.m4s"
    assert Path(front.settings.artifacts_url, str(kept.key)).read_bytes() == data
    assert (got.size, got.sha256, copy.read_bytes()) == (len(data), sha(data), data)
    assert await place.read(held(lease), str(kept.key), 8, 16, kept.size) == data[8:24]
    assert await place.read(held(lease), str(kept.key), len(data) - 3, 100, None) == data[-3:]
    assert await place.stat(held(lease), str(kept.key)) == len(data)
    assert await place.digest(held(lease), str(kept.key), nowhere) == got
    assert (await hand.words.brief(lease)).kept["720p/00001.m4s"].sha256 == sha(data)


async def test_a_large_file_goes_in_parts_and_an_empty_one_goes_too(front: Front, tmp_path: Path) -> None:
    hand, lease = await begun(front)
    large = os.urandom(2 * PART + 17)

    kept = await keep(hand, lease, "large", large, tmp_path)
    empty = await keep(hand, lease, "empty", b"", tmp_path)
    read = await hand.words.place.read(held(lease), str(kept.key), 0, None, None)

    assert (read, empty.size) == (large, 0)
    assert await hand.words.place.read(held(lease), str(empty.key), 0, None, None) == b""
    assert list((front.settings.scratch / "incoming").iterdir()) == []


async def test_what_broke_off_goes_on_where_it_was(front: Front) -> None:
    hand, lease = await begun(front)
    data = os.urandom(100_000)
    where = f"/api/worker/artifacts/{lease.task_id}/{lease.token}/film"
    headers = {SHA: sha(data)}

    first = await hand.client.put(
        where, content=data[:60_000], headers={**headers, "Content-Range": "bytes 0-59999/100000"}
    )
    offset = (await hand.client.head(where)).headers["upload-offset"]
    gap = await hand.client.put(
        where, content=data[70_000:], headers={**headers, "Content-Range": "bytes 70000-99999/100000"}
    )
    rest = await hand.client.put(
        where, content=data[60_000:], headers={**headers, "Content-Range": "bytes 60000-99999/100000"}
    )

    assert (first.status_code, first.json(), offset) == (202, {"offset": 60_000}, "60000")
    assert (gap.status_code, gap.json()["code"]) == (409, "wrong_offset")
    assert (rest.status_code, rest.json()["sha256"]) == (200, sha(data))


async def test_parts_of_leases_that_have_ended_are_cleared(front: Front) -> None:
    hand, lease = await begun(front)
    incoming = front.settings.scratch / "incoming"
    incoming.mkdir(parents=True)
    stray, own = incoming / "77-1-ab.part", incoming / f"{lease.task_id}-{lease.token}-ab.part"
    for part in (stray, own):
        part.write_bytes(b"half")

    await sent(hand, lease, "film", b"abc")

    assert (stray.exists(), own.exists()) == (False, True)


async def test_bytes_that_do_not_hash_to_what_was_said_are_not_stored(front: Front) -> None:
    hand, lease = await begun(front)

    refused = await sent(hand, lease, "film", b"abc", **{SHA: sha(b"abd")})

    assert (refused.status_code, refused.json()["code"]) == (422, "bad_hash")
    assert not Path(front.settings.artifacts_url, f"{lease.job_id}/cut@1/0/{lease.token}/film").exists()


@pytest.mark.parametrize("name", ["..%2F..%2Fetc", "a%2F..%2Fb", "a%5Cb", "a%00b", "x" * 501])
async def test_a_name_that_is_no_plain_path_is_refused(front: Front, name: str) -> None:
    hand, lease = await begun(front)

    refused = await sent(hand, lease, name, b"abc")

    assert refused.status_code in (404, 405, 422)


@pytest.mark.parametrize("name", ["x" * 300, "a%01b", "a%7F", "a%231", "%C3%A9" * 130])
async def test_a_name_that_no_store_can_hold_is_refused_before_a_byte_is_stored(front: Front, name: str) -> None:
    hand, lease = await begun(front)

    refused = await sent(hand, lease, name, b"abc")

    assert (refused.status_code, refused.json()["code"]) == (422, "bad_spec"), refused.text
    assert refused.json()["detail"].startswith("artifact name ")
    assert [path for path in Path(front.settings.artifacts_url).rglob("*") if path.is_file()] == []


async def test_what_was_recorded_is_not_replaced_and_a_repeat_is_fine(front: Front, tmp_path: Path) -> None:
    hand, lease = await begun(front)
    kept = await keep(hand, lease, "film", b"good", tmp_path)

    again = await sent(hand, lease, "film", b"good")
    other = await sent(hand, lease, "film", b"evil")

    assert (again.status_code, again.json()["key"]) == (200, kept.key)
    assert (other.status_code, other.json()["code"]) == (409, "already_kept")
    assert Path(front.settings.artifacts_url, str(kept.key)).read_bytes() == b"good"


@pytest.mark.parametrize("lie", [{"sha256": "0" * 64}, {"size": 5}, {"key": "1/other@1/0/1/film"}, {"name": "another"}])
async def test_a_record_that_differs_from_its_bytes_is_refused(front: Front, lie: dict[str, Any]) -> None:
    hand, lease = await begun(front)
    stored = (await sent(hand, lease, "film", b"good")).json()
    truth = {"name": "film", "key": stored["key"], "size": 4, "sha256": stored["sha256"]}

    refused = await hand.refusal("keep", **of(lease, items=[{**truth, **lie}]))

    assert refused == (422, "bad_artifact")
    assert await front.bed.count("artifact") == 0


async def test_bytes_are_read_again_by_a_server_that_did_not_take_them(front: Front) -> None:
    hand, lease = await begun(front)
    stored = (await sent(hand, lease, "film", b"good")).json()
    front.house.rooms.clear()

    kept = await hand.post("keep", **of(lease, items=[{"name": "film", **stored}]))

    assert kept.status_code == 204


async def test_nothing_is_kept_that_was_never_stored(front: Front) -> None:
    hand, lease = await begun(front)
    item = {"name": "film", "key": f"{lease.job_id}/cut@1/0/{lease.token}/film", "size": 4, "sha256": "0" * 64}

    assert await hand.refusal("keep", **of(lease, items=[item])) == (404, "not_found")


async def test_a_foreign_artifact_is_as_absent_as_none(front: Front, tmp_path: Path) -> None:
    ann, mine = await begun(front)
    kept = await keep(ann, mine, "film", b"secret", tmp_path)
    bob, other = await begun(front, "bob")
    assert other.job_id != mine.job_id

    for where in (f"kept/{other.task_id}/{other.token}/{kept.key}", f"digest/{other.task_id}/{other.token}/{kept.key}"):
        answer = await bob.client.get(f"/api/worker/{where}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    under_hers = await bob.client.get(f"/api/worker/kept/{mine.task_id}/{mine.token}/{kept.key}")
    put = await sent(bob, mine, "film", b"evil")
    assert (under_hers.status_code, put.status_code) == (409, 409)
    with pytest.raises(NotFound):
        await bob.words.place.read(held(other), str(kept.key), 0, 3, 6)


@pytest.mark.parametrize(
    "key", ["%00", "..%2F..%2Fetc%2Fpasswd", "%2Fetc%2Fpasswd", "a%5Cb", "x" * 3000, "%F0%9F%98%80"]
)
async def test_a_key_that_is_none_is_as_absent_as_a_foreign_one(front: Front, key: str) -> None:
    hand, lease = await begun(front)

    answer = await hand.client.get(f"/api/worker/kept/{lease.task_id}/{lease.token}/{key}")

    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")


async def test_whoever_lost_the_lease_stores_and_reads_nothing(front: Front, tmp_path: Path) -> None:
    hand, lease = await begun(front)
    kept = await keep(hand, lease, "film", b"good", tmp_path)
    await hand.words.settle([LeaseOutcome(lease.task_id, lease.token, Done())])

    refused = await sent(hand, lease, "more", b"bytes")

    assert (refused.status_code, refused.json()["code"]) == (409, "lease_lost")
    with pytest.raises(HandlerStopped):
        await hand.words.place.put(held(lease), "more", a_file(tmp_path, b"x"), nowhere)
    with pytest.raises(HandlerStopped):
        await hand.words.place.read(held(lease), str(kept.key), 0, 1, 4)
    with pytest.raises(LeaseLost):
        await hand.words.brief(lease)


async def test_the_next_stage_reads_what_the_one_before_kept(front: Front, tmp_path: Path) -> None:
    hand, lease = await begun(front)
    kept = await keep(hand, lease, "film", b"good", tmp_path)
    await hand.words.settle([LeaseOutcome(lease.task_id, lease.token, Done())])
    join = await hand.take("request-2")

    [found] = await hand.words.artifacts(join, ["cut"])

    assert found.kept.key == kept.key
    assert await hand.words.place.read(held(join), str(found.kept.key), 0, None, found.kept.size) == b"good"


@pytest.mark.parametrize(
    ("wanted", "status", "found"),
    [
        ("bytes=9-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=5-2", 200, b"good"),
        ("words=0-1", 200, b"good"),
        ("bytes=-3", 206, b"ood"),
        ("bytes=1-2", 206, b"oo"),
    ],
)
async def test_ranges_of_artifacts_follow_the_standard(
    front: Front, tmp_path: Path, wanted: str, status: int, found: bytes | None
) -> None:
    hand, lease = await begun(front)
    kept = await keep(hand, lease, "film", b"good", tmp_path)
    where = f"/api/worker/kept/{lease.task_id}/{lease.token}/{kept.key}"

    answer = await hand.client.get(where, headers={"Range": wanted})
    whole = await hand.client.get(where)

    assert answer.status_code == status
    assert found is None or answer.content == found
    assert status != 416 or answer.headers["content-range"] == "bytes */4"
    assert (whole.status_code, whole.content) == (200, b"good")
