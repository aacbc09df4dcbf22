"""Videos without an encoder: jobs of a flow with the transcode flow's name, whose files a test has written itself."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

from telecine.facts import Done, KeptArtifact, Lease
from tests.api.in_process_server import Front
from tests.support.builders import a_flow

FLOW = a_flow("video", "poster", "publish", name="transcode")
SEGMENT = bytes(range(256)) * 40


@dataclass(frozen=True)
class Piece:
    """A file as players name it."""

    id: int
    token: int
    name: str
    data: bytes
    job_id: int

    @property
    def path(self) -> str:
        return f"s/{self.id}-{self.token}.{self.name.rpartition('.')[2]}"

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.data).hexdigest()}"'


async def keep(front: Front, lease: Lease, name: str, data: bytes) -> None:
    key = f"{lease.job_id}/{lease.stage}@1/0/{lease.token}/{name}"
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        await front.house.artifacts.put(key, Path(file.name))
    kept = KeptArtifact(name=name, token=lease.token, key=key, size=len(data), sha256=hashlib.sha256(data).hexdigest())
    await front.parts.engine.keep(lease.task_id, lease.token, [kept])


async def begun(front: Front, video: str, *, owner: str = "ada", data: bytes = SEGMENT) -> int:
    """A job whose first stage runs and has kept a segment."""
    if not front.bed.lanes:
        await front.bed.enact(FLOW)
    submitted = await front.parts.engine.jobs.submit(
        "transcode", {"source": "/films/a.mp4"}, owner=owner, subject=("video", video)
    )
    [lease] = await front.bed.claim()
    await keep(front, lease, "720p/00000.m4s", data)
    front.running[video] = lease
    return submitted.job_id


async def finished(front: Front, video: str) -> None:
    """The job goes on to its end and is published."""
    await front.bed.settle(front.running.pop(video), Done())
    [lease] = await front.bed.claim()
    await keep(front, lease, "poster.jpg", b"\xff\xd8 poster")
    await front.bed.settle(lease, Done())
    await front.bed.settle(await front.bed.claim(), Done(publish=True, facts={"duration_ms": 3_400}))


async def published(front: Front, video: str, *, owner: str = "ada", data: bytes = SEGMENT) -> int:
    job_id = await begun(front, video, owner=owner, data=data)
    await finished(front, video)
    return job_id


async def piece_of(front: Front, job_id: int, data: bytes = SEGMENT) -> Piece:
    [row] = await front.bed.sql(f"select id, token, name from artifact where job_id = {job_id} and stage = 'video'")
    return Piece(row["id"], row["token"], row["name"], data, job_id)


async def link_of(front: Front, video: str, what: str = "poster") -> str:
    """The folder of a video under a signed link."""
    address = (await front.ada.get(f"/api/v1/videos/{video}")).json()["playback"][what]
    assert address is not None
    found: str = address[: address.index(f"/{video}/") + len(video) + 2]
    return found
