-- name: losses_forget
-- A person wants the job to go on: workers that were lost before no longer count towards quarantine. Called with its tasks locked.
update task set losses = 0 where job_id = :job_id and flow_id is null and state in ('ready', 'running') and losses > 0

-- name: job_reopen
-- One that winds down has not ended: it has begun, and goes on.
update job_row set status = :status, phase = :phase, outcome = null, ended_at = null, error = null,
    started_at = case when outcome is null then started_at end, cancel_asked = false, failing = false, stopped = false,
    warnings = :warnings, generation = generation + 1 where id = :id

-- name: task_reopen
update task set state = 'new', tries = 0, losses = 0, releases = 0, parked = false, ready_at = null, rank = null,
    error = null, result = null, ended_at = null, progress = null, best = 0
where job_id = :job_id and flow_id is null and state in ('error', 'cancelled') and stage = any (:stages::smallint[])

-- name: task_renew
-- What runs or waits in a job that is opened again before it has ended. Called with its tasks locked.
update task set tries = case when state = 'running' then 1 else 0 end, losses = 0, releases = 0
where job_id = :job_id and flow_id is null and state in ('ready', 'running')

-- name: stage_count
select stage, count(*)::integer as total, count(*) filter (where state in ('new', 'ready', 'running'))::integer as remaining,
    count(*) filter (where state = 'new')::integer as new, count(*) filter (where state = 'error')::integer as failed
from task where job_id = :job_id and flow_id is null group by stage

-- name: stage_reset
update stage_row stage set state = x.state, waits = x.waits, total = x.total, remaining = x.remaining, failed = 0, cancelled = 0,
    ended_at = case when x.state in ('new', 'ready') then null else stage.ended_at end
from unnest(:stages_job_id::bigint[], :stages_number::smallint[], :stages_state::word[], :stages_waits::smallint[],
    :stages_total::integer[], :stages_remaining::integer[]) as x (job_id, number, state, waits, total, remaining)
where stage.job_id = x.job_id and stage.number = x.number
