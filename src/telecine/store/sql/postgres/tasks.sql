-- name: task_hold
-- Locks the running tasks among these in id order and returns them as they are now; their jobs are locked next, by
-- `job_hold`. A task that does not run is left alone: a late word shall not stand in the way of whoever holds its job.
-- (The state is compared as an expression, lest the planner look for all running tasks instead of for these.)
select t.id, t.job_id, t.stage, t.position, t.state, t.token, t.tries, t.losses, t.releases, t.max_attempts, t.lease_until,
    t.stops_at, t.worker, t.optional, t.flow_id is not null as rowless, {now} as now,
    greatest(t.claimed_at, (select w.beat_at from worker w where w.id = t.worker)) as heard_at
from task t where t.id = any (:ids::bigint[]) and t.state || '' = 'running' order by t.id for no key update

-- name: settle
-- Everything that one batch of words changes, in one statement. Called with the rows locked and read: nobody can have
-- moved them since. What the history and the event say of a task is taken from its row as it was: one statement sees
-- one moment.
with m as materialized (
    select x.*, t.job_id, t.stage, t.tries as try, t.worker, t.claimed_at
    from unnest(:moves_id::bigint[], :moves_token::integer[], :moves_state::word[], :moves_ready_at::bigint[],
        :moves_tries::integer[], :moves_losses::integer[], :moves_releases::integer[], :moves_result::line[],
        :moves_error::line[], :moves_outcome::word[], :moves_digest::word[], :moves_generation::integer[],
        :moves_kind::word[], :moves_data::line[], :moves_silent_ms::bigint[])
        with ordinality as x (id, token, state, ready_at, tries, losses, releases, result, error, outcome, digest, generation,
            kind, data, silent_ms, n)
    -- Lateral, with a limit: otherwise the planner would look for running tasks instead of for these.
    cross join lateral (
        select job_id, stage, state, token, tries, worker, claimed_at from task where id = x.id limit 1
    ) t
    where t.token = x.token and t.state = 'running'
), t as (
    update task set state = m.state, parked = coalesce(m.ready_at > :at::bigint, false),
        ready_at = coalesce(m.ready_at, task.ready_at), tries = m.tries, losses = m.losses, releases = m.releases,
        result = m.result::jsonb, error = m.error::jsonb, ended_at = case when m.ready_at is null then :at::bigint end,
        worker = null, lease_until = null, stops_at = null, request = null
    from m where task.id = m.id
), a as (
    insert into attempt_row (task_id, token, job_id, generation, try, worker, outcome, digest, state, ready_at, error, silent_ms,
        started_at, ended_at)
    select m.id, m.token, m.job_id, m.generation, m.try, m.worker, m.outcome, m.digest, m.state, m.ready_at,
        m.error::jsonb, m.silent_ms, m.claimed_at, :at::bigint
    from m
), s as (
    -- The counter moves by what was settled, never to a number that somebody read earlier.
    update stage_row stage set state = x.state, waits = x.waits, total = stage.total + x.added,
        remaining = stage.remaining - x.ended + x.added, failed = stage.failed + x.failed,
        cancelled = stage.cancelled + x.cancelled,
        ended_at = case when x.state in ('new', 'ready') then null else :at::bigint end
    from unnest(:stages_job_id::bigint[], :stages_number::smallint[], :stages_state::word[], :stages_waits::smallint[],
        :stages_added::integer[], :stages_ended::integer[], :stages_failed::integer[], :stages_cancelled::integer[])
        as x (job_id, number, state, waits, added, ended, failed, cancelled)
    where stage.job_id = x.job_id and stage.number = x.number
), j as (
    update job_row job set status = x.status, phase = x.phase, failing = x.failing, stopped = x.stopped, warnings = x.warnings,
        error = coalesce(x.error::jsonb, job.error),
        outcome = case when x.status in ('completed', 'failed', 'cancelled') then x.status end,
        ended_at = case when x.status in ('completed', 'failed', 'cancelled') then :at::bigint end
    from unnest(:jobs_id::bigint[], :jobs_status::word[], :jobs_phase::word[], :jobs_failing::boolean[],
        :jobs_stopped::boolean[], :jobs_warnings::integer[], :jobs_error::line[])
        as x (id, status, phase, failing, stopped, warnings, error)
    where job.id = x.id
)
insert into unnumbered (at, kind, worker, data, job_ids, task_ids, stages, tokens)
select :at::bigint, y.kind, y.worker, y.data::jsonb, array[y.job_id], array[y.task_id], array[y.stage], array[y.token] from (
    select m.kind, m.job_id, m.id as task_id, m.stage, m.token, m.worker, m.data, 0 as turn, m.n from m
    union all
    select x.kind, x.job_id, null, x.stage, null, null, x.data, 1, x.n
    from unnest(:events_kind::word[], :events_job_id::bigint[], :events_stage::smallint[], :events_data::line[])
        with ordinality as x (kind, job_id, stage, data, n)
) y order by y.turn, y.n

-- name: settle_lone
-- The short way: tasks that are their jobs, which have no row, and did what they should. Nothing was locked or read before: what
-- is still as the decision saw it is moved by the one update that looks at it, task by task in the order of the ids. The
-- job ends with it; and that it winds down cannot be: who asks for that gives it a row first. Such a task runs under its first
-- token, and is in the first stage. What was said beyond `done` is in `told`: by the id, the digest and the result, if there is one.
-- What is not as it was comes back, and a row without an id if some job waits for one that has ended (one that begins to
-- wait while this statement waits is found by the sweep).
-- (The state is compared as an expression, lest the planner look for all running tasks instead of for these.)
with given as materialized (
    select {now} as at, :ids::bigint[] as ids, :told::text::jsonb as told
), t as (
    update task set state = :state, outcome = :status, phase = :phase, done_by = worker,
        digest = case when (select told from given) is not null then (select told from given) -> id::text ->> 0 end,
        result = case when (select told from given) is not null then (select told from given) -> id::text -> 1 end,
        ended_at = (select at from given), worker = null, lease_until = null, stops_at = null, request = null
    where id = any ((select ids from given)::bigint[]) and token = 1 and state || '' = 'running'
      and lease_until > (select at from given) and flow_id is not null
    returning id, done_by
), ended as materialized (
    select done_by, array_agg(id) as ids, count(*)::integer as number from t group by done_by
), e as (
    insert into unnumbered (at, kind, worker, job_ids, task_ids, stages, tokens)
    select (select at from given), y.* from (
        select :task_kind::text, done_by, ids, ids, array_fill(0::smallint, array[number]), array_fill(1, array[number]) from ended
        union all
        select :job_kind::text, null, ids, null, null, null from ended
    ) y
)
select m.id, false as awaited from unnest((select ids from given)) as m (id)
where (select sum(number) from ended) is distinct from (select cardinality(ids) from given)
  and m.id <> all (array(select id from t))
union all
select null, true where exists (select 1 from job_after where after_id = any (array(select id from t)))

-- name: open_stages
-- Tasks of stages that opened, or were found needless: new -> ready or skipped.
update task t
set state = o.state, ready_at = o.ready_at, parked = o.parked, ended_at = o.ended_at,
    rank = o.rank + t.position * o.cost
from unnest(:stages_job_id::bigint[], :stages_number::smallint[], :stages_state::word[], :stages_ready_at::bigint[],
    :stages_parked::boolean[], :stages_ended_at::bigint[], :stages_rank::bigint[], :stages_cost::bigint[])
    as o (job_id, number, state, ready_at, parked, ended_at, rank, cost)
where t.job_id = o.job_id and t.flow_id is null and t.stage = o.number and t.state = 'new'

-- name: task_add
insert into task (id, job_id, stage, position, lane, state, parked, optional, ready_at, rank, max_attempts, stall_ms, limit_ms,
    patience_ms, ended_at, input)
select nextval('job_id'), x.job_id, x.stage, x.position, x.lane, x.state, x.parked, x.optional, x.ready_at, x.rank, x.max_attempts,
    x.stall_ms, x.limit_ms, x.patience_ms, x.ended_at, x.input::jsonb
from unnest(:tasks_job_id::bigint[], :tasks_stage::smallint[], :tasks_position::integer[],
    :tasks_lane::word[], :tasks_state::word[], :tasks_parked::boolean[], :tasks_optional::boolean[],
    :tasks_ready_at::bigint[], :tasks_rank::bigint[], :tasks_max_attempts::integer[], :tasks_stall_ms::bigint[],
    :tasks_limit_ms::bigint[], :tasks_patience_ms::bigint[], :tasks_ended_at::bigint[], :tasks_input::line[])
    as x (job_id, stage, position, lane, state, parked, optional, ready_at, rank, max_attempts, stall_ms, limit_ms,
        patience_ms, ended_at, input)

-- name: cancel_waiting
-- Called with the job's row locked. A ready task that somebody is claiming right now is skipped: the claim will
-- see the flag, and the sweep looks again.
with ready as materialized (
    select id from task where job_id = :job_id and flow_id is null and state = 'ready' order by id for no key update skip locked
), gone as (
    update task t set state = 'cancelled', parked = false, ended_at = :at::bigint
    where t.job_id = :job_id and t.flow_id is null and (t.state = 'new' or t.id in (select id from ready))
    returning t.stage
)
select stage, count(*)::integer as count from gone group by stage

-- name: attempt_get
select a.task_id, a.token, a.outcome, a.digest, a.state, a.ready_at
from unnest(:ids::bigint[], :tokens::integer[]) as w (id, token)
cross join lateral (select * from attempt where task_id = w.id and token = w.token limit 1) a

-- name: overdue
-- Running tasks whose lease or time has run out. Read only: the decision is taken again under the lock.
select id, token, lease_until <= {now} as expired, stops_at <= {now} as late,
    case when limit_ms is not null and claimed_at + limit_ms <= {now} then 'timed_out' else 'stalled' end as code
from task
where state = 'running' and (lease_until <= {now} or stops_at <= {now})
order by lease_until limit :wanted

-- name: running_of
select id, token, job_id, stage, position, lease_until, claimed_at, progress, worker from task
where state = 'running' and worker = any (:workers::bigint[]) order by id

-- name: brief
select s.number, s.name, t.position, t.result from stage_row s join task t on t.job_id = s.job_id and t.flow_id is null and t.stage = s.number
where s.job_id = :job_id and s.number = any (:stages::smallint[]) and t.state = 'done'
order by s.number, t.position
