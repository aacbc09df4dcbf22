"""A job of one stage that is submitted alone goes by a shorter statement: the same rows must come of it."""

from typing import Any

import pytest

from telecine.engine import Submission
from tests.bed import Bed
from tests.make import a_flow


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"owner": "ann", "priority": "critical", "spec": {"title": "line\none,\ttwo \u2028"}},
        {"run_at": 60_000},
        {"run_at": -60_000},
        {"after": True},
        {"subject": ("video", "v"), "dedupe_key": "once"},
    ],
)
async def test_a_job_of_one_stage_is_written_alone_as_it_is_among_others(bed: Bed, how: dict[str, Any]) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    if "run_at" in how:
        how = {**how, "run_at": bed.now + how["run_at"]}
    if "after" in how:
        how = {"after": (first,)}
    pair = [Submission(flow="film", **{**how, "dedupe_key": f"{n}"} if "dedupe_key" in how else how) for n in range(2)]

    alone = await bed.submit(**how)
    [among, _] = await bed.engine.submit_many(pair)

    assert await _written(bed, alone) == await _written(bed, among.job_id)
    await bed.audited()


async def _written(bed: Bed, job_id: int) -> list[dict[str, Any]]:
    """Every row of a new job, without what must differ."""
    rows = [await bed.job(job_id)]
    for table in ("stage", "task", "event"):
        rows += await bed.sql(f"select * from {table} where job_id = {job_id}")
    own = ("id", "job_id", "dedupe_key", "seq")
    return [{name: value for name, value in row.items() if name not in own} for row in rows]
