"""Large files on a slow line: their attempts live as long as bytes move, and end with whoever waited for them."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from telecine import Bench, Done, Flow
from telecine.dispatch.local import LocalBell
from telecine.engine import Engine
from telecine.worker import Worker, WorkerOptions
from telecine.worker.local_engine import LocalEngine
from telecine.world import World
from tests.fault.program import open_engine
from tests.fault.worker_processes import BRISK, ended, until
from tests.support.s3 import Bucket, serve_s3
from tests.support.throttled_proxy import slow_line

MIB = 1 << 20
STALL = 4.0
# Twice as long on its way as an attempt may stand still; what is sent last, and not heard of, takes less.
LARGE, QUICK = 96 * MIB, 12 * MIB
SMALL, SLOW = 8 * MIB, MIB

large = Flow("large")


@large.stage(run="inline", attempts=1, stall=STALL)
async def keep(bench: Bench) -> Done:
    path = bench.scratch / "film"
    with path.open("wb") as file:
        file.truncate(bench.spec["size"])
    kept = await bench.keep("film", path)
    return Done(result=kept.size)


@large.stage(run="inline", attempts=1, stall=STALL, needs=["keep"])
async def look(bench: Bench) -> Done:
    [film] = await bench.artifacts("keep")
    path = await bench.fetch(film.kept)
    return Done(result=path.stat().st_size)


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    with serve_s3(tmp_path) as bucket:
        yield bucket


@asynccontextmanager
async def working(url: str, folder: Path, bucket: Bucket) -> AsyncIterator[Engine]:
    where: Any = {"artifacts": bucket.url, "s3": bucket.access, "scratch": folder / "work"}
    async with open_engine(url) as engine:

        @asynccontextmanager
        async def beat_words() -> AsyncIterator[Any]:
            yield LocalEngine(engine)

        await engine.jobs.register(large)
        options = WorkerOptions(name="ann", **where, **BRISK)
        worker = Worker(LocalEngine(engine), LocalBell(), [large], options, World(), beat_words)
        running = asyncio.ensure_future(worker.run())
        try:
            yield engine
        finally:
            worker.stop()
            await running


def test_a_file_that_goes_up_slowly_does_not_stall(sqlite_url: str, tmp_path: Path, bucket: Bucket) -> None:
    async def scene() -> None:
        async with working(sqlite_url, tmp_path, far) as engine:
            job = await engine.jobs.submit("large", {"size": LARGE})

            assert await ended(engine, job.job_id) == ["completed"]

    with slow_line(bucket, up=QUICK, down=1000 * MIB) as far:
        asyncio.run(scene())


def test_a_file_that_comes_down_slowly_does_not_stall(sqlite_url: str, tmp_path: Path, bucket: Bucket) -> None:
    async def scene() -> None:
        async with working(sqlite_url, tmp_path, far) as engine:
            job = await engine.jobs.submit("large", {"size": SMALL})

            assert await ended(engine, job.job_id) == ["completed"]

    with slow_line(bucket, up=1000 * MIB, down=SLOW) as far:
        asyncio.run(scene())


def test_a_file_on_its_way_is_left_when_its_job_is_cancelled(sqlite_url: str, tmp_path: Path, bucket: Bucket) -> None:
    async def scene() -> None:
        async with working(sqlite_url, tmp_path, far) as engine:
            before = uploads()
            job = await engine.jobs.submit("large", {"size": LARGE})
            await until(lambda: is_moving(engine, job.job_id))

            await engine.jobs.cancel(job.job_id)

            assert await ended(engine, job.job_id) == ["cancelled"]
            await until(lambda: nobody(before))
            assert not list(bucket.folder.glob(f"work/{job.job_id}/**/film"))

    async def nobody(before: int) -> bool:
        return uploads() <= before

    with slow_line(bucket, up=QUICK, down=1000 * MIB) as far:
        asyncio.run(scene())


def uploads() -> int:
    """How many threads are putting something away now."""
    return sum(
        frame.f_code.co_name == "_put"
        for stack in sys._current_frames().values()
        for frame, _ in traceback.walk_stack(stack)
    )


async def is_moving(engine: Engine, job_id: int) -> bool:
    return any((one.progress or 0.0) > 0 for one in (await engine.queries.tasks(job_id)).items)
