"""Handlers find again what was kept: wherever they live, in a folder and in a bucket, and only if it is whole."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from telecine.artifacts import Artifacts
from telecine.dispatch.local import LocalBell
from telecine.engine import Engine
from telecine.worker import Worker, WorkerOptions
from telecine.worker.local_engine import LocalEngine
from telecine.world import World
from tests.fault.program import open_engine
from tests.fault.worker_processes import BRISK, ended, rows, until
from tests.support.inventory_flows import RUNS, shelves, spoilt
from tests.support.s3 import Bucket, serve_s3


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    with serve_s3(tmp_path_factory.mktemp("s3")) as bucket:
        yield bucket


@dataclass(frozen=True)
class Place:
    options: WorkerOptions

    @property
    def artifacts(self) -> Artifacts:
        assert self.options.artifacts is not None
        return Artifacts(self.options.artifacts, self.options.s3)


@pytest.fixture(params=["folder", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    options = WorkerOptions(name="ann", scratch=tmp_path / "scratch", slots=3, **BRISK)
    if request.param == "folder":
        return Place(replace(options, artifacts=str(tmp_path / "artifacts")))
    bucket: Bucket = request.getfixturevalue("bucket")
    return Place(replace(options, artifacts=f"{bucket.url}/{tmp_path.name}", s3=bucket.access))


@asynccontextmanager
async def working(url: str, options: WorkerOptions) -> AsyncIterator[Engine]:
    """An engine with both flows, and a worker on it."""

    async with open_engine(url) as engine:

        @asynccontextmanager
        async def beat_words() -> AsyncIterator[Any]:
            yield LocalEngine(engine)

        for flow in (shelves, spoilt):
            await engine.jobs.register(flow)
        worker = Worker(LocalEngine(engine), LocalBell(), [shelves, spoilt], options, World(), beat_words)
        running = asyncio.ensure_future(worker.run())
        try:
            yield engine
        finally:
            worker.stop()
            await running


def test_every_handler_finds_what_another_stage_has_kept(sqlite_url: str, place: Place) -> None:
    async def scene() -> None:
        async with working(sqlite_url, place.options) as engine:
            job = await engine.jobs.submit("shelves")

            assert await ended(engine, job.job_id) == ["completed"]

            view = await engine.queries.job(job.job_id)
            told = {one.stage: one.value for one in view.results}
            assert len(told) == len(RUNS)
            for stage, seen in told.items():
                assert seen == {
                    "names": ["at", "deep/a.bin", "empty"],
                    "place": ["make", 0, {"kind": "digits"}],
                    "value": 7,
                    "same": True,
                    "in_place": place.artifacts.folder is not None,
                    "parts": ["5678901234", ""],
                    "slots": 3,
                }, stage

    asyncio.run(scene())


def test_a_later_attempt_adopts_only_what_is_whole(sqlite_url: str, place: Place, tmp_path: Path) -> None:
    async def scene() -> None:
        async with working(sqlite_url, place.options) as engine:
            job = await engine.jobs.submit("spoilt", {"folder": str(tmp_path)})
            await until(lambda: tries(engine))
            keys = {row["name"]: row["key"] for row in await rows(engine, "select name, key from artifact")}
            for name, content in (("changed", b"x" * 10_000), ("shorter", b"x")):
                (tmp_path / name).write_bytes(content)
                await place.artifacts.put(keys[name], tmp_path / name)
            await place.artifacts.delete(keys["gone"])
            (tmp_path / "go").touch()

            assert await ended(engine, job.job_id) == ["completed"]

            [result] = (await engine.queries.job(job.job_id)).results
            lines = await engine.queries.logs(job.job_id, level="warning")
            assert result.value == {
                "cheap": ["whole", "changed"],
                "hashed": ["whole"],
                "fetched": ["whole", "ArtifactDamaged", "ArtifactDamaged", "NotFound"],
            }
            said = {line.message for line in lines if line.level == "warning"}
            assert said == {
                "changed was kept, and its bytes have changed",
                "shorter was kept, and its bytes have changed",
                "gone was kept, and its bytes are gone",
            }

    async def tries(engine: Engine) -> bool:
        return [row["token"] for row in await rows(engine, "select token from task where state = 'running'")] == [2]

    asyncio.run(scene())
