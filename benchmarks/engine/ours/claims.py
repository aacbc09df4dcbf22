"""What a claim costs in a big queue, and while nothing can be vacuumed."""

from __future__ import annotations

import time
from statistics import median
from typing import NamedTuple

import asyncpg

from benchmarks.engine.ours.place import Parts, at_rest, opened, run
from telecine import Flow
from telecine.engine import Registration
from telecine.facts import Done, LeaseOutcome

SHARE = 1_000  # one row in so many is of the worker's lane
SET_ASIDE = 100_000
CLAIMS = 60
BATCH = 200


class Copy(NamedTuple):
    table: str
    sql: str


COLUMNS = """
select string_agg(column_name, ', ') from information_schema.columns
where table_schema = current_schema() and table_name = $1 and column_name not in ('id', 'job_id', 'rank')
"""
FILL_S = 300.0
# Ids beyond all that the sequences will give out during the run.
COPIES = (
    Copy(
        "task",
        """insert into task (id, job_id, rank, {columns})
        select {job}::bigint * 10000000 + g, {job}::bigint * 10000000 + g, rank + g, {columns}
        from task, generate_series(1, {count}) g where job_id = {job}""",
    ),
    # Only of those that have a row: one plain task has none.
    Copy(
        "job_row",
        """insert into job_row (id, {columns}) select {job}::bigint * 10000000 + g, {columns}
        from job_row, generate_series(1, {count}) g where id = {job}""",
    ),
)


def _flow(name: str) -> Flow:
    flow = Flow(name)

    @flow.stage(name="run", run="inline")
    async def _run(bench: object) -> None:
        return None

    return flow


async def _submit(parts: Parts, flow: str, count: int, *, run_at: int | None = None) -> None:
    """Many alike jobs: one is submitted, the others are copied inside the database, which is not measured."""
    if count == 0:
        return
    first = await parts.engine.jobs.submit(flow, run_at=run_at)
    async with parts.store.connections.borrow() as connection:
        await connection.execute("set statement_timeout = 0")
        for statement in COPIES:
            names = await connection.fetchval(COLUMNS, statement.table)
            sql = statement.sql.format(columns=names, job=first.job_id, count=count - 1)
            await connection.execute(sql, timeout=FILL_S)


async def _queue(parts: Parts, url: str, rows: int) -> tuple[int, dict[str, str]]:
    """`rows` queued, of which 0.1 % are ours; in a big queue some are parked and some paused."""
    flows = {name: _flow(name) for name in ("mine", "other", "paused")}
    for flow in flows.values():
        await parts.engine.jobs.register(flow)
    aside = SET_ASIDE if rows > 2 * SET_ASIDE else 0
    mine = max(CLAIMS + 10, rows // SHARE)
    await _submit(parts, "other", rows - mine - 2 * aside)
    await _submit(parts, "paused", aside)
    await _submit(parts, "mine", aside, run_at=4_000_000_000_000)
    await _submit(parts, "mine", mine)
    await parts.engine.jobs.pause("paused")
    await at_rest(url)
    lanes = {flow.graph.lane(0): name for name, flow in flows.items() if name != "other"}
    worker = await parts.engine.enlist(Registration(name="bench", hostname="bench", lanes=tuple(lanes)))
    return worker, lanes


def claim_cost(few_url: str, many_url: str, *, few: int, many: int) -> tuple[float, float]:
    """The median milliseconds of one claim with `few` and with `many` rows queued; the two take turns."""

    async def measure() -> tuple[float, float]:
        async with opened(few_url) as small, opened(many_url) as big:
            sides = [(small, *await _queue(small, few_url, few)), (big, *await _queue(big, many_url, many))]
            taken: list[list[float]] = [[], []]
            for turn in range(CLAIMS):
                for side, (parts, worker, lanes) in enumerate(sides):
                    begun = time.perf_counter()
                    leases = await parts.engine.claim(worker, f"{turn}", lanes, 1)
                    taken[side].append(1e3 * (time.perf_counter() - begun))
                    assert leases
            return median(taken[0]), median(taken[1])

    return run(measure)


def claim_pinned(url: str, *, claims: int) -> tuple[float, float]:
    """Milliseconds per claim of 200 in the first and in the last tenth of `claims` claimed tasks.

    All the while one other transaction that has written stays open, so nothing can be vacuumed.
    """

    async def measure() -> tuple[float, float]:
        async with opened(url) as parts:
            flow = _flow("mine")
            await parts.engine.jobs.register(flow)
            await _submit(parts, "mine", claims)
            await at_rest(url)
            lanes = {flow.graph.lane(0): "mine"}
            worker = await parts.engine.enlist(Registration(name="bench", hostname="bench", lanes=tuple(lanes)))
            pin = await asyncpg.connect(url)
            try:
                await pin.execute("begin; create table pinned (id int); insert into pinned values (1)")
                taken = [await _claim_and_settle(parts, worker, lanes, turn) for turn in range(claims // BATCH)]
            finally:
                await pin.close()
        tenth = len(taken) // 10
        return median(taken[:tenth]), median(taken[-tenth:])

    return run(measure)


async def _claim_and_settle(parts: Parts, worker: int, lanes: dict[str, str], turn: int) -> float:
    begun = time.perf_counter()
    leases = await parts.engine.claim(worker, f"{turn}", lanes, BATCH)
    taken = 1e3 * (time.perf_counter() - begun)
    await parts.engine.settle([LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases])
    return taken
