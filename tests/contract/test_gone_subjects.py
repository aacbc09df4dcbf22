"""Deleted subjects: hidden at once, freed when nobody works for them, there again when somebody wants them again."""

from functools import partial
from typing import Any

import pytest

from telecine.engine.jobs import delete_subject
from telecine.engine.jobs.delete_subject import clear_gone, delete
from telecine.engine.maintenance.artifact_gc import clear
from telecine.errors import LeaseLost, NotFound
from telecine.facts import DAY, Done, KeptArtifact, Lease
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

FILM = a_flow("cut", "publish")
WHO = ("video", "f1")


async def keep(bed: Bed, lease: Lease, *keys: str) -> None:
    items = [KeptArtifact(name=key, token=lease.token, key=key, size=1, sha256="ab") for key in keys]
    await bed.engine.keep(lease.task_id, lease.token, items)


async def published(bed: Bed, key: str, subject: tuple[str, str] = WHO, **done: Any) -> int:
    job_id = await bed.submit(subject=subject, owner="ada")
    cut = await bed.take()
    await keep(bed, cut, key)
    await bed.done(cut)
    await bed.done(await bed.take(), publish=True, **done)
    return job_id


async def freed(bed: Bed) -> list[str]:
    return [row["key"] for row in await bed.sql("select key from freed order by key")]


class Shelves:
    """Bytes in a dict, for whoever clears them."""

    def __init__(self, *keys: str) -> None:
        self.keys = set(keys)

    async def under(self, prefix: str) -> list[str]:
        return sorted(key for key in self.keys if key.startswith(prefix))

    async def delete(self, keys: Any) -> list[str]:
        self.keys -= set(keys)
        return []


async def test_a_deleted_subject_is_shown_to_nobody_and_cannot_be_changed(bed: Bed) -> None:
    await bed.enact(FILM)
    await published(bed, "k1")

    await delete(bed.engine, WHO, actor="ada")

    assert (await bed.engine.subjects.list("video")).items == ()
    assert (await bed.engine.subjects.list("video", owner="ada")).items == ()
    with pytest.raises(NotFound):
        await bed.engine.subjects.get(*WHO)
    with pytest.raises(NotFound):
        await delete(bed.engine, WHO)
    with pytest.raises(NotFound):
        await delete(bed.engine, ("video", "unknown"))


async def test_its_jobs_are_cancelled_and_its_bytes_go_after_the_last_lease(bed: Bed) -> None:
    await bed.enact(FILM)
    old = await published(bed, "k1")
    job_id = await bed.submit(subject=WHO, owner="ada")
    lease = await bed.take()

    await delete(bed.engine, WHO)
    early = await clear_gone(bed.engine)
    await keep(bed, lease, "k2")  # it was not told yet; what it keeps goes with the rest
    orders = await bed.beaten(lease)
    await bed.release(lease)
    late = await clear_gone(bed.engine)

    assert (early, late) == (0, 1)
    assert orders.stop == ((lease.task_id, lease.token),)
    assert await freed(bed) == sorted([f"{old}/", f"{job_id}/", "k1", "k2"])
    assert [await bed.count(table) for table in ("artifact", "subject", "subject_version", "job", "task")] == [0] * 5
    assert (await bed.views.job(job_id)).status == "cancelled"
    await bed.audited()


async def test_a_late_worker_keeps_nothing_and_what_it_wrote_is_looked_for_a_day_later(bed: Bed) -> None:
    await bed.enact(FILM)
    job_id = await bed.submit(subject=WHO)
    lease = await bed.take()
    shelves = Shelves(f"{job_id}/cut@1/0/1/a")
    await delete(bed.engine, WHO)
    await bed.lose(lease)
    await clear_gone(bed.engine)
    await clear(bed.store, shelves)
    at_first = set(shelves.keys)
    shelves.keys.add(f"{job_id}/cut@1/0/1/b")

    with pytest.raises(LeaseLost):
        await keep(bed, lease, f"{job_id}/cut@1/0/1/b")
    bed.pass_time(DAY + 1)
    await clear_gone(bed.engine)
    await clear(bed.store, shelves)

    assert (at_first, shelves.keys) == (set(), set())
    assert await bed.count("subject_gone") == 0


async def test_bytes_that_another_subject_names_stay(bed: Bed) -> None:
    await bed.enact(FILM)
    await published(bed, "shared")
    await published(bed, "own", ("video", "f2"))
    version = "(select id from subject_version where subject_id = 'f2')"
    await bed.sql(
        "insert into artifact (job_id, token, name, stage, position, stage_version, key, size, sha256, version_id, "
        f"created_at) select job_id, token, 'x', stage, position, stage_version, key, size, sha256, {version}, 0 "
        "from artifact where key = 'shared'"
    )

    await delete(bed.engine, WHO)
    await clear_gone(bed.engine)

    assert "shared" not in await freed(bed)
    assert await bed.count("artifact", "key = 'shared'") == 1
    assert (await bed.engine.subjects.get("video", "f2")).version == 1


async def test_a_version_that_took_files_over_goes_with_all_of_them(bed: Bed) -> None:
    await bed.enact(FILM)
    await published(bed, "k1")
    [taken] = await bed.sql("select id from artifact")
    await published(bed, "k2", carry=(taken["id"],))

    await delete(bed.engine, WHO)
    await clear_gone(bed.engine)

    assert {"k1", "k2"} <= set(await freed(bed))
    assert await bed.count("artifact") == 0


async def test_a_claim_passes_over_what_is_deleted_and_the_duty_cancels_what_a_crash_left_open(bed: Bed) -> None:
    await bed.enact(FILM)
    left = await bed.submit(subject=WHO)
    other = await bed.submit(subject=("video", "f2"))
    await bed.store.run(partial(delete_subject._hide, WHO, ""))  # whoever deleted it died before it had cancelled

    [lease] = await bed.claim(5)
    await clear_gone(bed.engine)

    assert lease.job_id == other
    assert (await bed.views.job(left)).status == "cancelled"
    await bed.audited()


async def test_a_submit_brings_it_back_with_what_is_left(bed: Bed) -> None:
    await bed.enact(FILM)
    await published(bed, "k1")
    await delete(bed.engine, WHO)

    again = await bed.submit(subject=WHO, owner="ada")
    await clear_gone(bed.engine)

    shown = await bed.engine.subjects.get(*WHO)
    assert (shown.version, shown.open_job and shown.open_job.id) == (1, again)
    assert await freed(bed) == []


async def test_a_submit_never_brings_back_bytes_that_were_freed(bed: Bed) -> None:
    await bed.enact(FILM)
    await published(bed, "k1", facts={"length": 3})
    await delete(bed.engine, WHO)
    await clear_gone(bed.engine)

    again = await bed.submit(subject=WHO, owner="bob")
    await clear_gone(bed.engine)

    shown = await bed.engine.subjects.get(*WHO)
    assert (shown.owner, shown.version, shown.versions, shown.facts) == ("bob", None, (), {})
    assert [line.id for line in shown.jobs] == [again]
    assert (await bed.take()).job_id == again


async def test_it_can_be_deleted_again_after_it_came_back(bed: Bed) -> None:
    await bed.enact(FILM)
    first = await published(bed, "k1")
    await delete(bed.engine, WHO)
    await clear_gone(bed.engine)
    second = await published(bed, "k2")

    await delete(bed.engine, WHO)
    await clear_gone(bed.engine)

    [row] = await bed.sql("select jobs from subject_gone")
    assert row["jobs"].replace(" ", "") == f"[{first},{second}]"
    assert await bed.count("subject") == 0


async def test_a_job_that_publishes_into_a_deleted_subject_leaves_nothing(bed: Bed) -> None:
    await bed.enact(FILM)
    await bed.submit(subject=WHO)
    cut = await bed.take()
    await keep(bed, cut, "k1")
    await bed.done(cut)
    lease = await bed.take()
    await bed.store.run(partial(delete_subject._hide, WHO, ""))

    answer = await bed.say(lease, Done(publish=True))
    await clear_gone(bed.engine)

    assert answer.accepted
    assert "k1" in await freed(bed)
    assert await bed.count("subject") == 0
