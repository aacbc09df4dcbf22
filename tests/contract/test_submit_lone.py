"""A job of one stage that is submitted alone goes by a shorter statement: the same rows must come of it."""

import json
from typing import Any

import asyncpg
import pytest

from telecine.engine import Submission
from telecine.engine.jobs.submit import submit
from telecine.facts import MINUTE, Policy
from telecine.store import Ask, Reserve, Steps
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

FLOW = a_flow(a_stage("cut", labels=("gpu",), priority_offset=1, policy=Policy(max_attempts=7, stall=9, limit=99)))
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "of somebody": {"owner": "ann", "priority": "critical", "spec": {"title": "line\none,\ttwo \u2028"}},
    "for later": {"run_at": MINUTE},
    "overdue": {"run_at": -MINUTE},
    "after another": {"after": True},
    "about a video": {"subject": ("video", "v"), "dedupe_key": "once"},
}


@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
async def test_a_job_of_one_stage_is_written_alone_as_it_is_among_others(bed: Bed, how: dict[str, Any]) -> None:
    await bed.enact(FLOW)
    first = await bed.submit()
    how = {**how, **({"run_at": bed.now + how["run_at"]} if "run_at" in how else {})}
    how = {**how, **({"after": (first,)} if "after" in how else {})}
    twins = [{**how, **({"dedupe_key": f"twin {n}"} if "dedupe_key" in how else {})} for n in range(2)]

    alone = await bed.submit(**how)
    among, _ = await bed.engine.jobs.submit_many([Submission(flow="film", **twin) for twin in twins])

    assert await _written(bed, alone) == await _written(bed, among.job_id)
    await bed.audited()


async def _written(bed: Bed, job_id: int) -> list[dict[str, Any]]:
    """Every row of a new job, without what must differ."""
    await bed.engine.events.newest()  # numbers what has none yet
    job = await bed.job(job_id)
    rows = [{**job, "dedupe_key": job["dedupe_key"] is not None}]
    for table in ("stage", "task", "job_after", "event"):
        found = await bed.sql(f"select * from {table} where job_id = {job_id}")
        assert found or table == "job_after"
        rows += found
    return [{name: value for name, value in row.items() if name not in ("id", "job_id", "seq")} for row in rows]


async def test_only_one_job_of_one_stage_goes_the_short_way(bed: Bed) -> None:
    await bed.enact(FLOW)
    await bed.enact(a_flow("cut", "join", name="two"))

    ways = [await _statement(bed, *flows) for flows in (["film"], ["film"] * 2, ["two"])]

    assert ways == ["submit_lone", "submit", "submit"]


async def _statement(bed: Bed, *flows: str) -> str:
    """The name of the statement that such jobs are written by."""
    wanted = await bed.engine.jobs.with_flows([Submission(flow=flow) for flow in flows])
    steps: Steps[Any] = submit(wanted)
    step = next(steps)
    assert isinstance(step, Reserve)
    step = steps.send(list(range(1, 1 + step.count)))
    steps.close()
    assert not isinstance(step, Reserve)
    assert step.whole
    assert isinstance(step, Ask) == (step.name == "submit_lone")
    return step.name


@pytest.mark.parametrize("bed", ["postgres"], indirect=True)
async def test_the_callers_connection_may_have_ideas_of_its_own_about_json(bed: Bed) -> None:
    await bed.enact(FLOW)
    connection = await asyncpg.connect(bed.url)
    await connection.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    wanted = await bed.engine.jobs.with_flows([Submission(flow="film", spec={"film": "a"})])

    async with connection.transaction():
        [made] = await bed.store.drive(connection, submit(wanted))  # type: ignore[attr-defined]
    await connection.close()

    assert json.loads((await bed.job(made.job_id))["spec"]) == {"film": "a"}
