"""The duties that are in no hurry: one process of the fleet does them, and another takes over."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from telecine.artifacts import Artifacts
from telecine.engine.maintenance.retention import Ages
from telecine.facts import DAY, MINUTE, KeptArtifact
from telecine.locks.sql import SqlLocks
from telecine.store import ask
from telecine.worker.housekeeping import LOCK, Housekeeper
from tests.support.builders import a_flow
from tests.support.scene import Scene, played

SONG = a_flow("hum", name="song")


def a_housekeeper(scene: Scene, name: str, folder: str) -> Housekeeper:
    locks = SqlLocks(partial(ask, scene.store), new_id=scene.engine.world.new_id)
    return Housekeeper(scene.engine, locks, name=name, artifacts=Artifacts(folder), ages=Ages(versions=0))


async def holder(scene: Scene) -> str | None:
    held = await SqlLocks(partial(ask, scene.store), new_id=scene.engine.world.new_id).holder(LOCK)
    return None if held is None else held.worker


@played
async def test_an_old_job_goes_to_the_archive_and_its_bytes_go_away(scene: Scene) -> None:
    with TemporaryDirectory() as folder:
        await scene.enact(SONG)
        job_id = await scene.submit("song")
        [lease] = await scene.claim()
        source = Path(folder) / "source"
        source.write_text("la la la")
        stored = await Artifacts(f"{folder}/files").put("1/hum/song.txt", source)
        kept = KeptArtifact(
            name="song.txt", token=lease.token, key="1/hum/song.txt", size=stored.size, sha256=stored.sha256
        )
        await scene.engine.keep(lease.task_id, lease.token, [kept])
        await scene.settle(lease)

        scene.pass_time(31 * DAY)
        await a_housekeeper(scene, "ann", f"{folder}/files").once()

        assert (await scene.views.job(job_id)).archived_at == scene.now
        assert not (Path(folder) / "files" / "1/hum/song.txt").exists()


@played
async def test_one_housekeeper_works_until_it_is_gone(scene: Scene) -> None:
    with TemporaryDirectory() as folder:
        ann, bob = (a_housekeeper(scene, name, folder) for name in ("ann", "bob"))

        await ann.once()
        await bob.once()
        first = await holder(scene)
        scene.pass_time(2 * MINUTE)  # ann has died
        await bob.once()
        await ann.once()

        assert (first, await holder(scene)) == ("ann", "bob")


@played
async def test_a_housekeeper_that_leaves_lets_go(scene: Scene) -> None:
    with TemporaryDirectory() as folder:
        working = asyncio.create_task(a_housekeeper(scene, "ann", folder).run())
        async with asyncio.timeout(10):
            while await holder(scene) is None:
                await asyncio.sleep(0.01)

        working.cancel()
        with suppress(asyncio.CancelledError):
            await working

        assert await holder(scene) is None


@contextmanager
def overheard() -> Iterator[list[str]]:
    """What the housekeeper logs meanwhile."""
    said: list[str] = []
    logger, handler = logging.getLogger("telecine.worker.housekeeping"), logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    try:
        yield said
    finally:
        logger.removeHandler(handler)


@played
async def test_a_difference_that_the_audit_finds_is_said_loudly(scene: Scene) -> None:
    with TemporaryDirectory() as folder, overheard() as said:
        await scene.enact(a_flow("hum", "sing", name="song"))
        await scene.submit("song")
        await scene.sql(f"update {scene.table('stage')} set total = 7, remaining = 7 where number = 0 returning 1")

        await a_housekeeper(scene, "ann", folder).once()

    assert any("total of stage 'hum' is stored as 7, and is 1" in line for line in said)
