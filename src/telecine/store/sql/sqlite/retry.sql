-- name: losses_forget
update task set losses = 0 where job_id = :job_id and state in ('ready', 'running') and losses > 0

-- name: job_reopen
update job set status = :status, phase = :phase, outcome = null, ended_at = null, error = null,
    started_at = case when outcome is null then started_at end, cancel_asked = 0, failing = 0, stopped = 0,
    warnings = :warnings, generation = generation + 1 where id = :id

-- name: task_reopen
update task set state = 'new', tries = 0, losses = 0, releases = 0, parked = 0, ready_at = null, rank = null,
    error = null, result = null, ended_at = null, progress = null, best = 0
where job_id = :job_id and state in ('error', 'cancelled') and stage in (select value from json_each(:stages))

-- name: task_renew
update task set tries = state = 'running', losses = 0, releases = 0 where job_id = :job_id and state in ('ready', 'running')

-- name: stage_count
select stage, count(*) as total, sum(state in ('new', 'ready', 'running')) as remaining, sum(state = 'new') as new,
    sum(state = 'error') as failed
from task where job_id = :job_id group by stage

-- name: stage_reset_stages
update stage set state = :state, waits = :waits, total = :total, remaining = :remaining, failed = 0, cancelled = 0,
    ended_at = case when :state in ('new', 'ready') then null else ended_at end
where job_id = :job_id and number = :number
