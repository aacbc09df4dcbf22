"""A task may wait for a capable worker only so long: then it is passed over, and the stage after it decides."""

from telecine.facts import SECOND, Piece
from tests.bed import Bed
from tests.make import a_flow, a_stage

LADDER = a_flow(a_stage("plan"), a_stage("cut", "plan", fan_out=True), a_stage("check", "cut"))
RARE = Piece(input="rare", labels=("gpu",), patience=60 * SECOND)


async def states(bed: Bed) -> list[str]:
    rows = await bed.sql("select state from task order by stage, position")
    return [row["state"] for row in rows]


async def begun(bed: Bed, *pieces: object) -> None:
    await bed.enact(LADDER)
    await bed.submit()
    await bed.done(await bed.take(), plan={"cut": list(pieces)})


async def swept(bed: Bed) -> None:
    """Twice: after a long pause the first pass only gives everybody a fresh term."""
    await bed.engine.sweep(0)
    await bed.engine.sweep(0)


async def test_a_task_that_nobody_takes_in_its_time_is_passed_over(bed: Bed) -> None:
    await begun(bed, RARE)

    bed.pass_time(59 * SECOND)
    await swept(bed)
    before = await states(bed)
    bed.pass_time(1 * SECOND)
    await swept(bed)

    assert (before, await states(bed)) == (["done", "ready", "new"], ["done", "skipped", "ready"])
    await bed.audited()


async def test_only_the_impatient_ones_are_passed_over(bed: Bed) -> None:
    await begun(bed, RARE, "common", Piece(input="rare too", labels=("gpu",)))

    bed.pass_time(60 * SECOND)
    await swept(bed)

    assert await states(bed) == ["done", "skipped", "ready", "ready", "new"]
    await bed.audited()


async def test_a_task_that_came_back_has_its_patience_again(bed: Bed) -> None:
    await begun(bed, RARE)
    bed.lanes = {"film/cut@1+gpu": "film"}
    lease = await bed.take()

    bed.pass_time(19 * SECOND)
    await bed.release(lease)
    bed.pass_time(59 * SECOND)
    await swept(bed)

    assert await states(bed) == ["done", "ready", "new"]


async def test_one_that_runs_is_never_passed_over(bed: Bed) -> None:
    await begun(bed, RARE)
    bed.lanes = {"film/cut@1+gpu": "film"}
    lease = await bed.take()

    for _ in range(12):
        bed.pass_time(6 * SECOND)
        await bed.beat(lease)
        await swept(bed)

    assert await states(bed) == ["done", "running", "new"]


async def test_a_cancelled_job_passes_nothing_over(bed: Bed) -> None:
    await begun(bed, RARE)
    [job] = await bed.sql("select id from job")

    await bed.engine.cancel(job["id"])
    bed.pass_time(60 * SECOND)
    await swept(bed)

    assert await states(bed) == ["done", "cancelled", "cancelled"]
