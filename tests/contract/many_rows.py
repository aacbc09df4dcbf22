"""Twenty thousand finished jobs and some thousand open ones, written behind the engine's back."""

from tests.support.builders import NOW as T
from tests.support.scene import Scene

ENDED, OPEN = 20_000, 3_000
ENDS = f"i <= {ENDED}"
RARE = "i % 1000 in (7, 8)"
OWNER = f"case when {RARE} then 'rare' when i % 3 = 0 then 'busy' else '' end"
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
        "owner": OWNER,
        "subject_kind": "case when i % 1000 = 7 then 'movie' end",
        "subject_id": "case when i % 1000 = 7 then '7' end",
        "status": f"coalesce({OUTCOME}, 'pending')",
        "phase": "'processing'",
        "outcome": OUTCOME,
        "priority": "5",
        "spec": "'{}'",
        "created_at": f"{T} + i",
        "started_at": f"case when {ENDS} then {T} + i end",
        "ended_at": f"case when {ENDS} then {T} + i end",
    },
    "stage": {
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

# Every other of those that can be one: plain, and not failed. A table of their own, with an index: older releases of
# PostgreSQL compare each row of a CTE with each task, since our connections use no hash joins.
ROWLESS = (
    """
    create table moved as
    select * from job_row where id % 2 = 0 and outcome is distinct from 'failed' and subject_kind is null
    """,
    "create unique index moved_id on moved (id)",
    "analyze moved",
    "delete from job_row where id in (select id from moved)",
    "delete from stage_row where job_id in (select id from moved)",
    "delete from attempt_row where task_id in (select id from moved)",
    """
    update task t set flow_id = j.flow_id, owner = j.owner, priority = j.priority, phase = j.phase, spec = j.spec,
        outcome = j.outcome, token = (t.state <> 'ready')::integer, ended_at = j.ended_at,
        done_by = case when t.state = 'done' then 1 end,
        lane = j.flow || '/cut@1'
    from moved j where t.job_id = j.id
    """,
    "drop table moved",
)


async def fill(scene: Scene) -> None:
    """Finished jobs of one task each, then open ones; a few of everything that is rare."""
    await scene.sql("create table numbers (i bigint)")
    await scene.sql(
        f"insert into numbers with recursive n (i) as"
        f" (select 1 union all select i + 1 from n where i < {ENDED + OPEN}) select i from n"
    )
    for table, columns in ROWS.items():
        names, values = ", ".join(columns), ", ".join(columns.values())
        await scene.sql(f"insert into {scene.table(table)} ({names}) select {values} from numbers")
    await scene.sql(
        "insert into flow (id, name, version, digest, graph, registered_at)"
        f" select i, case when i = 1 then 'film' else 'rare' end, 1, '', '{{}}', {T} from numbers where i < 3"
    )
    if scene.is_postgres:
        for statement in ROWLESS:
            await scene.sql(statement)
        await scene.sql(f"insert into unnumbered (at, kind) select {T}, 'x' from numbers limit {OPEN}")
        await scene.sql(f"update event_counter set seq = {ENDED + OPEN}")
        await scene.sql("select brin_summarize_new_values('event_job')")  # as autovacuum does
    await scene.sql("analyze")
