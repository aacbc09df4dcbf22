"""Bytes that nobody needs go away, also those that a crash left; bytes that somebody needs never do."""

from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from telecine.artifacts import Artifacts
from telecine.engine.maintenance.artifact_gc import clear, put_freed
from telecine.engine.maintenance.retention import Ages
from telecine.facts import DAY, KeptArtifact, Lease
from telecine.worker.housekeeping import ArtifactTrash
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed
from tests.support.retention import retire_all

FILM = a_flow("cut")


@pytest.fixture
def artifacts(tmp_path: Path) -> Artifacts:
    return Artifacts(str(tmp_path / "artifacts"))


async def put(artifacts: Artifacts, *keys: str) -> None:
    assert artifacts.folder is not None
    path = artifacts.folder.parent / "made"
    path.write_text("made")
    for key in keys:
        await artifacts.put(key, path)


async def keep(bed: Bed, artifacts: Artifacts, lease: Lease, name: str) -> str:
    """As a worker does it: first the bytes, then the record."""
    key = f"{lease.job_id}/cut@1/0/{lease.token}/{name}"
    await put(artifacts, key)
    await bed.engine.keep(lease.task_id, lease.token, [KeptArtifact(name=name, token=0, key=key, size=4, sha256="ab")])
    return key


def files(artifacts: Artifacts) -> list[str]:
    assert artifacts.folder is not None
    return sorted(str(path.relative_to(artifacts.folder)) for path in artifacts.folder.rglob("*") if path.is_file())


async def test_replaced_bytes_are_deleted(bed: Bed, artifacts: Artifacts) -> None:
    await bed.enact(FILM)
    await bed.submit()
    lease = await bed.take()
    await keep(bed, artifacts, lease, "a")
    await bed.release(lease)
    new = await keep(bed, artifacts, await bed.take(), "a")

    assert await clear(bed.store, ArtifactTrash(artifacts)) == 1

    assert files(artifacts) == [new]
    assert await bed.count("freed") == 0


async def test_what_an_artifact_names_again_is_not_deleted(bed: Bed, artifacts: Artifacts) -> None:
    await bed.enact(FILM)
    await bed.submit()
    key = await keep(bed, artifacts, await bed.take(), "a")
    await bed.store.run(lambda: put_freed([key, f"{key.split('/')[0]}/"]))

    assert await clear(bed.store, ArtifactTrash(artifacts)) == 0

    assert files(artifacts) == [key]
    assert await bed.count("freed") == 0


async def test_bytes_that_were_never_recorded_go_with_their_job(bed: Bed, artifacts: Artifacts) -> None:
    """An attempt died between the bytes and the record, another in the middle of the bytes."""
    await bed.enact(FILM)
    job_id = await bed.submit()
    lease = await bed.take()
    await keep(bed, artifacts, lease, "a")
    await put(artifacts, f"{job_id}/cut@1/0/1/b", f"{job_id}0/cut@1/0/1/of-another-job")
    half = artifacts.path(f"{job_id}/cut@1/0/1/c#1")
    assert half is not None
    half.write_text("ma")
    await bed.done(lease)
    bed.pass_time(31 * DAY)

    await retire_all(bed)
    count = await clear(bed.store, ArtifactTrash(artifacts))

    assert count == 3
    assert files(artifacts) == [f"{job_id}0/cut@1/0/1/of-another-job"]


async def test_of_a_published_version_only_what_was_not_recorded_goes(bed: Bed, artifacts: Artifacts) -> None:
    await bed.enact(FILM)
    job_id = await bed.submit(subject=("movie", "7"))
    lease = await bed.take()
    key = await keep(bed, artifacts, lease, "a")
    await put(artifacts, f"{job_id}/cut@1/0/1/b")
    await bed.done(lease, publish=True)
    bed.pass_time(31 * DAY)

    await retire_all(bed)
    await clear(bed.store, ArtifactTrash(artifacts))

    assert files(artifacts) == [key]


async def test_bytes_of_a_version_that_was_replaced_go_but_for_what_the_new_one_carries(
    bed: Bed, artifacts: Artifacts
) -> None:
    await bed.enact(FILM)
    await bed.submit(subject=("movie", "7"))
    old = await bed.take()
    carried, _ = await keep(bed, artifacts, old, "a"), await keep(bed, artifacts, old, "b")
    await bed.done(old, publish=True)
    [a, _] = await bed.engine.published(old)
    await bed.submit(subject=("movie", "7"))
    new = await bed.take()
    own = await keep(bed, artifacts, new, "c")
    await bed.done(new, publish=True, carry=(a.id,))

    await retire_all(bed, Ages(versions=0))
    await clear(bed.store, ArtifactTrash(artifacts))
    bed.pass_time(31 * DAY)
    await retire_all(bed)
    await clear(bed.store, ArtifactTrash(artifacts))

    assert files(artifacts) == sorted([carried, own])


async def test_jobs_that_left_no_bytes_cost_no_look_at_the_store(bed: Bed) -> None:
    await bed.enact(FILM)
    await bed.submit()
    await bed.done(await bed.take())
    bed.pass_time(31 * DAY)

    await retire_all(bed)

    assert await bed.count("freed") == 0


class Stuck:
    """A store that deletes nothing, but says so."""

    async def under(self, prefix: str) -> Sequence[str]:
        return [f"{prefix}x"]

    async def delete(self, keys: Sequence[str]) -> Collection[str]:
        return keys


async def test_what_could_not_be_deleted_is_tried_again(bed: Bed, artifacts: Artifacts) -> None:
    await put(artifacts, "7/x", "8/y")
    await bed.store.run(lambda: put_freed(["7/", "8/y"]))

    first = await clear(bed.store, Stuck())
    left = await bed.count("freed")
    second = await clear(bed.store, ArtifactTrash(artifacts))

    assert (first, left, second) == (0, 2, 2)
    assert files(artifacts) == []
