-- What people look at: the twins of the PostgreSQL statements. There is no lateral join here, and rows turn into JSON
-- by naming their columns.

-- name: view_job
select j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.status, j.phase, j.priority, j.spec,
    j.dedupe_key, j.run_at, j.cancel_asked, j.version, j.generation, j.warnings, j.error, j.created_at,
    j.started_at, j.ended_at,
    (select json_group_array(json_object('number', s.number, 'name', s.name, 'state', s.state, 'waits', s.waits,
        'total', s.total, 'remaining', s.remaining, 'failed', s.failed, 'cancelled', s.cancelled, 'ended_at', s.ended_at))
        from (select * from stage where job_id = j.id order by number) s) as stages,
    (select json_group_array(json_object('stage', c.stage, 'state', c.state, 'count', c.count, 'progress', c.progress)) from (
        select t.stage, t.state, count(*) as count, coalesce(sum(case when t.kept > 0 then max(coalesce(t.progress, 0), t.best)
            when t.state = 'running' then t.progress end), 0) as progress
        from task t where t.job_id = j.id group by t.stage, t.state) c) as tasks,
    case when j.started_at is not null or j.generation > 1 then (select json_group_array(json_object('stage', a.stage, 'worker', a.worker, 'name', a.name, 'started_at', a.started_at,
        'bad', a.bad)) from (
        select t.stage, a.worker, w.name, min(a.started_at) as started_at,
            sum(a.outcome not in ('done', 'released', 'cancelled', 'lost')) as bad
        from task t join attempt a on a.task_id = t.id left join worker w on w.id = a.worker
        where t.job_id = j.id group by t.stage, a.worker, w.name) a) end as attempts,
    case when j.started_at is not null or j.generation > 1 then (select json_group_array(json_object('stage', r.stage, 'worker', r.worker, 'name', r.name, 'started_at', r.started_at))
        from (
        select t.stage, t.worker, w.name, min(t.claimed_at) as started_at
        from task t left join worker w on w.id = t.worker
        where t.job_id = j.id and t.state = 'running' group by t.stage, t.worker, w.name) r) end as running,
    case when j.started_at is not null or j.generation > 1 then (select json_group_array(json_object('stage', e.stage, 'position', e.position, 'optional', e.optional, 'tries', e.tries,
        'error', json(e.error))) from (
        select t.stage, t.position, t.optional, t.tries, t.error from task t where t.job_id = j.id and t.state = 'error'
        order by t.stage, t.position limit :most) e) end as problems,
    case when j.started_at is not null or j.generation > 1 then (select json_group_array(json_object('name', o.name, 'stage', o.stage, 'position', o.position, 'key', o.key,
        'size', o.size, 'sha256', o.sha256, 'facts', json(o.facts))) from (
        select o.name, t.stage, t.position, o.key, o.size, o.sha256, o.facts
        from artifact o join task t on t.id = o.task_id where o.job_id = j.id and o.key is not null
        order by o.id limit :most) o) end as outputs,
    case when j.started_at is not null or j.generation > 1 then (select count(*) from artifact o
        where o.job_id = j.id and o.task_id is not null and o.key is not null) else 0 end as output_count,
    case when j.started_at is not null or j.generation > 1 then (
        select json_group_array(json_object('name', r.name, 'position', r.position, 'result', json(r.result))) from (
        select s.name, t.position, t.result from stage s join task t on t.job_id = s.job_id and t.stage = s.number
        where s.job_id = j.id and t.state = 'done' and t.result is not null
        order by s.number desc, t.position limit :most) r) end as results,
    (select json_group_array(f.after_id) from (select after_id from job_after where job_id = j.id order by after_id) f)
        as waits_for
from job j where j.id = :id

-- name: view_archived
select archived_at, document from archive where job_id = :id
  and not exists (select 1 from job_gone g where g.job_id = :id)

-- name: view_tasks
select t.id, t.job_id, j.flow_id, t.stage, t.position, t.lane, t.state, t.parked, t.optional, t.ready_at, t.token, t.tries,
    t.losses, t.releases, t.max_attempts, t.worker, w.name as worker_name, t.claimed_at, t.lease_until, t.progress, t.note,
    t.kept, t.input, t.result, t.error, t.ended_at, {now} as now
from task t join job j on j.id = t.job_id left join worker w on w.id = t.worker
where t.job_id = :job_id and (t.stage, t.position) > (:stage, :position)
  and (:only_stage is null or t.stage = :only_stage) and (:only_state is null or t.state = :only_state)
order by t.stage, t.position limit :wanted

-- name: view_task
-- With all that may hold it up. The count ahead walks the index that the claim walks, and stops at the cap.
select t.id, t.job_id, j.flow_id, t.stage, t.position, t.lane, t.state, t.parked, t.optional, t.ready_at, t.token, t.tries,
    t.losses, t.releases, t.max_attempts, t.worker, w.name as worker_name, t.claimed_at, t.lease_until, t.progress, t.note,
    t.kept, t.input, t.result, t.error, t.ended_at, {now} as now,
    j.cancel_asked or j.failing as halted, exists (select 1 from flow f where f.name = j.flow and f.paused) as paused,
    (select json_group_array(json_object('number', s.number, 'state', s.state)) from stage s where s.job_id = j.id) as stages,
    (select json_group_array(f.after_id) from (select after_id from job_after where job_id = j.id order by after_id) f)
        as waits_for,
    (select count(*) from (
        select 1 from task q
        where t.state = 'ready' and not t.parked and q.lane = t.lane and q.state = 'ready' and not q.parked
          and (q.rank, q.id) < (t.rank, t.id)
        order by q.rank, q.id limit :most) q) as ahead
from task t join job j on j.id = t.job_id left join worker w on w.id = t.worker
where t.id = :id

-- name: view_serving
-- What the workers that could claim something now say that they serve.
select lanes, labels, slots, load from worker
where gone_at is null and mode = 'active' and revoked_at is null and beat_at > {now} - :within

-- name: stage_times
-- How long tasks of a stage took: of the same job, and of those jobs of the same graph that completed last.
select a.ended_at - a.started_at as took from (
    select * from (
        select id, token, ended_at from task where job_id = :job_id and stage = :stage and state = 'done'
        order by position desc limit :wanted
    ) here
    union all
    select * from (
        select t.id, t.token, t.ended_at from (
            select id, flow_id from job where outcome = 'completed' order by ended_at desc, id desc limit :recent
        ) j join task t on t.job_id = j.id and t.stage = :stage and t.state = 'done'
        where j.flow_id = :flow_id and j.id <> :job_id limit :wanted
    ) elsewhere
) t join attempt a on a.task_id = t.id and a.token = t.token
where a.outcome = 'done' and a.started_at is not null order by t.ended_at desc limit :wanted

-- name: view_attempts
select a.task_id, t.stage, t.position, a.token, a.generation, a.try, a.worker, w.name as worker_name, a.outcome, a.state,
    a.ready_at, a.error, a.silent_ms, a.started_at, a.ended_at, j.flow_id
from task t join job j on j.id = t.job_id join attempt a on a.task_id = t.id left join worker w on w.id = a.worker
where t.job_id = :job_id and (t.stage, t.position, a.token) > (:stage, :position, :token)
order by t.stage, t.position, a.token limit :wanted

-- name: view_attempts_of_task
select a.task_id, t.stage, t.position, a.token, a.generation, a.try, a.worker, w.name as worker_name, a.outcome, a.state,
    a.ready_at, a.error, a.silent_ms, a.started_at, a.ended_at, j.flow_id
from task t join job j on j.id = t.job_id join attempt a on a.task_id = t.id left join worker w on w.id = a.worker
where t.id = :id order by a.token

-- name: view_logs
select l.id, l.task_id, t.stage, t.position, l.token, l.at, l.kind, l.level, l.message, l.data, j.flow_id
from job_log l join task t on t.id = l.task_id join job j on j.id = l.job_id
where l.job_id = :job_id and l.id > :after and (:kind is null or l.kind = :kind)
  and (:levels is null or l.level in (select value from json_each(:levels)))
order by l.id limit :wanted

-- name: view_logs_tail
select l.id, l.task_id, t.stage, t.position, l.token, l.at, l.kind, l.level, l.message, l.data, j.flow_id
from job_log l join task t on t.id = l.task_id join job j on j.id = l.job_id
where l.job_id = :job_id order by l.id desc limit :wanted

-- name: view_outputs
select o.id, o.name, t.stage, t.position, o.key, o.size, o.sha256, o.facts, j.flow_id
from artifact o join task t on t.id = o.task_id join job j on j.id = o.job_id
where o.job_id = :job_id and o.id > :after and o.key is not null order by o.id limit :wanted

-- name: view_jobs
select j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.status, j.priority, j.run_at, j.cancel_asked,
    j.version, j.generation, j.warnings, j.error, j.created_at, j.started_at, j.ended_at,
    (select json_group_array(json_object('number', s.number, 'state', s.state, 'waits', s.waits, 'total', s.total,
        'remaining', s.remaining, 'failed', s.failed, 'cancelled', s.cancelled)) from stage s where s.job_id = j.id) as stages,
    case when j.outcome is null and j.started_at is not null then (
        select json_group_array(json_object('stage', h.stage, 'progress', h.progress)) from (
            select t.stage, sum(t.best) as progress from task t
            where t.job_id = j.id and t.state = 'ready' and t.token > 0 and t.kept > 0 group by t.stage) h) end as held
from job j where j.id in (select value from json_each(:ids))

-- name: view_running
-- By the index of running tasks: there are never more of them than slots.
select t.id, t.token, t.job_id, t.stage, t.position, t.worker, t.claimed_at, t.lease_until,
    case when t.kept > 0 then max(coalesce(t.progress, 0), t.best) else t.progress end as progress, t.note, j.flow,
    s.name as stage_name
from task t indexed by task_running join job j on j.id = t.job_id join stage s on s.job_id = t.job_id and s.number = t.stage
where t.state = 'running' order by t.worker, t.id

-- name: view_failed
-- The dead letters: tasks in error of jobs that failed, the latest end first.
select t.id, t.job_id, j.flow_id, t.stage, t.position, t.lane, t.state, t.parked, t.optional, t.ready_at, t.token, t.tries,
    t.losses, t.releases, t.max_attempts, t.worker, null as worker_name, t.claimed_at, t.lease_until, t.progress, t.note,
    t.kept, t.input, t.result, t.error, t.ended_at, {now} as now, j.ended_at as job_ended_at
from (
    select id, flow_id, ended_at from job
    where outcome = 'failed' and (ended_at, id) < (:ended, :below) and (:flow is null or flow = :flow)
    order by ended_at desc, id desc limit :wanted
) j join task t on t.job_id = j.id and t.state = 'error'
order by j.ended_at desc, j.id desc, t.stage, t.position

-- name: view_subject
select c.job_id, c.id, c.state from (
    select t.job_id, t.id, t.state,
        case when t.state = 'running' then 0 when t.state = 'new' then 3 when t.parked then 2 else 1 end as place
    from (
        select (
            select t.id from task t where t.job_id = j.id and t.state in ('new', 'ready', 'running')
            order by case when t.state = 'running' then 0 when t.state = 'new' then 3 when t.parked then 2 else 1 end,
                t.stage, t.position limit 1) as id
        from (
            select id from job where subject_kind = :kind and subject_id = :id and outcome is null
            order by id desc limit :wanted) j
    ) f join task t on t.id = f.id
) c order by c.place, c.job_id

-- name: subject_last_job
select id, outcome, error from job where subject_kind = :kind and subject_id = :id order by id desc limit 1

-- name: stats_lanes
with recursive lanes (lane) as (
    select (select lane from task where state = 'ready' and not parked order by lane limit 1)
    union all
    select (select t.lane from task t where t.state = 'ready' and not t.parked and t.lane > l.lane order by t.lane limit 1)
    from lanes l where l.lane is not null
)
select l.lane,
    (select count(*) from (
        select 1 from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
        order by t.rank, t.id limit :most)) as count,
    (select min(ready_at) from (
        select t.ready_at from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
        order by t.rank, t.id limit :most)) as oldest,
    {now} as now
from lanes l where l.lane is not null order by l.lane

-- name: stats_open
select status as state, count(*) as count
from (select status from job indexed by job_open where outcome is null order by id desc limit :most) o group by status

-- name: stats_ended
-- Ended jobs are counted in the index only up to the cap, from the latest back; and those of the last minute.
select o.outcome as state,
    (select count(*) from (select 1 from job j where j.outcome = o.outcome order by j.ended_at desc limit :most) c) as count,
    (select count(*) from (
        select 1 from job j where j.outcome = o.outcome and j.ended_at > {now} - 60000 limit :most) c) as lately
from (select 'completed' as outcome union all select 'failed' union all select 'cancelled') o

-- name: stats_tasks
select
    (select count(*) from task where state = 'running') as running,
    (select count(*) from (select 1 from task where state = 'ready' and parked limit :most) p) as parked,
    (select coalesce(sum(s.remaining), 0) from (select id from job indexed by job_open where outcome is null order by id desc limit :most) j
        join stage s on s.job_id = j.id and s.state = 'new') as waiting,
    (select count(*) from worker where gone_at is null and beat_at > {now} - :within) as workers,
    (select coalesce(sum(slots), 0) from worker where gone_at is null and mode = 'active' and revoked_at is null
        and beat_at > {now} - :within) as slots

-- name: subject_show
select s.kind, s.id, s.owner, s.facts as facts, s.created_at, s.updated_at, s.current_version,
    (select number from subject_version v where v.id = s.current_version) as version,
    (select max(j.id) from job j where j.subject_kind = s.kind and j.subject_id = s.id and j.outcome is null) as open_id,
    (select json_group_array(json_object('id', v.id, 'number', v.number, 'job_id', v.job_id, 'keep', v.keep,
        'published_at', v.published_at, 'left_at', v.left_at, 'files', v.files, 'bytes', v.bytes)) from (
        select v.id, v.number, v.job_id, v.keep, v.published_at, v.left_at,
            (select count(*) from artifact a where a.version_id = v.id) as files,
            (select coalesce(sum(a.size), 0) from artifact a where a.version_id = v.id) as bytes
        from subject_version v where v.kind = s.kind and v.subject_id = s.id order by v.number desc limit :most
    ) v) as versions
from subject s where s.kind = :kind and s.id = :id
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)

-- name: subjects_all
select s.kind, s.id, s.owner, s.facts as facts, s.created_at, s.updated_at, v.number as version,
    (select max(j.id) from job j where j.subject_kind = s.kind and j.subject_id = s.id) as job_id,
    (select max(j.id) from job j where j.subject_kind = s.kind and j.subject_id = s.id and j.outcome is null) as open_id
from subject s left join subject_version v on v.id = s.current_version
where s.kind = :kind and (s.created_at, s.id) < (:before, :below) and (:owner is null or s.owner = :owner)
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)
order by s.created_at desc, s.id desc limit :wanted

-- name: subjects_of_owner
select s.kind, s.id, s.owner, s.facts as facts, s.created_at, s.updated_at, v.number as version,
    (select max(j.id) from job j where j.subject_kind = s.kind and j.subject_id = s.id) as job_id,
    (select max(j.id) from job j where j.subject_kind = s.kind and j.subject_id = s.id and j.outcome is null) as open_id
from subject s left join subject_version v on v.id = s.current_version
where s.owner = :owner and s.owner <> '' and s.kind = :kind and (s.created_at, s.id) < (:before, :below)
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)
order by s.created_at desc, s.id desc limit :wanted
