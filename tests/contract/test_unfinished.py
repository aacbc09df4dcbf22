"""What a failed job left half done: told apart after a person's retry, and freed on request, never under a retry."""

import asyncio

from telecine.engine.maintenance.retention import free_unfinished
from telecine.facts import JobId, KeptArtifact, Lease
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

FILM = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("join", "cut"))


async def kept(bed: Bed, lease: Lease, *names: str) -> None:
    items = [
        KeptArtifact(name=n, token=lease.token, key=f"{lease.task_id}/{lease.token}/{n}", size=1, sha256="s")
        for n in names
    ]
    await bed.engine.keep(lease.task_id, lease.token, items)


async def failed(bed: Bed) -> int:
    """A job of two cuts: one is done, the other failed for good; both have kept files."""
    await bed.enact(FILM)
    job_id = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": [1, 2]})
    good, bad = await bed.claim(2)
    await kept(bed, good, "360p/0.m4s", "720p/0.m4s")
    await kept(bed, bad, "360p/1.m4s", "720p/1.m4s", "note.txt")
    await bed.done(good)
    await bed.fail(bad, permanent=True)
    assert await bed.status(job_id) == "failed"
    return job_id


async def names(bed: Bed, job_id: int) -> list[str]:
    return sorted(one.kept.name for one in await bed.views.kept(job_id))


async def free(bed: Bed, job_id: int, generation: int = 1) -> tuple[str, ...]:
    return await bed.store.run(lambda: free_unfinished(job_id, generation, ["720p"]))


async def test_a_brief_tells_what_was_kept_before_a_persons_retry(bed: Bed) -> None:
    job_id = await failed(bed)
    await bed.engine.jobs.retry(JobId(job_id))

    again = await bed.take()
    first = await bed.engine.brief(again)
    await kept(bed, again, "360p/1.m4s")
    await bed.fail(again)
    await bed.sql("update task set ready_at = 0 where parked")
    later = await bed.engine.brief(await bed.take())

    assert (first.retried, {one.token for one in first.kept.values()}) == (1, {1})
    assert later.retried == 1
    assert {name: one.token for name, one in later.kept.items()} == {"360p/1.m4s": 2, "720p/1.m4s": 1, "note.txt": 1}


async def test_an_automatic_retry_is_the_same_generation(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    await bed.submit()
    lease = await bed.take()
    await kept(bed, lease, "a")
    await bed.fail(lease)
    await bed.sql("update task set ready_at = 0 where parked")

    brief = await bed.engine.brief(await bed.take())

    assert (brief.retried, list(brief.kept)) == (0, ["a"])


async def test_only_what_a_retry_would_make_again_is_freed(bed: Bed) -> None:
    job_id = await failed(bed)

    freed = await free(bed, job_id)
    again = await free(bed, job_id)

    assert [key.partition("/")[2] for key in freed] == ["1/720p/1.m4s"]
    assert again == ()
    assert await names(bed, job_id) == ["360p/0.m4s", "360p/1.m4s", "720p/0.m4s", "note.txt"]
    assert [row["key"] for row in await bed.sql("select key from freed")] == list(freed)


async def test_nothing_is_freed_of_a_job_that_was_retried_or_has_not_failed(bed: Bed) -> None:
    job_id = await failed(bed)
    before = await names(bed, job_id)
    await bed.engine.jobs.retry(JobId(job_id))

    open_again = [await free(bed, job_id, generation) for generation in (1, 2)]
    await bed.fail(await bed.take(), permanent=True)
    another_generation = await free(bed, job_id, 1)

    assert [*open_again, another_generation] == [(), (), ()]
    assert await names(bed, job_id) == before


async def test_what_a_version_names_is_never_freed(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("cut"), a_stage("tell", "cut")))
    job_id = await bed.submit(subject=("video", "a"))
    lease = await bed.take()
    await kept(bed, lease, "720p/0.m4s")
    await bed.done(lease, publish=True)
    await bed.fail(await bed.take(), permanent=True)
    await bed.sql(f"update task set state = 'error' where id = {lease.task_id}")

    assert await free(bed, job_id) == ()
    assert len(await bed.views.published("video", "a")) == 1


async def test_a_retry_at_the_same_moment_comes_before_or_after(bed: Bed) -> None:
    job_id = await failed(bed)
    other = await bed.another_engine()

    freed, _ = await asyncio.gather(free(bed, job_id), other.jobs.retry(JobId(job_id)))

    lease = await bed.take()
    brief = await bed.engine.brief(lease)
    assert ("720p/1.m4s" in brief.kept) == (freed == ())
    await bed.done(lease)
    await bed.audited()
