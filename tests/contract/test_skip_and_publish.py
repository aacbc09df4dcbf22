"""What a handler's `Done` may ask for besides: skip, stop, publish."""

import asyncio

from telecine.facts import Done, KeptArtifact, LeaseOutcome, Status
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

FANS = a_flow(
    a_stage("plan", phase=Status.PLANNING),
    a_stage("cut", "plan", fan_out=True),
    a_stage("join", "cut", phase=Status.UPLOADING_OUTPUTS),
)


async def planned(bed: Bed, *pieces: object) -> int:
    await bed.enact(FANS)
    job_id = await bed.submit()
    await bed.done(await bed.take(), plan={"cut": list(pieces)})
    return job_id


# -- Skip and stop ---------------------------------------------------------------------------------


async def test_a_handler_may_skip_what_is_needless(bed: Bed) -> None:
    await bed.enact(a_flow("look", "cut", "join"))
    job_id = await bed.submit()

    await bed.done(await bed.take(), skip=("cut",))

    assert await bed.stages(job_id) == {"look": "done", "cut": "skipped", "join": "ready"}
    assert await bed.states(job_id) == ["done", "skipped", "ready"]
    assert not (await bed.job(job_id))["stopped"]
    await bed.audited()


async def test_a_handler_may_end_the_chain_on_purpose(bed: Bed) -> None:
    await bed.enact(a_flow("look", "cut", "join"))
    job_id = await bed.submit()

    await bed.done(await bed.take(), stop=True)

    job = await bed.job(job_id)
    assert (job["status"], bool(job["stopped"]), job["warnings"]) == ("completed", True, 0)
    assert await bed.states(job_id) == ["done", "skipped", "skipped"]
    await bed.audited()


async def test_a_stop_lets_finish_what_has_become_ready(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("look"), a_stage("dub"), a_stage("join", "look dub")))
    job_id = await bed.submit()
    look, dub = await bed.claim(2)

    await bed.done(look, stop=True)
    between = await bed.status(job_id)
    await bed.done(dub)

    assert (between, await bed.status(job_id)) == ("processing", "completed")
    assert await bed.stages(job_id) == {"look": "done", "dub": "done", "join": "skipped"}


async def test_what_was_planned_and_then_stopped_is_skipped(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("a"), a_stage("b"), a_stage("cut", "a b", fan_out=True)))
    job_id = await bed.submit()
    a, b = await bed.claim(2)

    await bed.done(a, plan={"cut": [1, 2]})
    await bed.done(b, stop=True)

    assert await bed.states(job_id) == ["done", "done", "skipped", "skipped"]
    assert await bed.status(job_id) == "completed"


# -- Publish ---------------------------------------------------------------------------------------


async def test_publishing_gives_the_artifacts_to_a_version_and_makes_it_current(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    numbers = []
    for sha in ("one", "two"):
        await bed.submit(subject=("movie", "7"))
        lease = await bed.take()
        await bed.engine.keep(lease.task_id, 1, [KeptArtifact(name="a", token=1, key=sha, size=1, sha256=sha)])
        await bed.done(lease, publish=True)
        [row] = await bed.sql(
            "select v.number, a.key from subject s join subject_version v on v.id = s.current_version"
            " join artifact a on a.version_id = v.id where s.kind = 'movie' and s.id = '7'"
        )
        numbers.append((row["number"], row["key"]))

    assert numbers == [(1, "one"), (2, "two")]


async def test_two_jobs_that_publish_one_subject_at_once_make_two_versions(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    other = await bed.another_engine()
    await bed.submit(subject=("movie", "7"))
    await bed.submit(subject=("movie", "7"))
    first, second = await bed.claim(2)

    await asyncio.gather(
        bed.done(first, publish=True), other.settle([LeaseOutcome(second.task_id, 1, Done(publish=True))])
    )

    rows = await bed.sql("select number from subject_version order by number")
    assert [row["number"] for row in rows] == [1, 2]
