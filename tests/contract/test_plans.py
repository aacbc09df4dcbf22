"""The hot statements walk an index, whatever lies around the few rows that they want: 100,000 tasks here."""

import re

import pytest

from telecine.store.postgres import Postgres
from telecine.store.statements import load
from tests.support.engine_fixture import Bed
from tests.support.large_dataset import HELD, Sizes, fill, plan_on_sqlite, statements, work_on_postgres

SIZES = Sizes()
# Through which index each statement is meant to reach the tasks.
INDEXES = {
    "claim": {"task_ready"},
    "claim_hinted": {"task_ready", "task_pkey"},
    "claim_after": {"task_ready"},
    "lane_heads": {"task_ready"},
    "glance": {"task_ready", "task_parked"},
    "overlooked": {"task_running", "task_parked", "task_ready"},
    "unpark": {"task_parked"},
    "task_hold": {"task_pkey"},
    "settle_lone": {"task_pkey"},
    "overdue": {"task_running"},
    "running_of": {"task_running"},
    "beat": {"task_pkey"},
    "patient_lanes": {"task_patience"},
    "untaken": {"task_patience"},
}
# As many rows as they want, with room for the walk through each lane and for the jobs beside the tasks.
MAX_ROWS = 12 * HELD
MAX_STEPS = 60_000
WHOLE = re.compile(r"SCAN (task|job|t|j)( |$)(?!USING|VIRTUAL|LEFT-JOIN)")


@pytest.mark.parametrize("bed", ["postgres alone"], indirect=True)
async def test_on_postgres_no_hot_statement_reads_more_than_it_wants(bed: Bed) -> None:
    await fill(bed, SIZES)
    wrong: list[str] = []

    for name, params in statements(bed, SIZES).items():
        for mode in ("force_custom_plan", "force_generic_plan"):
            work = await work_on_postgres(bed, name, params, mode)
            if "task" in work.scanned or "job_row" in work.scanned:
                wrong.append(f"{name}, {mode}: reads {work.scanned} as a whole")
            if work.rows > MAX_ROWS:
                wrong.append(f"{name}, {mode}: reads {work.rows} rows")
            if not INDEXES.get(name, set()) <= work.indexes:
                wrong.append(f"{name}, {mode}: uses {sorted(work.indexes)}")

    assert wrong == []


@pytest.mark.parametrize("name", ["claim", "claim_after", "overlooked"])
@pytest.mark.parametrize("bed", ["postgres"], indirect=True)
async def test_a_claim_walks_past_nothing_that_its_worker_ran_before(bed: Bed, name: str) -> None:
    """While somebody's transaction keeps the past alive, every task that the worker ever ran is still in the index."""
    assert isinstance(bed.store, Postgres)
    async with bed.store.connections.borrow() as connection:
        statement = load("postgres")[name]
        await connection.execute(f"prepare looked as {statement.text}")
        lines = await connection.fetch(f"explain execute looked({', '.join('null' for _ in statement.params)})")
        await connection.execute("deallocate looked")

    plan = "\n".join(line[0] for line in lines)
    assert re.search(r"using task_running on task.*\n +Index Cond: \(\(worker = \S+\) AND \(request = \S+\)\)", plan), (
        plan
    )


@pytest.mark.parametrize("bed", ["sqlite"], indirect=True)
async def test_on_sqlite_no_hot_statement_reads_more_than_it_wants(bed: Bed) -> None:
    await fill(bed, SIZES)
    wrong: list[str] = []

    for name, params in statements(bed, SIZES).items():
        said, steps = plan_on_sqlite(bed, name, params)
        whole = [line for line in said if WHOLE.match(line)]
        missed = [index for index in INDEXES.get(name, set()) - {"task_pkey"} if index not in str(said)]
        if whole or missed or steps > MAX_STEPS:
            wrong.append(f"{name}: {steps} instructions, reads {whole} as a whole, does not use {missed}: {said}")

    assert wrong == []
