"""The mutants by name: what is taken away, where, and which tests must miss it."""

from __future__ import annotations

from dataclasses import dataclass

UNIT = "tests/unit"
CONTRACT = "tests/contract"
PG = "store/sql/postgres"
LITE = "store/sql/sqlite"
# The claims are written out one by one: a guard that all of them have is taken from all of them.
PG_CLAIMS = (f"{PG}/claims.sql", f"{PG}/claim_hinted.sql", f"{PG}/claim_after.sql")
LITE_CLAIMS = (f"{LITE}/claims.sql", f"{LITE}/claim_hinted.sql")
PG_SUBMITS = (f"{PG}/jobs.sql", f"{PG}/submit_lone_ring.sql")


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new` in each of `files`. `noisy`: its failures mention what otherwise means nonsense."""

    name: str
    files: tuple[str, ...]
    old: str
    new: str
    tests: tuple[str, ...]
    quick: bool = False
    noisy: bool = False


def mutant(name: str, file: str | tuple[str, ...], old: str, new: str, *tests: str, quick: bool = False) -> Mutant:
    return Mutant(name, (file,) if isinstance(file, str) else file, old, new, tests, quick)


LIFECYCLE = (f"{UNIT}/test_lifecycle.py",)
ADVANCE = (f"{UNIT}/test_advance.py",)
STEPS = f"{CONTRACT}/test_interleavings.py"

RULES = [
    mutant(
        "the token is not checked",
        "lifecycle.py",
        "if task.state is not State.RUNNING or task.token != token:",
        "if task.state is not State.RUNNING:",
        f"{CONTRACT}/test_settle.py",
        quick=True,
    ),
    mutant(
        "a lease is good for ever",
        "lifecycle.py",
        'return OutcomeRefused("lease_expired") if expired else None',
        "return None",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "the sweep takes leases that are alive",
        "lifecycle.py",
        'return None if expired or gone else OutcomeRefused("still_held")',
        "return None",
        f"{CONTRACT}/test_recovery.py",
    ),
    mutant(
        "a limit counts before it is reached",
        "lifecycle.py",
        'return None if overdue else OutcomeRefused("still_held")',
        "return None",
        *LIFECYCLE,
    ),
    mutant(
        "done counts under cancel",
        "lifecycle.py",
        "case Done() if task.cancel_asked and not expired:",
        "case Done() if expired and not expired:",
        f"{CONTRACT}/test_settle.py",
        f"{CONTRACT}/test_cancel.py",
    ),
    mutant(
        "nothing is quarantined",
        "lifecycle.py",
        "if task.losses + 1 >= QUARANTINE_AFTER:",
        "if task.losses < 0:",
        f"{CONTRACT}/test_recovery.py",
    ),
    mutant(
        "refunds have no limit",
        "lifecycle.py",
        "if task.releases < REFUNDS:",
        "if task.releases >= 0:",
        f"{CONTRACT}/test_batches.py",
    ),
    mutant(
        "a lost lease costs a try",
        "lifecycle.py",
        'return _after(task, State.READY, "lost", tries=task.tries - 1, losses',
        'return _after(task, State.READY, "lost", losses',
        f"{CONTRACT}/test_recovery.py",
    ),
    mutant(
        "permanent errors are tried again",
        "lifecycle.py",
        "if fact.permanent or fact.code in policy.permanent or task.tries",
        "if task.tries",
        *LIFECYCLE,
    ),
    mutant(
        "attempts have no limit",
        "lifecycle.py",
        "or task.tries >= task.max_attempts:",
        "or task.tries < 0:",
        *LIFECYCLE,
    ),
    mutant("a halted job opens stages", "graph.py", "        if halted:\n", "        if row.total < 0:\n", *ADVANCE),
    mutant(
        "a stage opens before its last need",
        "graph.py",
        "        if row.waits == 0:\n            return row._replace(state=State.READY)",
        "        if row.waits <= 1:\n            return row._replace(state=State.READY)",
        *ADVANCE,
    ),
    mutant(
        "a stage is closed while its planner runs",
        "graph.py",
        "return row if row.remaining or awaited else",
        "return row if row.remaining else",
        f"{CONTRACT}/test_flows.py",
    ),
    mutant(
        "an optional error blocks what follows",
        "graph.py",
        " or (state is State.ERROR and stage.optional)",
        "",
        f"{CONTRACT}/test_flows.py",
    ),
]

CLAIM = [
    mutant(
        "a claim does not look at the job",
        PG_CLAIMS,
        " and t.job_id <> all (array(select id from halted))",
        "",
        STEPS + "::test_in_every_order[postgres-a task is ready whose job has rows: claim | cancel]",
    ),
    mutant(
        "a claim begins a job that winds down",
        PG_CLAIMS,
        "where j.id = p.id and not (j.cancel_asked or j.failing)",
        "where j.id = p.id",
        STEPS + "::test_in_every_order[postgres-a task is ready whose job has rows: claim | cancel]",
    ),
    mutant(
        "a claim begins jobs in the order of their tasks",
        PG_CLAIMS,
        "array(select distinct job_id from picked where flow_id is null order by job_id)",
        "array(select job_id from picked where flow_id is null)",
        f"{CONTRACT}/test_short_way_races.py",
    ),
    mutant(
        "a claim ignores the worker's mode",
        (*PG_CLAIMS, *LITE_CLAIMS),
        "from worker where id = :worker and mode = 'active' and",
        "from worker where id = :worker and",
        f"{CONTRACT}/test_lanes.py",
    ),
    mutant(
        "a claim does not lock its worker",
        PG_CLAIMS,
        "gone_at is null and revoked_at is null\n    for no key update",
        "gone_at is null and revoked_at is null",
        f"{CONTRACT}/test_slow_claims.py",
    ),
    mutant(
        "a repeat of an older request is granted anew",
        PG_CLAIMS,
        "and not exists (select 1 from task where worker = :worker and state = 'running' and request = :request)",
        "",
        f"{CONTRACT}/test_lanes.py",
        quick=True,
    ),
    mutant(
        "a claim leaves what another only looked at",
        "engine/__init__.py",
        "if not rows and (due or standing):",
        "if not rows and due:",
        f"{CONTRACT}/test_claim.py",
    ),
    mutant(
        "a claim that comes up short unparks nothing",
        "engine/__init__.py",
        "if due and len(rows) < wanted:",
        "if due and not rows:",
        f"{CONTRACT}/test_claim.py",
    ),
    mutant(
        "a caller's own idea of JSON changes a spec",
        PG_SUBMITS,
        ":phase, :spec::text::jsonb)",
        ":phase, :spec)",
        f"{CONTRACT}/test_submit_lone.py",
    ),
    mutant(
        "a repeat of an older request is granted anew, on SQLite",
        LITE_CLAIMS,
        "and not exists (select 1 from task where worker = :worker and state = 'running' and request = :request)",
        "",
        f"{CONTRACT}/test_lanes.py",
    ),
    mutant(
        "a repeat that races is granted anew",
        PG_CLAIMS,
        "select 1 from me where request is distinct from :request",
        "select 1 from me",
        f"{CONTRACT}/test_slow_claims.py",
    ),
    mutant(
        "a paused flow goes on",
        PG_CLAIMS,
        "where f.name = l.flow and f.paused",
        "where f.name = l.flow and f.paused and not f.paused",
        f"{CONTRACT}/test_lanes.py",
    ),
    mutant(
        "a parked task is claimed",
        PG_CLAIMS,
        "where t.lane = served.lane and t.state = 'ready' and not t.parked",
        "where t.lane = served.lane and t.state = 'ready'",
        f"{CONTRACT}/test_submit.py",
    ),
    mutant(
        "a hint unparks",
        f"{PG}/claim_hinted.sql",
        "where t.id = any (:hinted::bigint[]) and t.state = 'ready' and not t.parked",
        "where t.id = any (:hinted::bigint[]) and t.state = 'ready'",
        f"{CONTRACT}/test_redis_claims.py",
    ),
    mutant(
        "what is hinted at is claimed whatever its state",
        f"{PG}/claim_hinted.sql",
        "where t.id = any (:hinted::bigint[]) and t.state = 'ready' and not t.parked",
        "where t.id = any (:hinted::bigint[]) and not t.parked",
        f"{CONTRACT}/test_redis_claims.py",
    ),
    mutant(
        "a hint leads into lanes that the worker does not serve",
        f"{PG}/claim_hinted.sql",
        "      and t.lane = any (array(select lane from served))\n",
        "",
        f"{CONTRACT}/test_redis_claims.py",
    ),
    mutant(
        "a claim that goes on where it was takes nothing from before",
        f"{PG}/claim_after.sql",
        "limit greatest(0, :wanted - (select count(*) from candidate))",
        "limit 0",
        f"{CONTRACT}/test_claim_cursor.py",
    ),
    mutant(
        "what is parked before the place is claimed",
        f"{PG}/claim_after.sql",
        "where t.lane = served.lane and not t.parked and t.state = 'ready'",
        "where t.lane = served.lane and t.state = 'ready'",
        f"{CONTRACT}/test_claim_cursor.py",
    ),
    mutant(
        "what is of a deleted subject and before the place is claimed",
        f"{PG}/claim_after.sql",
        ":after_id::bigint)\n          and not ((select yes from buried) and exists (",
        ":after_id::bigint)\n          and not (false and exists (",
        f"{CONTRACT}/test_claim_cursor.py",
    ),
    mutant(
        "claims that follow each other never look at the beginning",
        "store/claim_cursor.py",
        "else before._replace(last=last)\n",
        "else before._replace(last=last, started_at=self._clock())\n",
        f"{CONTRACT}/test_claim_cursor.py",
    ),
    mutant(
        "a claim that left some before its place goes on all the same",
        "store/claim_cursor.py",
        "if before is None or first <= after:",
        "if before is None:",
        f"{CONTRACT}/test_claim_cursor.py",
    ),
    mutant(
        "a late answer leads the walk away from what somebody found at the beginning",
        "store/claim_cursor.py",
        "walk = before if before.last < after else",
        "walk = before if first is None else",
        f"{CONTRACT}/test_claim_cursor.py",
    ),
    mutant(
        "what is not due is unparked",
        f"{PG}/claims.sql",
        "select id from task where state = 'ready' and parked and ready_at <= {now}\n",
        "select id from task where state = 'ready' and parked\n",
        f"{CONTRACT}/test_submit.py",
    ),
    mutant(
        "the token does not grow",
        PG_CLAIMS,
        "set state = 'running', token = t.token + 1, tries",
        "set state = 'running', token = greatest(t.token, 1), tries",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "rank ignores priority",
        "engine/jobs/ready_tasks.py",
        "return max(0, min(10, priority + offset)) * HOUR",
        "return 0",
        f"{CONTRACT}/test_claim.py",
    ),
]

HOLD = [
    mutant(
        "a beat renews under any token",
        f"{PG}/workers.sql",
        "where t.token = n.token and t.state = 'running'",
        "where t.state = 'running'",
        f"{CONTRACT}/test_beat.py",
        quick=True,
    ),
    mutant(
        "a beat renews under any token, on SQLite",
        f"{LITE}/workers.sql",
        "where task.id = n.id and task.token = n.token and task.state",
        "where task.id = n.id and task.state",
        f"{CONTRACT}/test_beat.py",
    ),
    mutant(
        "a beat renews what has run out",
        f"{PG}/workers.sql",
        "and t.worker = :worker and t.lease_until > {now}",
        "and t.worker = :worker",
        f"{CONTRACT}/test_beat.py",
    ),
    mutant(
        "a beat renews the leases of others",
        f"{PG}/workers.sql",
        "and t.worker = :worker and t.lease_until > {now}",
        "and t.lease_until > {now}",
        f"{CONTRACT}/test_beat.py",
    ),
    mutant(
        "any beat ends a row of losses",
        f"{PG}/workers.sql",
        "losses = case when h.moved then 0 else t.losses end",
        "losses = 0",
        f"{CONTRACT}/test_beat.py",
    ),
    mutant(
        "keep is not fenced",
        "engine/leases/lease_operations.py",
        'if row["state"] != State.RUNNING or row["token"] != token:',
        'if row["state"] != State.RUNNING:',
        f"{CONTRACT}/test_keep.py",
        quick=True,
    ),
    mutant(
        "keep outlives the lease",
        "engine/leases/lease_operations.py",
        'if row["now"] >= row["lease_until"]:',
        "if token < 0:",
        f"{CONTRACT}/test_keep.py",
    ),
    mutant(
        "to keep the same again is progress",
        "engine/leases/lease_operations.py",
        'moved = any(_is_news(item, known.get(item["name"])) for item in artifacts)',
        "moved = True",
        f"{CONTRACT}/test_keep.py",
    ),
    mutant(
        "another stage version adopts what was kept",
        (f"{PG}/artifacts.sql", f"{LITE}/artifacts.sql"),
        "where task_id = :task_id and stage_version = :stage_version",
        "where task_id = :task_id and :stage_version > 0",
        f"{CONTRACT}/test_keep.py",
    ),
]

SETTLE = [
    mutant(
        "settle does not lock the job",
        f"{PG}/jobs.sql",
        "from job_row where id = any (:ids::bigint[]) order by id for no key update",
        "from job_row where id = any (:ids::bigint[]) order by id",
        STEPS + "::test_in_every_order[postgres-the last two pieces are held: done | the other done]",
        quick=True,
    ),
    mutant(
        "settle does not lock the task",
        f"{PG}/tasks.sql",
        "order by t.id for no key update\n\n-- name: settle",
        "order by t.id\n\n-- name: settle",
        STEPS + "::test_in_every_order[postgres-a piece is held: done | gone]",
    ),
    mutant(
        "tasks are locked in any order",
        "engine/leases/settle.py",
        'yield Ask("task_hold", {"ids": sorted({word.task_id for word in words})})',
        'yield Ask("task_hold", {"ids": [word.task_id for word in words][:1]})',
        f"{CONTRACT}/test_batches.py",
    ),
    mutant(
        "the short way does not check the lease",
        f"{PG}/tasks.sql",
        "      and lease_until > (select at from given) and flow_id is not null\n",
        "      and flow_id is not null\n",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "a job that has rows goes the short way",
        f"{PG}/tasks.sql",
        " and flow_id is not null\n    returning id, done_by",
        "\n    returning id, done_by",
        STEPS + "::test_in_every_order[postgres-a lone task is held: lone | cancel]",
    ),
    mutant(
        "the short way locks tasks as they lie",
        "store/connections.py",
        ', "enable_bitmapscan": "off"}',
        "}",
        f"{CONTRACT}/test_short_way_races.py",
    ),
    mutant(
        "a word about a job without rows moves it as if it had some",
        "engine/jobs/job_rows.py",
        '    if any(row["rowless"] for row in tasks):\n',
        "    if not tasks:\n",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "a job gets rows that say what its task was",
        f"{PG}/jobs.sql",
        "and flow_id is not null order by id for no key update\n), s as (",
        "and flow_id is not null order by id\n), s as (",
        f"{CONTRACT}/test_short_way_races.py",
    ),
    mutant(
        "rows are given in the order of the asking",
        f"{PG}/jobs.sql",
        "and flow_id is not null order by id for no key update\n), s as (",
        "and flow_id is not null order by id desc for no key update\n), s as (",
        f"{CONTRACT}/test_short_way_races.py",
    ),
    mutant(
        "a job that got its rows is still its task",
        f"{PG}/jobs.sql",
        "update task t set flow_id = null, owner = null, priority = null, phase = null, spec = null, outcome = null\n",
        "update task t set kept = t.kept\n",
        f"{CONTRACT}/test_rowless.py",
    ),
    mutant(
        "a claim takes a job without rows for one that winds down",
        PG_CLAIMS,
        "    where flow_id is null and (select count(distinct job_id) from picked where flow_id is null) >",
        "    where (select count(distinct job_id) from picked) >",
        f"{CONTRACT}/test_claim.py",
    ),
    mutant(
        "a later job begins before an earlier one of the same moment",
        f"{PG}/jobs.sql",
        "case when a.number = (select min(number) from alike where total > 0) then a.job_id else nextval('job_id') end",
        "nextval('job_id')",
        f"{CONTRACT}/test_rowless.py",
    ),
    mutant(
        "what is asked of several jobs locks them before their tasks",
        "engine/jobs/job_rows.py",
        "    if len(ids) == 1:",
        "    if ids:",
        f"{CONTRACT}/test_rowless.py",
    ),
    mutant(
        "repeats are not recognised",
        "engine/leases/settle.py",
        "    if hearing.unheard:\n",
        "    if not words:\n",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "another body is taken for a repeat",
        "engine/leases/settle.py",
        'row["digest"] and row["digest"] == digest_of(word.fact)',
        'row["digest"]',
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "a failing job gets work in the same batch",
        "engine/leases/settle.py",
        "    hearing.halt()\n",
        "",
        f"{CONTRACT}/test_flows.py",
    ),
    mutant(
        "the plan of a failing job is lost",
        "engine/jobs/job_effects.py",
        "        if row.state is State.NEW:\n            state = State.CANCELLED",
        "        if row.state is State.NEW and not self.failing:\n            state = State.CANCELLED",
        f"{CONTRACT}/test_flows.py",
    ),
    mutant(
        "an error cancels nothing",
        "engine/jobs/job_effects.py",
        '        if change.failing and not change.job["failing"]:\n',
        "        if change.failing and not change.rows:\n",
        f"{CONTRACT}/test_flows.py",
    ),
    mutant(
        "a stage opens tasks that have ended",
        f"{PG}/tasks.sql",
        "and t.flow_id is null and t.stage = o.number and t.state = 'new'",
        "and t.flow_id is null and t.stage = o.number",
        f"{CONTRACT}/test_retry.py",
    ),
]

REST = [
    mutant(
        "no grace after an outage",
        "engine/leases/recovery.py",
        "    if grace:\n",
        "    grace = False\n    if grace:\n",
        f"{CONTRACT}/test_recovery.py",
    ),
    mutant(
        "a clock that was set back gives no fresh term",
        (f"{PG}/workers.sql",),
        "claimed_at not between {now} - :period::bigint and {now}",
        "claimed_at < {now} - :period::bigint",
        f"{CONTRACT}/test_odd_times_and_words.py",
    ),
    mutant(
        "an outage counts as a stall",
        (f"{PG}/workers.sql",),
        "stops_at = stops_at + least(:silent::bigint, {now} - claimed_at)",
        "stops_at = stops_at + 0 * :silent::bigint",
        f"{CONTRACT}/test_recovery.py",
    ),
    mutant(
        "the sweep finds no lost lease",
        f"{PG}/tasks.sql",
        "where state = 'running' and (lease_until <= {now} or stops_at <= {now})",
        "where state = 'running' and stops_at <= {now}",
        f"{CONTRACT}/test_recovery.py",
    ),
    mutant(
        "a pid that was given to another process is taken for the worker",
        "world.py",
        " or _started(stat) != started",
        "",
        f"{UNIT}/test_world.py",
    ),
    mutant(
        "a disabled worker keeps its leases",
        "engine/__init__.py",
        "        if mode is Mode.DISABLED:\n",
        "        if mode is Mode.DISABLED and revoke is None:\n",
        f"{CONTRACT}/test_gone.py",
    ),
    mutant(
        "cancel leaves what is ready",
        f"{PG}/tasks.sql",
        "(t.state = 'new' or t.id in (select id from ready))",
        "t.state = 'new'",
        f"{CONTRACT}/test_cancel.py",
    ),
    mutant(
        "a dedupe key is not unique",
        f"{PG}/migrations/0007_first_release/1_jobs.sql",
        "create unique index job_dedupe",
        "create index job_dedupe",
        STEPS + "::test_in_every_order[postgres-somebody submits: with a dedupe key | with a dedupe key]",
    ),
    mutant(
        "a key takes any body",
        "engine/jobs/submit.py",
        'if row["digest"] != digest:',
        "if not digest:",
        f"{CONTRACT}/test_keys.py",
    ),
    mutant(
        "a retry begins with token zero",
        f"{PG}/retry.sql",
        "update task set state = 'new', tries = 0,",
        "update task set state = 'new', token = 0, tries = 0,",
        f"{CONTRACT}/test_retry.py",
    ),
    mutant(
        "a retry does done work again",
        f"{PG}/retry.sql",
        "and state in ('error', 'cancelled')",
        "and state in ('error', 'cancelled', 'done')",
        f"{CONTRACT}/test_retry.py",
    ),
    mutant(
        "an edit does not look at the version",
        "engine/jobs/control.py",
        'version != job["version"]',
        "version < 0",
        f"{CONTRACT}/test_edit.py",
    ),
    mutant(
        "a job comes after one that failed",
        "engine/jobs/control.py",
        "outcome != Status.COMPLETED",
        "outcome == Status.PENDING",
        f"{CONTRACT}/test_submit.py",
    ),
    mutant(
        "SQLite does not wait for the disk",
        "store/sqlite.py",
        "pragma synchronous = full",
        "pragma synchronous = off",
        f"{CONTRACT}/test_schema.py",
    ),
    mutant(
        "a newer schema is taken for ours",
        "store/migrate.py",
        "    if current > known:\n",
        "    if known < 0:\n",
        f"{CONTRACT}/test_schema.py",
    ),
    mutant(
        "one sweep returns one batch",
        "engine/leases/sweep.py",
        "if not returned or len(words) < recovery.BATCH:",
        "if returned >= 0:",
        f"{CONTRACT}/test_recovery.py",
    ),
]

SQLITE = [
    mutant(
        "a parked task is claimed, on SQLite",
        f"{LITE}/claims.sql",
        "where lane = l.value and state = 'ready' and not parked\n              -- Tasks of a deleted",
        "where lane = l.value and state = 'ready'\n              -- Tasks of a deleted",
        f"{CONTRACT}/test_submit.py",
    ),
    mutant(
        "a hint unparks, on SQLite",
        f"{LITE}/claim_hinted.sql",
        "(select value from json_each(:hinted)) and lane = l.value and state = 'ready' and not parked",
        "(select value from json_each(:hinted)) and lane = l.value and state = 'ready'",
        f"{CONTRACT}/test_redis_claims.py",
    ),
    mutant(
        "what is hinted at is claimed whatever its state, on SQLite",
        f"{LITE}/claim_hinted.sql",
        "(select value from json_each(:hinted)) and lane = l.value and state = 'ready' and not parked",
        "(select value from json_each(:hinted)) and lane = l.value and not parked",
        f"{CONTRACT}/test_redis_claims.py",
    ),
    mutant(
        "a repeat of a request whose leases have ended is granted anew, on SQLite",
        LITE_CLAIMS,
        "and request is not :request",
        "",
        f"{CONTRACT}/test_lanes.py",
    ),
    mutant(
        "what is not due is unparked, on SQLite",
        f"{LITE}/claims.sql",
        "where state = 'ready' and parked and ready_at <= {now} order by ready_at",
        "where state = 'ready' and parked order by ready_at",
        f"{CONTRACT}/test_submit.py",
    ),
    mutant(
        "a retry begins with token zero, on SQLite",
        f"{LITE}/retry.sql",
        "update task set state = 'new', tries = 0,",
        "update task set state = 'new', token = 0, tries = 0,",
        f"{CONTRACT}/test_retry.py",
    ),
    mutant(
        "a stage opens tasks that have ended, on SQLite",
        f"{LITE}/tasks.sql",
        "where job_id = :job_id and stage = :number and state = 'new'",
        "where job_id = :job_id and stage = :number",
        f"{CONTRACT}/test_retry.py",
    ),
    mutant(
        "the sweep finds no lost lease, on SQLite",
        f"{LITE}/tasks.sql",
        "where state = 'running' and (lease_until <= {now} or stops_at <= {now})",
        "where state = 'running' and stops_at <= {now}",
        f"{CONTRACT}/test_recovery.py",
    ),
    mutant(
        "the short way does not check the lease, on SQLite",
        f"{LITE}/tasks.sql",
        "where t.state = 'running' and t.lease_until > {now} and not (j.",
        "where t.state = 'running' and not (j.",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "the short way does not look for a cancel, on SQLite",
        f"{LITE}/tasks.sql",
        " and not (j.cancel_asked or j.failing)",
        "",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "the short way does not check the token, on SQLite",
        f"{LITE}/tasks.sql",
        "join task t on t.id = i.value and t.token = token.value",
        "join task t on t.id = i.value",
        f"{CONTRACT}/test_settle.py",
    ),
    mutant(
        "one who fails takes his neighbours along, on SQLite",
        "store/sqlite.py",
        'connection.execute("rollback to request")',
        "pass",
        f"{CONTRACT}/test_all_or_nothing.py",
    ),
]

SHELVES = [
    mutant(
        "replaced bytes are forgotten",
        f"{PG}/artifacts.sql",
        "where o.key is not null and o.key is distinct from x.key",
        "where false",
        f"{CONTRACT}/test_shelves.py",
    ),
    mutant(
        "replaced bytes are forgotten, on SQLite",
        f"{LITE}/artifacts.sql",
        "and key is not null and key is not :key",
        "and key is not null and :key is null and false",
        f"{CONTRACT}/test_shelves.py",
    ),
    mutant(
        "bytes that an artifact names are deleted",
        (f"{PG}/retention.sql", f"{LITE}/retention.sql"),
        "where not exists (select 1 from artifact a where a.key = k.",
        "where not exists (select 1 from artifact a where a.key || '!' = k.",
        f"{CONTRACT}/test_clearing.py",
    ),
    mutant(
        "anybody's files may be carried over",
        "engine/jobs/carried_artifacts.py",
        "lost = next((id_ for id_ in fact.carry if held.get(id_) != subject), None)",
        "lost = next((id_ for id_ in fact.carry if id_ not in held), None)",
        f"{CONTRACT}/test_carry.py",
    ),
    mutant(
        "another stage version shows what it kept",
        "engine/leases/task_inputs.py",
        'if row["stage_version"] == versions.get(row["stage"])',
        'if row["stage"] in versions',
        f"{CONTRACT}/test_shelves.py",
    ),
    mutant(
        "a version goes as soon as it is replaced",
        (f"{PG}/retention.sql", f"{LITE}/retention.sql"),
        "where not keep and left_at <= {now} - :age",
        "where not keep and left_at <= {now} + :age",
        f"{CONTRACT}/test_retention.py",
    ),
]

LETTERS_TESTS = f"{CONTRACT}/test_deliveries.py"
LETTERS_SENT = f"{CONTRACT}/test_deliveries_sent.py"
LETTERS = [
    mutant(
        "two postmen read the same events, on PostgreSQL",
        f"{PG}/deliveries.sql",
        "from postman p cross join event_counter c\nfor update of p skip locked",
        "from postman p cross join event_counter c",
        f"{LETTERS_TESTS}::test_two_postmen_at_once_write_each_letter_once",
        f"{CONTRACT}/test_alerts.py::test_several_servers_do_not_double_an_alert",
    ),
    mutant(
        "the postman's place does not move",
        "engine/webhooks/delivery_builder.py",
        'if reached != place["seq"]:',
        "if False:",
        LETTERS_TESTS,
    ),
    mutant(
        "a letter is marked by whoever once held it",
        (f"{PG}/deliveries.sql", f"{LITE}/deliveries.sql"),
        "and state = 'waiting' returning id\n\n-- name: delivery_retry",
        "and state = 'waiting' or id = :id and token <> :token returning id\n\n-- name: delivery_retry",
        LETTERS_SENT,
    ),
    mutant(
        "a letter that is being sent can be taken, on SQLite",
        f"{LITE}/deliveries.sql",
        "set until = {now} + :lease, next_at = {now} + :lease,",
        "set until = {now} + :lease,",
        LETTERS_SENT,
    ),
    mutant(
        "a dead host takes all hands",
        "engine/webhooks/deliveries.py",
        "room = min(most, wanted - len(ids))",
        "room = wanted - len(ids)",
        LETTERS_SENT,
    ),
    mutant(
        "alerts know no cooldown",
        "engine/webhooks/delivery_builder.py",
        "if sent_at is not None and sent_at <= now < sent_at + rules.cooldown:",
        "if sent_at is not None and now < sent_at:",
        f"{CONTRACT}/test_alerts.py",
    ),
    mutant(
        "whose letter it is does not matter",
        "engine/webhooks/deliveries.py",
        'if not rows or (owner is not None and rows[0]["owner"] != owner):',
        "if not rows:",
        LETTERS_SENT,
    ),
    mutant(
        "a webhook may name an address inside",
        "addresses.py",
        "if not is_public(address) and not any(",
        "if False and not any(",
        "tests/api/test_webhooks_hostile.py",
        f"{CONTRACT}/test_inputs_gate.py",
    ),
    mutant(
        "redirects are followed",
        "observe/webhook_request.py",
        "follow_redirects=False,",
        "follow_redirects=True,",
        "tests/api/test_webhooks_hostile.py",
    ),
]

GONE = [
    mutant(
        "what is of a deleted subject is claimed",
        PG_CLAIMS,
        "select exists (select 1 from subject_gone where cleared_at is null) as yes",
        "select false as yes",
        f"{CONTRACT}/test_gone_subjects.py",
    ),
    mutant(
        "what is of a deleted subject is claimed, on SQLite",
        f"{LITE}/claims.sql",
        "cancelled.\n              and not (exists (select 1 from subject_gone where cleared_at is null) and exists (",
        "cancelled.\n              and not (false and exists (",
        f"{CONTRACT}/test_gone_subjects.py",
    ),
    mutant(
        "a job of a subject that came back is cancelled",
        "engine/jobs/delete_subject.py",
        'if not (yield Ask("gone_hold", _named(who))):\n        return None',
        "if False:\n        return None",
        f"{CONTRACT}/test_gone_races.py",
    ),
    mutant(
        "a subject goes while a job needs it",
        "engine/jobs/delete_subject.py",
        'if row["found"]:',
        "if False:",
        f"{CONTRACT}/test_gone_races.py",
    ),
    mutant(
        "nobody looks for what a late worker wrote",
        "engine/jobs/delete_subject.py",
        'yield from put_freed(f"{job_id}/" for row in rows for job_id in json.loads(row["jobs"]))',
        "yield from put_freed([])",
        f"{CONTRACT}/test_gone_subjects.py",
    ),
    mutant(
        "an old job of a deleted video goes on",
        "apps/transcode/videos/start.py",
        "None if deleted is not None else await _twin(",
        "await _twin(",
        "tests/api/test_deleting_videos.py",
    ),
    mutant(
        "anybody signs links",
        "apps/transcode/videos/links.py",
        "if found is None or not hmac.compare_digest(_mark(secret, found[1] + found[2], video), found[3]):",
        "if found is None:",
        "tests/api/test_media_access.py",
    ),
    mutant(
        "links never end",
        "apps/transcode/http/media_access.py",
        "if self.link.expires_at <= now:",
        "if self.link.expires_at <= 0:",
        "tests/api/test_media_access.py",
    ),
    mutant(
        "a link to watch shows what is still made",
        "apps/transcode/http/media_access.py",
        'allowed = shown or self.link.reach == "p"',
        "allowed = True",
        "tests/api/test_media_access.py",
    ),
    mutant(
        "a piece is anybody's who has another video",
        (f"{PG}/watching.sql", f"{LITE}/watching.sql"),
        "then v.kind = s.kind and v.subject_id = s.id",
        "then true",
        "tests/api/test_media_access.py",
    ),
    mutant(
        "links lead out of the folders that owners may name",
        "apps/transcode/videos/source_policy.py",
        "path = await asyncio.to_thread(Path(spec.source).resolve)",
        "path = Path(spec.source)",
        "tests/api/test_videos.py",
    ),
    mutant(
        "an upload is anybody's source",
        "apps/transcode/videos/source_policy.py",
        "if not caller.may_see(upload.owner):",
        "if False:",
        "tests/api/test_videos.py",
    ),
]

ALONE = [
    mutant(
        "every submit at once rings with its commit",
        "dispatch/postgres.py",
        "        self._stirred = loop.time()\n        return True",
        "        return True",
        f"{CONTRACT}/test_doorbell.py",
    ),
    mutant(
        "a commit that cannot ring is refused",
        "store/postgres.py",
        "except MUTED:",
        "except ZeroDivisionError:",
        f"{CONTRACT}/test_doorbell.py",
    ),
    mutant(
        "a stage that is told twice counts as one",
        "engine/maintenance/audit.py",
        'sorted(item["number"] for item in found)',
        'sorted({item["number"] for item in found})',
        f"{CONTRACT}/test_rowless.py",
    ),
]

PATIENCE = f"{CONTRACT}/test_patience.py"
PATIENT = [
    mutant(
        "a busy worker loses the pieces that it has not come to yet",
        (f"{PG}/patience.sql", f"{LITE}/patience.sql"),
        "k.gone_at is null and k.revoked_at is null",
        "k.gone_at is not null and k.revoked_at is null",
        PATIENCE,
    ),
    mutant(
        "a draining worker holds patience up for ever",
        (f"{PG}/patience.sql", f"{LITE}/patience.sql"),
        " and k.mode = 'active'",
        "",
        PATIENCE,
    ),
    mutant(
        "a dead worker holds patience up for ever",
        (f"{PG}/patience.sql", f"{LITE}/patience.sql"),
        "k.beat_at > {now}",
        "k.beat_at > 0 * {now}",
        PATIENCE,
    ),
    mutant(
        "patience counts while a worker works in the lane",
        (f"{PG}/patience.sql", f"{LITE}/patience.sql"),
        "w.lane in (select lane from worked)",
        "false",
        PATIENCE,
    ),
    mutant(
        "patience counts while the flow is paused",
        (f"{PG}/patience.sql", f"{LITE}/patience.sql"),
        "from flow where paused)",
        "from flow where false)",
        PATIENCE,
    ),
    mutant(
        "patience counts from the beginning when the last worker leaves",
        "engine/leases/patience.py",
        '{"served": sorted(served),',
        '{"served": [],',
        PATIENCE,
    ),
    mutant(
        "an outage uses patience up",
        "engine/leases/sweep.py",
        "frozenset[str]() if grace else patience.unserved(lanes)",
        "patience.unserved(lanes)",
        PATIENCE,
    ),
    mutant(
        "the audit finds fault with a stage that went on without some tasks",
        "engine/maintenance/audit.py",
        "count.of(State.SKIPPED) == count.passed_over",
        "count.of(State.SKIPPED) == 0",
        PATIENCE,
    ),
]

LIMITS = [
    mutant(
        "webhooks are counted without a lock",
        "engine/webhooks/subscriptions.py",
        '    yield Ask("webhook_turn", {"owner": owner})\n',
        "",
        f"{CONTRACT}/test_webhook_bounds.py",
    ),
    mutant(
        "a lane may be of another flow",
        "engine/leases/claim.py",
        'if not lane.startswith(f"{flow}/"):',
        "if False:",
        f"{CONTRACT}/test_lanes.py",
    ),
    mutant(
        "a job that winds down fails although a person asked again",
        "engine/jobs/control.py",
        'if job["outcome"] is None and job["failing"] and not job["cancel_asked"]:',
        "if False:",
        f"{CONTRACT}/test_resume.py",
    ),
    mutant(
        "a cancelled job that winds down is opened again",
        "engine/jobs/control.py",
        'job["failing"] and not job["cancel_asked"]:',
        'job["failing"]:',
        f"{CONTRACT}/test_resume.py",
    ),
    mutant(
        "what a running task is built on is opened again",
        "engine/jobs/control.py",
        "if has_ended or not satisfies(graph.stages[row.number], row.state)]",
        "]",
        f"{CONTRACT}/test_resume.py",
    ),
    mutant(
        "outcomes are said together for ever",
        "worker/outbox.py",
        "until = self._world.mono() + TOGETHER_SECONDS",
        'until = float("inf")',
        f"{CONTRACT}/test_outcomes_kept.py",
    ),
    mutant(
        "an outcome that was not taken alone is said with others again",
        "worker/outbox.py",
        "if self._troubles and attempt.key in self._troubles:",
        "if False:",
        f"{CONTRACT}/test_outcomes_kept.py",
    ),
    mutant(
        "losses count although a person asked again",
        "engine/jobs/control.py",
        '        yield Ask("losses_forget", {"job_id": job_id})',
        "        pass",
        f"{CONTRACT}/test_retry.py",
    ),
    mutant(
        "of two re-transcodes at once the second one is begun, too",
        "apps/transcode/videos/retranscode.py",
        'dedupe_key=f"{NAME}:again:{video_id}"',
        "dedupe_key=None",
        "tests/api/test_videos.py",
    ),
    mutant(
        "a plan may have any number of pieces",
        "engine/leases/settle.py",
        "if planned > MAX_PIECES:",
        "if False:",
        f"{CONTRACT}/test_flows.py",
    ),
    mutant(
        "a job may have any number of tasks",
        "engine/leases/settle.py",
        "if total > MAX_TASKS:",
        "if False:",
        f"{CONTRACT}/test_flows.py",
    ),
    mutant(
        "bodies are parsed before they are counted",
        "api/http/request_limits.py",
        "await asyncio.to_thread(_check_values, body, values) if seen > LONG else _check_values(body, values)",
        "pass",
        "tests/api/test_limits.py",
    ),
]

MUTANTS = [*RULES, *CLAIM, *HOLD, *SETTLE, *REST, *SQLITE, *SHELVES, *LETTERS, *GONE, *ALONE, *PATIENT, *LIMITS]
QUICK = [mutant for mutant in MUTANTS if mutant.quick]
