-- name: task_hold
select t.id, t.job_id, t.stage, t.position, t.state, t.token, t.tries, t.losses, t.releases, t.max_attempts, t.lease_until,
    t.stops_at, t.worker, t.optional, 0 as rowless, {now} as now,
    max(t.claimed_at, coalesce((select w.beat_at from worker w where w.id = t.worker), 0)) as heard_at
from json_each(:ids) as i join task t on t.id = i.value where t.state = 'running'

-- name: settle_moves
-- History and event first: they take the task as it was. Nobody can have moved it since it was read.
insert into attempt (task_id, token, job_id, generation, try, worker, outcome, digest, state, ready_at, error, silent_ms,
    started_at, ended_at)
select id, token, job_id, :generation, tries, worker, :outcome, :digest, :state, :ready_at, :error,
    :silent_ms, claimed_at, :at
from task where id = :id and token = :token;
insert into event (at, kind, job_id, task_id, stage, token, worker, data)
select :at, :kind, job_id, id, stage, token, worker, :data from task where id = :id and token = :token;
update task set state = :state, parked = coalesce(:ready_at > :at, 0), ready_at = coalesce(:ready_at, ready_at),
    tries = :tries, losses = :losses, releases = :releases, result = :result, error = :error,
    ended_at = case when :ready_at is null then :at end,
    worker = null, lease_until = null, stops_at = null, request = null
where id = :id

-- name: settle_stages
update stage set state = :state, waits = :waits, total = total + :added, remaining = remaining - :ended + :added,
    failed = failed + :failed, cancelled = cancelled + :cancelled,
    ended_at = case when :state in ('new', 'ready') then null else :at end
where job_id = :job_id and number = :number

-- name: settle_jobs
update job set status = :status, phase = :phase, failing = :failing, stopped = :stopped, warnings = :warnings,
    error = coalesce(:error, error),
    outcome = case when :status in ('completed', 'failed', 'cancelled') then :status end,
    ended_at = case when :status in ('completed', 'failed', 'cancelled') then :at end
where id = :id

-- name: settle_events
insert into event (at, kind, job_id, stage, data) values (:at, :kind, :job_id, :stage, :data)

-- name: settle_lone
-- In sets, not row by row: few columns come from outside, and each statement that the writer runs without asking Python
-- for the next row is a time in which others have the interpreter.
create temp table if not exists going (
    n integer primary key, id integer, token integer, job_id integer, stage integer, tries integer, worker integer,
    claimed_at integer, generation integer, digest text, result text
);
delete from temp.going;
insert into temp.going (n, id, token, job_id, stage, tries, worker, claimed_at, generation, digest, result)
with token as materialized (select key, value from json_each(:tokens)),
    digest as materialized (select key, value from json_each(:digests)),
    result as materialized (select key, value from json_each(:results))
select i.key, t.id, t.token, t.job_id, t.stage, t.tries, t.worker, t.claimed_at, j.generation, digest.value, result.value
from json_each(:ids) as i
join token on token.key = i.key join digest on digest.key = i.key
left join result on result.key = i.key
join task t on t.id = i.value and t.token = token.value
join job j on j.id = t.job_id
where t.state = 'running' and t.lease_until > {now} and not (j.cancel_asked or j.failing);
insert into attempt (task_id, token, job_id, generation, try, worker, outcome, digest, state, started_at, ended_at)
select id, token, job_id, generation, tries, worker, :outcome, digest, :state, claimed_at, {now} from temp.going order by n;
insert into event (at, kind, job_id, task_id, stage, token, worker)
select {now}, :task_kind, job_id, id, stage, token, worker from temp.going order by n;
insert into event (at, kind, job_id) select {now}, :job_kind, job_id from temp.going order by n;
update task set state = :state, result = going.result, error = null, ended_at = {now},
    worker = null, lease_until = null, stops_at = null, request = null
from temp.going where task.id = going.id;
update stage set state = :stage_state, remaining = remaining - 1, ended_at = {now}
from temp.going where stage.job_id = going.job_id and stage.number = going.stage;
update job set status = :status, phase = :phase, outcome = :status, ended_at = {now}
from temp.going where job.id = going.job_id;
select value as id, 0 as awaited from json_each(:ids) where value not in (select id from temp.going)
union all
select null, 1 where exists (select 1 from temp.going where exists (select 1 from job_after where after_id = going.job_id))

-- name: open_stages_stages
update task set state = :state, ready_at = :ready_at, parked = :parked, ended_at = :ended_at, rank = :rank + position * :cost
where job_id = :job_id and stage = :number and state = 'new'

-- name: task_add_tasks
insert into task (job_id, stage, position, lane, state, parked, optional, ready_at, rank, max_attempts, stall_ms, limit_ms,
    patience_ms, input, ended_at)
values (:job_id, :stage, :position, :lane, :state, :parked, :optional, :ready_at, :rank, :max_attempts, :stall_ms,
    :limit_ms, :patience_ms, :input, :ended_at)

-- name: cancel_waiting
-- Answers first, since an update with RETURNING cannot be grouped: nobody else writes in between.
create temp table if not exists waiting (stage integer, count integer);
delete from temp.waiting;
insert into temp.waiting
select stage, count(*) from task where job_id = :job_id and state in ('new', 'ready') group by stage;
update task set state = 'cancelled', parked = 0, ended_at = :at where job_id = :job_id and state in ('new', 'ready');
select stage, count from temp.waiting

-- name: attempt_get
select a.task_id, a.token, a.outcome, a.digest, a.state, a.ready_at
from json_each(:ids) as i
join attempt a on a.task_id = i.value and a.token = json_extract(:tokens, '$[' || i.key || ']')

-- name: overdue
select id, token, lease_until <= {now} as expired, stops_at <= {now} as late,
    case when limit_ms is not null and claimed_at + limit_ms <= {now} then 'timed_out' else 'stalled' end as code
from task
where state = 'running' and (lease_until <= {now} or stops_at <= {now})
order by lease_until limit :wanted

-- name: running_of
select id, token, job_id, stage, position, lease_until, claimed_at, progress, worker from task
where state = 'running' and worker in (select value from json_each(:workers)) order by id

-- name: brief
select s.number, s.name, t.position, t.result from stage s join task t on t.job_id = s.job_id and t.stage = s.number
where s.job_id = :job_id and s.number in (select value from json_each(:stages)) and t.state = 'done'
order by s.number, t.position
