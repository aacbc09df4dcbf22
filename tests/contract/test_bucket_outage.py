"""A bucket that is away for a while costs no attempt; one that stays away is named in the error."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.engine import Submission
from telecine.errors import ArtifactError
from telecine.facts import Lease
from telecine.worker import retry_while_leased
from telecine.worker.artifact_place import LocalArtifacts
from telecine.worker.attempts import Attempt
from telecine.worker.handlers.recorder import Recorder
from telecine.worker.local_engine import LocalEngine
from telecine.world import World
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed
from tests.support.s3 import S3Server

FLOW = a_flow("cut")
ON_SQLITE = pytest.mark.parametrize("bed", ["sqlite"], indirect=True)
AWAY_SECONDS = 6.0  # longer than the client of the bucket tries by itself


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    with S3Server(tmp_path) as started:
        yield started


async def leased(bed: Bed) -> Lease:
    await bed.enact(FLOW)
    await bed.engine.jobs.submit_many([Submission(flow="film")])
    [lease] = await bed.claim(1)
    return lease


@ON_SQLITE
async def test_what_is_kept_while_the_bucket_is_away_is_stored_when_it_is_back(
    bed: Bed, server: S3Server, tmp_path: Path
) -> None:
    attempt = Attempt(await leased(bed), until=float("inf"))
    recorder = Recorder(LocalEngine(bed.engine), World(), LocalArtifacts(server.bucket.artifacts()))
    (tmp_path / "made").write_bytes(b"six seconds")

    server.stop()
    keeping = asyncio.create_task(recorder.keep(attempt, "segment", tmp_path / "made", {}))
    await asyncio.sleep(AWAY_SECONDS)
    assert not keeping.done()
    server.start()
    kept = await asyncio.wait_for(keeping, 30)

    assert await recorder.read(attempt, kept, 0, None) == b"six seconds"
    [row] = await bed.sql(f"select tries, state from task where id = {attempt.lease.task_id}")
    assert (row["tries"], row["state"]) == (1, "running")


@ON_SQLITE
async def test_a_bucket_that_stays_away_fails_the_attempt_with_the_reason(
    bed: Bed, server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry_while_leased, "MAX_BUCKET_SECONDS", 1.0)
    attempt = Attempt(await leased(bed), until=float("inf"))
    recorder = Recorder(LocalEngine(bed.engine), World(), LocalArtifacts(server.bucket.artifacts()))
    (tmp_path / "made").write_bytes(b"six seconds")

    server.stop()
    with pytest.raises(ArtifactError, match="could not be stored"):
        await asyncio.wait_for(recorder.keep(attempt, "segment", tmp_path / "made", {}), 60)
