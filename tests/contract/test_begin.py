"""A video is asked for again while the job that makes it winds down."""

import pytest

from telecine.apps.transcode.flow import transcode_flow
from telecine.apps.transcode.options import TranscodeOptions
from telecine.apps.transcode.spec import TranscodeSpec
from telecine.apps.transcode.videos.start import BEYOND_REPAIR, start_video
from telecine.facts import Lease
from tests.support.engine_fixture import Bed

SPEC = TranscodeSpec(source="/films/goat.mp4", sha256="0" * 64)


async def winding_down(bed: Bed, code: str) -> tuple[int, Lease]:
    """One chunk of the film has failed for good, another one still runs: its lease."""
    await bed.enact(transcode_flow(TranscodeOptions()))
    job_id = (await start_video(bed.engine, SPEC)).job_id
    for stage in ("validate", "plan"):
        await bed.done(lease := await bed.take())
        assert lease.stage == stage
    await bed.done(await bed.take(), plan={"video": [0, 1]})
    last, broken = await bed.claim(2)
    await bed.fail(broken, code=code, permanent=True)
    return job_id, last


async def test_the_same_command_continues_a_job_that_winds_down(bed: Bed) -> None:
    job_id, last = await winding_down(bed, "broken")

    again = await start_video(bed.engine, SPEC)
    await bed.done(last)

    assert (again.job_id, again.how) == (job_id, "continued")
    assert (await bed.take()).stage == "video"
    assert "job.failed" not in await bed.events(job_id)
    await bed.audited()


async def test_it_is_opened_again_if_the_last_task_ends_first(bed: Bed) -> None:
    job_id, last = await winding_down(bed, "broken")
    await bed.release(last)

    again = await start_video(bed.engine, SPEC)

    assert (again.job_id, again.how) == (job_id, "opened again")


@pytest.mark.parametrize("code", BEYOND_REPAIR)
async def test_one_that_cannot_be_repaired_is_followed_by_another(bed: Bed, code: str) -> None:
    """To open it again would lead to the same end."""
    job_id, last = await winding_down(bed, code)

    another = await start_video(bed.engine, SPEC)
    same = await start_video(bed.engine, SPEC)
    await bed.release(last)

    assert (another.how, same.how, same.job_id) == ("submitted", "continued", another.job_id)
    assert another.job_id != job_id
    assert await bed.status(job_id) == "failed"
