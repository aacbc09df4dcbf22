"""No look at the database, and no duty, works through a table that grows for ever.

Each statement runs with small limits on twenty thousand finished jobs and some thousand open ones; what is
measured is the work itself: rows that PostgreSQL touched, instructions that SQLite ran.
"""

import json
import sqlite3
from contextlib import suppress
from pathlib import Path
from typing import Any

import asyncpg

from telecine.store.connections import Connections
from telecine.store.postgres import Postgres
from telecine.store.sqlite import connect
from telecine.store.statements import load
from tests.contract.many_rows import ENDED, OPEN, fill
from tests.contract.request_plans import REQUESTS
from tests.support.builders import NOW as THE_TIME
from tests.support.scene import Scene, alone

MAX_ROWS = 2_000
MAX_STEPS = 40_000
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
    ("jobs_of_flow", {**_ANY, "flow": "film"}),
    ("jobs_of_owner", {**_ANY, "owner": "rare"}),
    ("jobs_of_owner", {**_ANY, "owner": "busy"}),
    ("live_owner_stats", {"owner": "busy", "most": SOME}),
    ("live_owner_stats", {"owner": "rare", "most": SOME}),
    ("jobs_of_subject", {**_ANY, "subject_kind": "movie", "subject_id": "7"}),
    ("jobs_open", {**_ANY, "below": ENDED}),
    ("jobs_open", _ANY),
    ("jobs_ended", {**_ANY, "status": "failed"}),
    ("jobs_ended", {**_ANY, "status": "completed"}),
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


def rows_touched(plan: dict[str, Any]) -> float:
    loops = plan.get("Actual Loops", 1)
    own = plan.get("Actual Rows", 0) if "Scan" in plan["Node Type"] else 0
    own += sum(plan.get(f"Rows Removed by {what}", 0) for what in ("Filter", "Index Recheck", "Join Filter"))
    return float(own * loops + sum(rows_touched(part) for part in plan.get("Plans", ())))


# By the block index of events, which only a bitmap can use: whoever writes must not ask so.
ONLY_READERS = {"live_begun"}


async def work_on_postgres(store: Postgres, name: str, params: dict[str, Any]) -> float:
    """The most that it takes: where we write, and where we read, by a plan for these values or for any."""
    ways = [(store._readers, "force_custom_plan"), (store._readers, "force_generic_plan")]
    if name not in ONLY_READERS:
        ways.append((store.connections, "force_generic_plan"))
    return max([await work_by(connections, mode, name, store, params) for connections, mode in ways])


async def work_by(connections: Connections, mode: str, name: str, store: Postgres, params: dict[str, Any]) -> float:
    statement = load("postgres")[name]
    values = ", ".join(map(literal, store._values(statement, params)))
    asked = f"looked({values})" if values else "looked"
    async with connections.borrow() as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await connection.execute(f"set local plan_cache_mode = {mode}; prepare looked as {statement.text}")
            [row] = await connection.fetch(f"explain (analyze, timing off, format json) execute {asked}")
            return rows_touched(json.loads(row[0])[0]["Plan"])
        except asyncpg.PostgresError as error:
            raise AssertionError(f"{name}: {error}") from error
        finally:
            await transaction.rollback()
            with suppress(asyncpg.InvalidSQLStatementNameError):
                await connection.execute("deallocate looked")


def literal(value: object) -> str:
    if isinstance(value, list):
        return f"array[{', '.join(map(literal, value))}]::text[]"
    if isinstance(value, str):
        quoted = value.replace("'", "''")
        return f"'{quoted}'"
    return "null" if value is None else str(value).lower()


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

    most = MAX_ROWS if scene.is_postgres else MAX_STEPS
    found = await work(scene, *STATEMENTS)
    [through_all_subjects] = (await work(scene, ("orphans_current_version", {"after": 0, "wanted": SOME}))).values()

    assert {name: n for name, n in found.items() if n > most} == {}
    assert through_all_subjects > most, "the measure sees a walk through a table"
