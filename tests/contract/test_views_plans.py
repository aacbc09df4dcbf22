"""No look at the database, and no duty, works through a table that grows for ever.

Each statement runs with small limits on twenty thousand finished jobs and some thousand open ones; what is
measured is the work itself: rows that PostgreSQL touched, instructions that SQLite ran.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import asyncpg

from telecine.store.postgres import Postgres
from telecine.store.sqlite import connect
from telecine.store.statements import load
from tests.contract.request_plans import REQUESTS
from tests.make import NOW as THE_TIME
from tests.scene import Scene, alone

ENDED, OPEN = 20_000, 3_000
MOST_ROWS = 2_000
MOST_STEPS = 40_000
SOME = 50
FOREVER = 2**62
DAY = 86_400_000

_RANGE = {"below": FOREVER, "above": 0, "since": 0, "until": FOREVER, "ended": FOREVER, "wanted": SOME}
_ANY = {**_RANGE, "owner": None, "flow": None, "status": None, "open": False}
_JOB = ENDED // 2
_FIRST = {"stage": -1, "position": -1}

STATEMENTS: list[tuple[str, dict[str, Any]]] = [
    ("view_job", {"id": _JOB, "most": SOME}),
    ("view_job_asked", {"id": ENDED + OPEN, "key_id": "0" * 12}),
    ("view_archived", {"id": _JOB}),
    ("view_tasks", {"job_id": _JOB, **_FIRST, "only_stage": None, "only_state": None, "wanted": SOME}),
    ("view_task", {"id": ENDED + OPEN, "most": SOME}),
    ("view_serving", {"within": 30_000}),
    ("stage_times", {"job_id": _JOB, "stage": 0, "flow_id": 1, "recent": SOME, "wanted": SOME}),
    ("view_attempts", {"job_id": _JOB, "stage": -1, "position": -1, "token": -1, "wanted": SOME}),
    ("view_attempts_of_task", {"id": _JOB}),
    ("view_logs", {"job_id": _JOB, "after": 0, "kind": None, "levels": None, "wanted": SOME}),
    ("view_logs_tail", {"job_id": _JOB, "wanted": SOME}),
    ("view_outputs", {"job_id": _JOB, "after": 0, "wanted": SOME}),
    ("jobs_all", _ANY),
    ("jobs_of_flow", {**_ANY, "flow": "rare"}),
    ("jobs_of_owner", {**_ANY, "owner": "rare"}),
    ("jobs_of_subject", {**_ANY, "subject_kind": "movie", "subject_id": "7"}),
    ("jobs_open", {**_ANY, "below": ENDED}),
    ("jobs_ended", {**_ANY, "status": "failed"}),
    ("job_id_near", {"id": _JOB}),
    ("job_id_edges", {}),
    ("view_jobs", {"ids": list(range(_JOB, _JOB + SOME))}),
    ("view_running", {}),
    ("view_failed", {"ended": FOREVER, "below": FOREVER, "flow": None, "wanted": SOME}),
    ("view_subject", {"kind": "movie", "id": "7", "wanted": SOME}),
    ("subject_last_job", {"kind": "movie", "id": "7"}),
    ("stats_lanes", {"most": SOME}),
    ("stats_open", {"most": SOME}),
    ("stats_ended", {"most": SOME}),
    ("stats_tasks", {"most": SOME, "within": 30_000}),
    ("event_after", {"seq": ENDED // 2, "wanted": SOME}),
    ("event_number", {"wanted": SOME}),
    ("audit_jobs", {"after": _JOB, "wanted": SOME}),
    *(
        (f"orphans_{part}", {"after": _JOB, "wanted": SOME})
        for part in ("stage", "task", "job_log", "job_after", "attempt", "artifact", "idempotency", "subject_version")
    ),
    ("orphans_version_of_artifact", {"after": 0, "wanted": SOME}),
    ("old_jobs", {"age": 0, "wanted": SOME}),
    ("old_jobs", {"age": 900 * DAY, "wanted": SOME}),
    ("old_artifacts", {"job_id": _JOB}),
    ("retire_tasks", {"ids": list(range(1, SOME))}),
    ("retire_jobs", {"ids": list(range(1, SOME))}),
    ("retire_versions", {"ids": list(range(1, SOME)), "version_age": DAY}),
    ("retire_artifacts", {"ids": list(range(1, SOME)), "staying": []}),
    ("artifact_free", {"keys": [f"key {n}" for n in range(SOME)]}),
    ("retire_rows", {"ids": list(range(1, SOME))}),
    ("old_versions", {"age": DAY, "wanted": SOME}),
    ("freed_some", {"after": "", "wanted": SOME}),
    ("kept_by_job", {"job_id": _JOB, "stages": ["cut"], "all_stages": False}),
    ("published_of", {"kind": "movie", "id": "s7"}),
    ("carry_hold", {"ids": list(range(1, SOME))}),
    ("fleet_of", {"flow": "film", "within": 30_000}),
    ("kept_of_version", {"version": 7}),
    ("kept_since", {"job_id": _JOB, "stages": ["cut"], "after": 5, "young": 30_000}),
    ("worked", {"job_id": _JOB}),
    ("tally", {"job_id": _JOB}),
    ("tally", {"job_id": _JOB + 1}),
    ("live_begun", {"ids": list(range(_JOB, _JOB + 3))}),  # a block of events for each, by the index
    ("live_errors", {"ids": list(range(_JOB - SOME, _JOB + SOME))}),
    ("version_find", {"kind": "movie", "id": "s7", "number": 1}),
    ("subject_show", {"kind": "movie", "id": "s7", "most": SOME}),
    ("subjects_all", {"kind": "movie", "before": FOREVER, "below": "", "owner": None, "wanted": SOME}),
    ("subjects_of_owner", {"kind": "movie", "before": FOREVER, "below": "", "owner": "rare", "wanted": SOME}),
    ("version_hold", {"ids": list(range(1, SOME))}),
    ("version_artifacts", {"ids": list(range(1, SOME))}),
    ("old_keys", {"age": DAY, "after": 0, "wanted": SOME}),
    ("event_prune", {"age": 0, "wanted": SOME}),
    ("log_prune", {"age": 0, "wanted": SOME}),
    ("log_prune", {"age": 900 * DAY, "wanted": SOME}),
    ("lock_get", {"name": "a"}),
    ("figure_lanes", {"most": SOME, "lanes": SOME, "stale": 0}),
    ("figure_running", {"most": SOME}),
    ("figure_jobs", {"most": SOME}),
    ("figure_workers", {"within": 30_000, "most": SOME}),
    ("figure_rest", {"most": SOME}),
    ("figure_recent", {"most": SOME}),
    ("tally_look", {"seq": ENDED // 2, "wanted": SOME}),
    *REQUESTS,
]


T = THE_TIME
ENDS = f"i <= {ENDED}"
RARE = "i % 1000 = 7"
OUTCOME = f"case when {ENDS} then case when i % 400 = 0 then 'failed' else 'completed' end end"
RUNS = f"i > {ENDED} and i % 50 < 2"  # as many of those without a stage row as of the others
STATE = (
    f"case when {ENDS} then case when i % 400 < 2 then 'error' else 'done' end"
    f" when {RUNS} then 'running' else 'ready' end"
)
ROWS: dict[str, dict[str, str]] = {
    "job": {
        "id": "i",
        "flow_id": f"case when {RARE} then 2 else 1 end",
        "flow": f"case when {RARE} then 'rare' else 'film' end",
        "owner": f"case when {RARE} then 'rare' else '' end",
        "subject_kind": f"case when {RARE} then 'movie' end",
        "subject_id": f"case when {RARE} then '7' end",
        "status": f"coalesce({OUTCOME}, 'pending')",
        "phase": "'processing'",
        "outcome": OUTCOME,
        "priority": "5",
        "spec": "'{}'",
        "created_at": f"{T} + i",
        "started_at": f"case when {ENDS} then {T} + i end",
        "ended_at": f"case when {ENDS} then {T} + i end",
    },
    "{stage}": {
        "job_id": "i",
        "number": "0",
        "name": "'cut'",
        "state": f"case when {ENDS} then 'done' else 'ready' end",
        "waits": "0",
        "total": "1",
        "remaining": f"case when {ENDS} then 0 else 1 end",
    },
    "task": {
        "id": "i",
        "job_id": "i",
        "stage": "0",
        "position": "0",
        "state": STATE,
        "lane": "case when i % 2 = 0 then 'a' else 'b' end",
        "token": "1",
        "max_attempts": "3",
        "ready_at": "i",
        "rank": "i",
        "worker": f"case when {RUNS} then 1 end",
        "lease_until": f"case when {RUNS} then {T} end",
    },
    "attempt": {
        "task_id": "i",
        "token": "1",
        "job_id": "i",
        "generation": "1",
        "try": "1",
        "outcome": "'done'",
        "state": "'done'",
        "ended_at": f"{T}",
    },
    "artifact": {
        "job_id": "i",
        "task_id": "i",
        "token": "1",
        "name": "'a/b'",
        "stage": "'cut'",
        "position": "0",
        "stage_version": "1",
        "key": "'key ' || i",
        "size": "1",
        "sha256": "'ab'",
        "version_id": "i",
        "created_at": f"{T}",
    },
    "job_log": {
        "job_id": "i",
        "task_id": "i",
        "token": "1",
        "at": f"{T}",
        "kind": "'log'",
        "level": "'info'",
        "message": "'x'",
    },
    "idempotency": {"owner": "''", "key": "'key ' || i", "digest": "''", "job_id": "i", "created_at": f"{T}"},
    "subject": {
        "kind": "'movie'",
        "id": "'s' || i",
        "owner": f"case when {RARE} then 'rare' else '' end",
        "current_version": "i",
        "created_at": f"{T} + i",
        "updated_at": f"{T}",
    },
    "subject_version": {
        "kind": "'movie'",
        "subject_id": "'s' || i",
        "number": "1",
        "job_id": "i",
        "published_at": f"{T}",
        "left_at": f"case when i % 2 = 0 then {T} end",
    },
    "freed": {"key": "'key ' || i", "at": f"{T}"},
    "event": {"seq": "i", "at": f"{T}", "kind": "'task.started'", "job_id": "i", "task_id": "i", "stage": "0"},
    "archive": {
        "job_id": "i + 1000000",
        "owner": "''",
        "flow": "'film'",
        "outcome": "'completed'",
        "ended_at": f"{T}",
        "archived_at": f"{T}",
        "document": "'{}'",
    },
    "job_after": {"job_id": "i", "after_id": "i + 1"},
}


async def fill(scene: Scene) -> None:
    """Finished jobs of one task each, then open ones; a few of everything that is rare."""
    await scene.sql("create table numbers (i bigint)")
    await scene.sql(
        f"insert into numbers with recursive n (i) as"
        f" (select 1 union all select i + 1 from n where i < {ENDED + OPEN}) select i from n"
    )
    for table, columns in ROWS.items():
        names, values = ", ".join(columns), ", ".join(columns.values())
        await scene.sql(f"insert into {table.format(stage=scene.stage_rows)} ({names}) select {values} from numbers")
    await scene.sql(
        "insert into flow (id, name, version, digest, graph, registered_at)"
        f" select i, case when i = 1 then 'film' else 'rare' end, 1, '', '{{}}', {T} from numbers where i < 3"
    )
    if scene.is_postgres:
        await scene.sql("with s as (delete from stage_row where job_id % 2 = 0) update task set alone = id % 2 = 0")
        await scene.sql(f"insert into unnumbered (at, kind) select {T}, 'x' from numbers limit {OPEN}")
        await scene.sql(f"update event_counter set seq = {ENDED + OPEN}")
        await scene.sql("select brin_summarize_new_values('event_job')")  # as autovacuum does
    await scene.sql("analyze")


def rows_touched(plan: dict[str, Any]) -> float:
    loops = plan.get("Actual Loops", 1)
    own = plan.get("Actual Rows", 0) if "Scan" in plan["Node Type"] else 0
    own += sum(plan.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Index Recheck", "Join Filter"))
    return float(own * loops + sum(rows_touched(part) for part in plan.get("Plans", ())))


async def work_on_postgres(store: Postgres, name: str, params: dict[str, Any]) -> float:
    statement = load("postgres")[name]
    async with store.connections.borrow() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            values = store._values(statement, params)
            text = f"explain (analyze, timing off, format json) {statement.text}"
            [row] = await connection.fetch(text, *values)
            return rows_touched(json.loads(row[0])[0]["Plan"])
        except asyncpg.PostgresError as error:
            raise AssertionError(f"{name}: {error}") from error
        finally:
            await transaction.rollback()


def work_on_sqlite(connection: sqlite3.Connection, name: str, params: dict[str, Any]) -> float:
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 100
        return 0

    given = {key: json.dumps(value) if isinstance(value, list) else value for key, value in params.items()}
    connection.set_progress_handler(count, 100)
    connection.execute("begin")
    for part in load("sqlite")[name].parts:
        connection.execute(part, {**given, "now": THE_TIME + DAY}).fetchall()
    connection.execute("rollback")
    connection.set_progress_handler(None, 0)
    return steps


async def work(scene: Scene, *wanted: tuple[str, dict[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    if isinstance(scene.store, Postgres):
        for name, params in wanted:
            found[name] = max(found.get(name, 0), await work_on_postgres(scene.store, name, params))
        return found
    connection = connect(Path(scene.url.removeprefix("sqlite:///")))
    for name, params in wanted:
        found[name] = max(found.get(name, 0), work_on_sqlite(connection, name, params))
    connection.close()
    return found


@alone
async def test_no_view_and_no_duty_works_through_a_growing_table(scene: Scene) -> None:
    await fill(scene)
    scene.store.now = THE_TIME + DAY

    most = MOST_ROWS if scene.is_postgres else MOST_STEPS
    found = await work(scene, *STATEMENTS)
    [through_all_subjects] = (await work(scene, ("orphans_current_version", {"after": 0, "wanted": SOME}))).values()

    assert {name: n for name, n in found.items() if n > most} == {}
    assert through_all_subjects > most, "the measure sees a walk through a table"
