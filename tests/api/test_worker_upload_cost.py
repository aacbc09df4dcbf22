"""What one uploaded segment of a remote worker costs: one read of its lease, and two hashes, one on each side."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from telecine.engine.leases.remote_workers import RemoteWorkers
from telecine.errors import ArtifactDamaged
from telecine.facts import KeptArtifact, Lease
from telecine.worker.handlers.recorder import Recorder
from telecine.world import World
from tests.api.in_process_server import Front
from tests.api.worker_client import FLOW, Hand, a_file, a_hand, held, nowhere

SEGMENT = os.urandom(1 << 20)


class Costs:
    """Counts hashed bytes and reads of leases, of worker and server together."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hashed = 0
        self.leases = 0
        real, read, costs = hashlib.sha256, RemoteWorkers.lease, self

        class Counted:
            def __init__(self, data: bytes = b"") -> None:
                self._hash = real()
                self.update(data)

            def update(self, data: bytes) -> None:
                costs.hashed += len(data)
                self._hash.update(data)

            def hexdigest(self) -> str:
                return self._hash.hexdigest()

        async def counted(*given: Any) -> Lease:
            costs.leases += 1
            return await read(*given)

        monkeypatch.setattr(hashlib, "sha256", Counted)
        monkeypatch.setattr(RemoteWorkers, "lease", counted)


@pytest.fixture
def inspected(front: Front) -> list[bytes]:
    """What the inspector of the flow has seen."""
    seen: list[bytes] = []

    async def inspect(lease: Lease, kept: KeptArtifact, read: Any) -> None:
        seen.append(await read(kept))

    front.house.inspectors = {"film": inspect}
    return seen


async def begun(front: Front) -> tuple[Hand, Lease]:
    await front.parts.engine.jobs.register(FLOW)
    await front.parts.engine.jobs.submit("film")
    hand = await a_hand(front)
    return hand, await hand.take()


async def uploaded(hand: Hand, lease: Lease, folder: Path, name: str = "720p/1.m4s") -> KeptArtifact:
    key, stored = await hand.words.place.put(held(lease), name, a_file(folder, SEGMENT), nowhere)
    return KeptArtifact(name=name, token=lease.token, key=key, size=stored.size, sha256=stored.sha256)


async def test_a_segment_costs_one_lease_and_two_hashes(
    front: Front, inspected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand, lease = await begun(front)
    costs = Costs(monkeypatch)

    for name in ("720p/1.m4s", "720p/2.m4s"):
        kept = await uploaded(hand, lease, tmp_path, name)
        await hand.words.keep(lease.task_id, lease.token, [kept])

    assert (costs.hashed // len(SEGMENT), costs.leases) == (2 * 2, 2 * 1)
    assert inspected == [SEGMENT, SEGMENT]


async def test_a_hash_that_the_handler_knows_is_not_computed_again_and_the_server_checks_it(
    front: Front, inspected: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A media child hashes what it makes: with the server's that is two."""
    hand, lease = await begun(front)
    recorder, path = Recorder(hand.words, World(), hand.words.place), a_file(tmp_path, SEGMENT)
    known = hashlib.sha256(SEGMENT).hexdigest()
    costs = Costs(monkeypatch)

    kept = await recorder.keep(held(lease), "720p/1.m4s", path, {}, known)
    with pytest.raises(ArtifactDamaged):
        await recorder.keep(held(lease), "720p/2.m4s", path, {}, "0" * 64)

    assert (kept.sha256, inspected) == (known, [SEGMENT])
    assert costs.hashed // len(SEGMENT) == 2, "once for each that came, by the server"


async def test_bytes_that_were_replaced_after_they_came_are_hashed_again(
    front: Front, inspected: list[bytes], tmp_path: Path
) -> None:
    """By another server that shares the folder, say: what is inspected must be what is recorded."""
    hand, lease = await begun(front)
    kept = await uploaded(hand, lease, tmp_path)
    other = a_file(tmp_path, SEGMENT[::-1], "other")
    other.replace(Path(front.settings.artifacts_url, str(kept.key)))

    answer = await hand.post(
        "keep", task_id=lease.task_id, token=lease.token,
        items=[{"name": kept.name, "key": kept.key, "size": kept.size, "sha256": kept.sha256}],
    )  # fmt: skip

    assert answer.status_code >= 400
    assert inspected == []
    assert await front.bed.count("artifact") == 0


async def test_a_server_that_did_not_take_the_bytes_reads_lease_and_bytes_itself(
    front: Front, inspected: list[bytes], tmp_path: Path
) -> None:
    hand, lease = await begun(front)
    kept = await uploaded(hand, lease, tmp_path)
    front.house.rooms.clear()

    await hand.words.keep(lease.task_id, lease.token, [kept])

    assert inspected == [SEGMENT]


async def test_a_lease_that_was_remembered_is_still_fenced(
    front: Front, inspected: list[bytes], tmp_path: Path
) -> None:
    hand, lease = await begun(front)
    kept = await uploaded(hand, lease, tmp_path)
    await hand.words.release([(lease.task_id, lease.token)])

    refused = await hand.refusal(
        "keep", task_id=lease.task_id, token=lease.token,
        items=[{"name": kept.name, "key": kept.key, "size": kept.size, "sha256": kept.sha256}],
    )  # fmt: skip

    assert refused == (409, "lease_lost")
    assert await front.bed.count("artifact") == 0
