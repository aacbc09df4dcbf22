"""A database with a long history: finished, parked, paused and foreign tasks around the few that a worker serves."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from telecine.engine.leases.fast_settle import ending_of
from telecine.facts import LEASE
from telecine.store.connections import PooledConnection
from telecine.store.postgres import Postgres
from telecine.store.sqlite import connect
from telecine.store.statements import load
from tests.support.builders import NOW, a_flow
from tests.support.engine_fixture import Bed

PER_JOB = 100
HELD = 50
ROWLESS = 100_000_000  # the first number of tasks that are their jobs
ORDERLY = ("Index Scan", "Index Only Scan")  # a bitmap, too, is of an index, but reads rows as they lie


@dataclass(frozen=True)
class Sizes:
    """How many tasks of each kind. `served` are the few that the worker's lanes hold."""

    served: int = 100
    foreign: int = 40_000
    parked: int = 10_000
    paused: int = 10_000
    finished: int = 40_000
    running: int = 200
    patient: int = 5_000


KINDS: dict[str, dict[str, str]] = {
    "served": {"lane": "'film/cut@1'", "state": "'ready'"},
    "foreign": {"lane": "'opera/sing@' || (i % 7)", "state": "'ready'"},
    "parked": {"lane": "'film/cut@1'", "state": "'ready'", "parked": "true", "ready_at": f"{NOW} + 3600000 + i"},
    "paused": {"lane": "'still/hang@1'", "state": "'ready'"},
    "patient": {"lane": "'film/cut@1+gpu' || (i % 3)", "state": "'ready'", "patience_ms": "1 + i % 50"},
    "finished": {"lane": "'film/cut@1'", "state": "'done'", "token": "1", "ended_at": f"{NOW}"},
    "running": {
        "lane": "'film/cut@1'",
        "state": "'running'",
        "token": "1",
        "worker": "{worker} + i / 40",
        "lease_until": f"{NOW} + {LEASE}",
        "claimed_at": f"{NOW}",
    },
}


async def fill(bed: Bed, sizes: Sizes) -> None:
    """Everything in a few statements; then the worker's own fifty leases are `1`…`50` of the running ones."""
    await bed.enact(a_flow("cut"), a_flow("sing", name="opera"), a_flow("hang", name="still"))
    await bed.engine.jobs.pause("still")
    flow_id = bed.engine.jobs._flows["film"][0]
    total = sum(vars(sizes).values())
    series = "with recursive n (i) as (select 0 union all select i + 1 from n where i < {last})"
    outcome = f"case when i * {PER_JOB} < {sizes.finished} then 'completed' end"
    jobs = {
        "id": "i + 1",
        "flow_id": f"{flow_id}",
        "flow": "'film'",
        "owner": "''",
        "status": f"coalesce({outcome}, 'processing')",
        "phase": "'processing'",
        "outcome": outcome,
        "priority": "5",
        "spec": "'{}'",
        "created_at": f"{NOW}",
        "ended_at": f"case when {outcome} is not null then {NOW} end",
    }
    await insert(bed, bed.table("job"), jobs, series.format(last=total // PER_JOB))
    stages = {"job_id": "i + 1", "number": "0", "name": "'cut'", "waits": "0", "total": f"{PER_JOB}"}
    left = f"case when i * {PER_JOB} < {sizes.finished} then 0 else {PER_JOB} end"
    stages |= {"remaining": left, "state": f"case when i * {PER_JOB} < {sizes.finished} then 'done' else 'ready' end"}
    await insert(bed, bed.table("stage"), stages, series.format(last=total // PER_JOB))
    first = 0
    for kind in ("finished", "running", "served", "foreign", "parked", "paused", "patient"):
        count = getattr(sizes, kind)
        number = f"(i + {first})"
        plain = {
            "id": f"{number} + 1",
            "job_id": f"{number} / {PER_JOB} + 1",
            "stage": "0",
            "position": f"{number} % {PER_JOB}",
            "max_attempts": "3",
            "ready_at": f"{NOW} - i",
            "rank": f"{NOW} - i",
        }
        values = {key: value.replace("{worker}", str(bed.worker)) for key, value in KINDS[kind].items()}
        await insert(bed, "task", {**plain, **values}, series.format(last=count - 1))
        if bed.is_postgres and kind not in ("parked", "patient"):
            await insert(
                bed, "task", {**plain, **values, **_rowless(first, flow_id, kind)}, series.format(last=count // 2)
            )
        first += count
    await bed.sql("analyze")


def _rowless(first: int, flow_id: int, kind: str) -> dict[str, str]:
    """Half as many again that are their jobs."""
    number = f"{ROWLESS} + (i + {first})"
    row = {
        "id": number,
        "job_id": number,
        "flow_id": f"{flow_id}",
        "owner": "''",
        "priority": "5",
        "phase": "'processing'",
    }
    row |= {"spec": "'{}'", "position": "0"}
    return {**row, "outcome": "'completed'", "done_by": "1"} if kind == "finished" else row


async def insert(bed: Bed, table: str, columns: dict[str, str], series: str) -> None:
    words = {"true": "1", "false": "0"} if not bed.is_postgres else {}
    values = ", ".join(words.get(value, value) for value in columns.values())
    body = f"insert into {table} ({', '.join(columns)}) {series} select {values} from n"
    await bed.sql(body)


def statements(bed: Bed, sizes: Sizes) -> dict[str, dict[str, Any]]:
    """The hot statements, with the parameters of one worker that holds fifty leases and asks for twenty."""
    held = [sizes.finished + 1 + n for n in range(HELD)]
    beat = {"ids": held, "tokens": [1] * HELD, "progress": [0.5] * HELD, "notes": [None] * HELD}
    lanes = {"lanes": ["film/cut@1", "still/hang@1"], "flows": ["film", "still"]}
    lone = {"ids": held, "tokens": [1] * HELD, "digests": ["done"] * HELD, "results": [], "told": None}
    claim = {"worker": bed.worker, **lanes, "wanted": 20, "ttl": LEASE}
    return {
        "claim": {**claim, "request": "r"},
        "claim_hinted": {**claim, "request": "s", "hinted": held},
        **(
            {"claim_after": {**claim, "request": "t", "after_rank": 1_000_000, "after_id": 7}}
            if bed.is_postgres
            else {}
        ),
        "lane_heads": {"lanes": lanes["lanes"], "wanted": 20},
        "glance": lanes,
        "overlooked": {"worker": bed.worker, "request": "r", **lanes},
        "unpark": {"wanted": 1_000},
        "task_hold": {"ids": held},
        "settle_lone": {**lone, **ending_of(a_flow("hang").graph)._asdict()},
        "job_hold": {"ids": [(sizes.finished + n) // PER_JOB + 1 for n in range(HELD)]},
        "stages_of": {"ids": [1, 2, 3]},
        "overdue": {"wanted": 200},
        "running_of": {"workers": [bed.worker]},
        "beat": {"worker": bed.worker, **beat, "ttl": LEASE, "load": 1, "done": 1, "failed": 1},
        "halting": {"wanted": 200},
        "attempt_get": {"ids": held, "tokens": [1] * HELD},
        "after_ended": {"wanted": 200},
        "patient_lanes": {"within": 30_000},
        "untaken": {"lanes": ["film/cut@1+gpu0", "film/cut@1+gpu1"], "wanted": 20},
    }


# -- PostgreSQL ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Work:
    """What one statement did: rows read by way of an index, tables read as a whole, indexes whose order it followed."""

    rows: int
    scanned: tuple[str, ...]
    indexes: frozenset[str]


async def work_on_postgres(bed: Bed, name: str, params: dict[str, Any], mode: str) -> Work:
    """`mode`: force_custom_plan, or force_generic_plan, which a server may take after five runs."""
    assert isinstance(bed.store, Postgres)
    statement = load("postgres")[name]
    values = bed.store._values(statement, params)
    async with bed.store.connections.borrow() as connection:
        for which in (f"set plan_cache_mode = {mode}", "begin"):
            await connection.execute(which)
        try:
            before = await _counts(connection)
            await connection.fetch(statement.text, *values)
            after = await _counts(connection)
            await connection.execute("rollback; begin")
            [plan] = await connection.fetch(f"explain (format json) {statement.text}", *values)
        finally:
            await connection.execute("rollback; reset plan_cache_mode")
    nodes = list(_nodes(json.loads(plan[0])[0]["Plan"]))
    return Work(
        rows=sum(fetched - before.get(table, (0, 0))[1] for table, (_, fetched) in after.items()),
        scanned=tuple(table for table, (scans, _) in after.items() if scans > before.get(table, (0, 0))[0]),
        indexes=frozenset(node["Index Name"] for node in nodes if node["Node Type"] in ORDERLY),
    )


async def _counts(connection: PooledConnection) -> dict[str, tuple[int, int]]:
    """Scans of whole tables and rows fetched by index, of this session so far."""
    rows = await connection.fetch(
        "select relname, seq_scan, coalesce(idx_tup_fetch, 0) as fetched from pg_stat_xact_user_tables"
        " where schemaname = current_schema() and relname in"
        " ('task', 'job_row', 'stage_row', 'attempt_row', 'job_after')"
    )
    return {row["relname"]: (row["seq_scan"], row["fetched"]) for row in rows}


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _nodes(part)


# -- SQLite ----------------------------------------------------------------------------------------


def plan_on_sqlite(bed: Bed, name: str, params: dict[str, Any]) -> tuple[list[str], int]:
    """What SQLite says it will do, and how many instructions it took to do it."""
    connection = connect(Path(bed.url.removeprefix("sqlite:///")))
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 100
        return 0

    given = {key: json.dumps(value) if isinstance(value, list) else value for key, value in params.items()}
    said: list[str] = []
    try:
        connection.execute("begin")
        for part in load("sqlite")[name].parts:
            if not part.startswith("create temp"):
                said += [
                    row["detail"] for row in connection.execute(f"explain query plan {part}", {**given, "now": NOW})
                ]
            connection.set_progress_handler(count, 100)
            connection.execute(part, {**given, "now": NOW}).fetchall()
            connection.set_progress_handler(None, 0)
    finally:
        _end(connection)
    return said, steps


def _end(connection: sqlite3.Connection) -> None:
    connection.execute("rollback")
    connection.close()


__all__ = ["HELD", "Sizes", "fill", "plan_on_sqlite", "statements", "work_on_postgres"]
