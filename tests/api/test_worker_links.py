"""Artifacts in a bucket: bytes go straight there by a link, and what is said of them is checked all the same."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from telecine.errors import ArtifactDamaged, Rejected
from telecine.facts import SECOND, KeptArtifact, Lease
from telecine.worker.handlers.recorder import Recorder
from telecine.worker.handlers.scratch import Scratch
from telecine.world import World
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, Hand, a_file, a_hand, held, nowhere, of
from tests.support.s3 import Bucket, serve_s3

pytestmark = pytest.mark.parametrize("front", ["sqlite"], indirect=True)


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with serve_s3(tmp_path_factory.mktemp("s3")) as own:
        yield own


async def begun(front: Front, bucket: Bucket) -> tuple[Hand, Lease]:
    """A worker with a task, at a server whose artifacts are in the bucket."""
    front.house.artifacts = bucket.artifacts()
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film")
    hand = await a_hand(front)
    terms = await hand.words.terms()
    assert (terms.links, terms.shared) == (True, True)
    return hand, await hand.take()


async def test_bytes_go_straight_into_the_bucket(front: Front, bucket: Bucket, tmp_path: Path) -> None:
    hand, lease = await begun(front, bucket)
    data = os.urandom(300_000)
    recorder = Recorder(hand.words, World(), hand.words.place)

    kept = await recorder.keep(held(lease), "720p/00001.m4s", a_file(tmp_path, data), {"n": 1})

    assert (bucket.folder / "work" / str(kept.key)).read_bytes() == data
    assert not (front.settings.scratch / "incoming").exists(), "nothing came by way of the server"
    assert await recorder.read(held(lease), kept, 10, 5) == data[10:15]
    assert (await hand.words.brief(lease)).kept["720p/00001.m4s"].sha256 == kept.sha256


async def test_a_link_is_for_one_key_and_dies_with_the_lease(front: Front, bucket: Bucket) -> None:
    hand, lease = await begun(front, bucket)

    link = (await hand.post("link", **of(lease, name="film"))).json()

    address = urlsplit(link["url"])
    assert address.path.endswith(f"/{lease.job_id}/cut%401/0/{lease.token}/film")
    assert parse_qs(address.query)["X-Amz-Expires"] == [str(round(front.parts.engine.lease / SECOND) + 60)]
    foreign = await a_hand(front, "bob")
    assert await foreign.refusal("link", **of(lease, name="film")) == (409, "lease_lost")
    assert await hand.refusal("link", **of(lease, name="../x")) == (422, "bad_spec")


async def test_the_size_is_checked_at_once(front: Front, bucket: Bucket, tmp_path: Path) -> None:
    hand, lease = await begun(front, bucket)
    key, stored = await hand.words.place.put(held(lease), "film", a_file(tmp_path, b"four"), nowhere)
    lie = {"name": "film", "key": key, "size": 5, "sha256": stored.sha256}

    assert await hand.refusal("keep", **of(lease, items=[lie])) == (422, "bad_artifact")
    never = {**lie, "name": "none", "key": key.replace("film", "none")}
    assert await hand.refusal("keep", **of(lease, items=[never])) == (404, "not_found")


async def test_the_hash_is_checked_by_whoever_reads_it_first(front: Front, bucket: Bucket, tmp_path: Path) -> None:
    hand, lease = await begun(front, bucket)
    key, _ = await hand.words.place.put(held(lease), "film", a_file(tmp_path, b"four"), nowhere)
    lie = KeptArtifact(name="film", token=lease.token, key=key, size=4, sha256="0" * 64)
    await hand.words.keep(lease.task_id, lease.token, [lie])
    scratch = Scratch(tmp_path / "scratch", "ann")
    scratch.open()

    with pytest.raises(ArtifactDamaged):
        await Recorder(hand.words, World(), hand.words.place).fetch(held(lease), scratch, lie)
    scratch.close()


async def test_what_was_recorded_gets_no_second_link(front: Front, bucket: Bucket, tmp_path: Path) -> None:
    hand, lease = await begun(front, bucket)
    await Recorder(hand.words, World(), hand.words.place).keep(held(lease), "film", a_file(tmp_path, b"good"), {})

    link = (await hand.post("link", **of(lease, name="film"))).json()

    assert link["url"] is None
    with pytest.raises((ArtifactDamaged, Rejected)):
        await hand.words.place.put(held(lease), "film", a_file(tmp_path, b"evil"), nowhere)


async def test_a_bucket_that_the_worker_cannot_reach_costs_only_the_detour(
    front: Front, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand, lease = await begun(front, bucket)
    real = front.house.artifacts.link

    async def elsewhere(key: str, seconds: float) -> str | None:
        return str(await real(key, seconds)).replace(bucket.endpoint, "http://127.0.0.1:9")

    monkeypatch.setattr(front.house.artifacts, "link", elsewhere)

    keys = [
        (await hand.words.place.put(held(lease), f"film-{n}", a_file(tmp_path, b"x"), nowhere))[0] for n in range(4)
    ]

    assert [(bucket.folder / "work" / key).read_bytes() for key in keys] == [b"x"] * 4
    assert not hand.words.place.links  # type: ignore[attr-defined]
