-- What people look at. Reads only. A view that must be true as a whole is one statement, hence one snapshot: its parts
-- come as JSON columns.

-- name: view_job
select j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.status, j.phase, j.priority, j.spec::text as spec,
    j.dedupe_key, j.run_at, j.cancel_asked, j.version, j.generation, j.warnings, j.error::text as error, j.created_at,
    j.started_at, j.ended_at,
    (select json_agg(s order by s.number)::text from stage s where s.job_id = j.id) as stages,
    (select json_agg(c)::text from (
        -- What was kept is not made again: such a task is as far as it ever was, also while it waits.
        select t.stage, t.state, count(*) as count, coalesce(sum(case when t.kept > 0 then greatest(t.progress, t.best)
            when t.state = 'running' then t.progress end::float8), 0) as progress
        from job_task t where t.job_id = j.id group by t.stage, t.state) c) as tasks,
    -- What has not begun has none of these: most jobs that are looked at wait. Attempts by task: they have no index by job.
    case when j.started_at is not null or j.generation > 1 then (select json_agg(a)::text from (
        select t.stage, a.worker, w.name, min(a.started_at) as started_at,
            count(*) filter (where a.outcome not in ('done', 'released', 'cancelled', 'lost')) as bad
        from job_task t cross join lateral (select worker, started_at, outcome from attempt where task_id = t.id offset 0) a
        left join worker w on w.id = a.worker
        where t.job_id = j.id group by t.stage, a.worker, w.name) a) end as attempts,
    case when j.started_at is not null or j.generation > 1 then (select json_agg(r)::text from (
        select t.stage, t.worker, w.name, min(t.claimed_at) as started_at
        from job_task t left join worker w on w.id = t.worker
        where t.job_id = j.id and t.state = 'running' group by t.stage, t.worker, w.name) r) end as running,
    case when j.started_at is not null or j.generation > 1 then (select json_agg(e)::text from (
        select t.stage, t.position, t.optional, t.tries, t.error from task t where t.job_id = j.id and t.flow_id is null and t.state = 'error'
        order by t.stage, t.position limit :most) e) end as problems,
    case when j.started_at is not null or j.generation > 1 then (select json_agg(o)::text from (
        select o.name, t.stage, t.position, o.key, o.size, o.sha256, o.facts
        from artifact o join task t on t.id = o.task_id where o.job_id = j.id and o.key is not null
        order by o.id limit :most) o) end as outputs,
    case when j.started_at is not null or j.generation > 1 then (select count(*) from artifact o
        where o.job_id = j.id and o.task_id is not null and o.key is not null)::integer else 0 end as output_count,
    case when j.started_at is not null or j.generation > 1 then (select json_agg(r)::text from (
        select s.name, t.position, t.result from stage s join job_task t on t.stage = s.number
        where s.job_id = j.id and t.job_id = j.id and t.state = 'done' and t.result is not null
        order by s.number desc, t.position limit :most) r) end as results,
    (select json_agg(f.after_id order by f.after_id)::text from job_after f where f.job_id = j.id) as waits_for
from job j where j.id = :id

-- name: view_archived
select archived_at, document::text as document from archive where job_id = :id
  and not exists (select 1 from job_gone g where g.job_id = :id)

-- name: view_tasks
select t.id, t.job_id, j.flow_id, t.stage, t.position, t.lane, t.state, t.parked, t.optional, t.ready_at, t.token, t.tries,
    t.losses, t.releases, t.max_attempts, t.worker, w.name as worker_name, t.claimed_at, t.lease_until, t.progress, t.note,
    t.kept, t.input::text as input, t.result::text as result, t.error::text as error, t.ended_at, {now} as now
from job_task t cross join (select flow_id from job where id = :job_id) j left join worker w on w.id = t.worker
where t.job_id = :job_id and (t.stage, t.position) > (:stage::smallint, :position::integer)
  and (:only_stage::smallint is null or t.stage = :only_stage) and (:only_state::text is null or t.state = :only_state)
order by t.stage, t.position limit :wanted

-- name: view_task
-- With all that may hold it up. The count ahead walks the index that the claim walks, and stops at the cap.
select t.id, t.job_id, j.flow_id, t.stage, t.position, t.lane, t.state, t.parked, t.optional, t.ready_at, t.token, t.tries,
    t.losses, t.releases, t.max_attempts, t.worker, w.name as worker_name, t.claimed_at, t.lease_until, t.progress, t.note,
    t.kept, t.input::text as input, t.result::text as result, t.error::text as error, t.ended_at, {now} as now,
    j.cancel_asked or j.failing as halted, exists (select 1 from flow f where f.name = j.flow and f.paused) as paused,
    (select json_agg(json_build_object('number', s.number, 'state', s.state))::text from stage s where s.job_id = j.id) as stages,
    (select json_agg(f.after_id order by f.after_id)::text from job_after f where f.job_id = j.id) as waits_for,
    (select count(*) from (
        select 1 from task q
        where t.state = 'ready' and not t.parked and q.lane = t.lane and q.state = 'ready' and not q.parked
          and (q.rank, q.id) < (t.rank, t.id)
        order by q.rank, q.id limit :most) q)::integer as ahead
from task t cross join lateral (select id, flow_id, flow, cancel_asked, failing from job where id = t.job_id limit 1) j
left join worker w on w.id = t.worker
where t.id = :id

-- name: view_serving
-- What the workers that could claim something now say that they serve.
select lanes::text as lanes, labels::text as labels, slots, load from worker
where gone_at is null and mode = 'active' and revoked_at is null and beat_at > {now} - :within::bigint

-- name: stage_times
-- How long tasks of a stage took: of the same job, and of those jobs of the same graph that completed last.
select a.ended_at - a.started_at as took from (
    select * from (
        select id, token, ended_at from job_task where job_id = :job_id and stage = :stage and state = 'done'
        order by position desc limit :wanted
    ) here
    union all
    select * from (
        select t.id, t.token, t.ended_at from (
            select * from (
                (select id, flow_id, ended_at from job_row where outcome = 'completed' order by ended_at desc, id desc limit :recent)
                union all
                (select id, flow_id, ended_at from rowless where outcome is not null order by ended_at desc, id desc limit :recent)
            ) ended order by ended_at desc, id desc limit :recent
        ) j cross join lateral (
            select id, token, ended_at from job_task where job_id = j.id and stage = :stage and state = 'done' offset 0
        ) t
        where j.flow_id = :flow_id and j.id <> :job_id limit :wanted
    ) elsewhere
) t cross join lateral (select outcome, started_at, ended_at from attempt where task_id = t.id and token = t.token limit 1) a
where a.outcome = 'done' and a.started_at is not null order by t.ended_at desc limit :wanted

-- name: view_attempts
select a.task_id, t.stage, t.position, a.token, a.generation, a.try, a.worker, w.name as worker_name, a.outcome, a.state,
    a.ready_at, a.error::text as error, a.silent_ms, a.started_at, a.ended_at, j.flow_id
from job_task t cross join (select flow_id from job where id = :job_id) j
cross join lateral (select * from attempt where task_id = t.id offset 0) a left join worker w on w.id = a.worker
where t.job_id = :job_id and (t.stage, t.position, a.token) > (:stage::smallint, :position::integer, :token::integer)
order by t.stage, t.position, a.token limit :wanted

-- name: view_attempts_of_task
select a.task_id, t.stage, t.position, a.token, a.generation, a.try, a.worker, w.name as worker_name, a.outcome, a.state,
    a.ready_at, a.error::text as error, a.silent_ms, a.started_at, a.ended_at, j.flow_id
from task t cross join lateral (select flow_id from job where id = t.job_id limit 1) j
cross join (select * from attempt where task_id = :id) a left join worker w on w.id = a.worker
where t.id = :id order by a.token

-- name: view_logs
select l.id, l.task_id, t.stage, t.position, l.token, l.at, l.kind, l.level, l.message, l.data::text as data, j.flow_id
from job_log l join task t on t.id = l.task_id cross join (select flow_id from job where id = :job_id) j
where l.job_id = :job_id and l.id > :after::bigint and (:kind::text is null or l.kind = :kind)
  and (:levels::text[] is null or l.level = any (:levels))
order by l.id limit :wanted

-- name: view_logs_tail
select l.id, l.task_id, t.stage, t.position, l.token, l.at, l.kind, l.level, l.message, l.data::text as data, j.flow_id
from job_log l join task t on t.id = l.task_id cross join (select flow_id from job where id = :job_id) j
where l.job_id = :job_id order by l.id desc limit :wanted

-- name: view_outputs
select o.id, o.name, t.stage, t.position, o.key, o.size, o.sha256, o.facts::text as facts, j.flow_id
from artifact o join task t on t.id = o.task_id cross join (select flow_id from job where id = :job_id) j
where o.job_id = :job_id and o.id > :after::bigint and o.key is not null order by o.id limit :wanted

-- name: view_jobs
select j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.status, j.priority, j.run_at, j.cancel_asked,
    j.version, j.generation, j.warnings, j.error::text as error, j.created_at, j.started_at, j.ended_at,
    (select json_agg(s)::text from stage s where s.job_id = j.id) as stages,
    case when j.outcome is null and j.started_at is not null then (select json_agg(h)::text from (
        select t.stage, sum(t.best::float8) as progress from task t
        where t.job_id = j.id and t.state = 'ready' and t.token > 0 and t.kept > 0 group by t.stage) h) end as held
from job j where j.id = any (:ids::bigint[])

-- name: view_running
-- By the index of running tasks: there are never more of them than slots.
select t.id, t.token, t.job_id, t.stage, t.position, t.worker, t.claimed_at, t.lease_until,
    case when t.kept > 0 then greatest(t.progress, t.best) else t.progress end as progress, t.note, j.flow,
    s.name as stage_name
from task t cross join lateral (select flow from job where id = t.job_id limit 1) j
cross join lateral (select name from stage where job_id = t.job_id and number = t.stage limit 1) s
where t.state = 'running' order by t.worker, t.id

-- name: view_failed
-- The dead letters: tasks in error of jobs that failed, the latest end first.
select t.id, t.job_id, j.flow_id, t.stage, t.position, t.lane, t.state, t.parked, t.optional, t.ready_at, t.token, t.tries,
    t.losses, t.releases, t.max_attempts, t.worker, null as worker_name, t.claimed_at, t.lease_until, t.progress, t.note,
    t.kept, t.input::text as input, t.result::text as result, t.error::text as error, t.ended_at, {now} as now, j.ended_at as job_ended_at
from (
    select id, flow_id, ended_at from job_row
    where outcome = 'failed' and (ended_at, id) < (:ended::bigint, :below::bigint) and (:flow::text is null or flow = :flow)
    order by ended_at desc, id desc limit :wanted
) j join task t on t.job_id = j.id and t.flow_id is null and t.state = 'error'
order by j.ended_at desc, j.id desc, t.stage, t.position

-- name: view_subject
-- The task in front of each open job of a subject: what runs, else what can be claimed, else what is parked.
select j.id as job_id, c.id, c.state
from (
    select id from job_row where subject_kind = :kind and subject_id = :id and outcome is null order by id desc limit :wanted
) j cross join lateral (
    select t.id, t.state,
        case when t.state = 'running' then 0 when t.state = 'new' then 3 when t.parked then 2 else 1 end as place
    from task t where t.job_id = j.id and t.flow_id is null and t.state in ('new', 'ready', 'running')
    order by place, t.stage, t.position limit 1
) c order by c.place, j.id

-- name: subject_last_job
select id, outcome, error::text as error from job_row where subject_kind = :kind and subject_id = :id order by id desc limit 1

-- name: stats_lanes
-- Hops from lane to lane in the index of what can be claimed; counts each up to the cap.
with recursive lanes as (
    (select lane from task where state = 'ready' and not parked order by lane limit 1)
    union all
    select (select t.lane from task t where t.state = 'ready' and not t.parked and t.lane > l.lane order by t.lane limit 1)
    from lanes l where l.lane is not null
)
select l.lane, c.count::integer as count, c.oldest, {now} as now from lanes l cross join lateral (
    select count(*) as count, min(r.ready_at) as oldest from (
        select t.ready_at from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
        order by t.rank, t.id limit :most) r
) c where l.lane is not null order by l.lane

-- name: stats_open
-- In the order of the indexes: PostgreSQL 16 and older would otherwise read all open jobs into a bitmap first.
select status as state, count(*)::integer as count
from (
    select status from (
        (select status from job_row where outcome is null order by flow_id, id limit :most)
        union all
        (select status from rowless where state = 'running' limit :most)
        union all
        (select status from rowless where state = 'ready' order by flow_id, id limit :most)
    ) j limit :most
) o group by status

-- name: stats_ended
-- Ended jobs are counted in the index only up to the cap, from the latest back; and those of the last minute.
select o.outcome as state,
    least(:most, (select count(*) from (
        select 1 from job_row j where j.outcome = o.outcome order by j.ended_at desc limit :most) c) + (select count(*) from (
        select 1 from rowless j where j.outcome is not null and o.outcome = 'completed' order by j.ended_at desc limit :most) c))::integer as count,
    least(:most, (select count(*) from (
        select 1 from job_row j where j.outcome = o.outcome and j.ended_at > {now} - 60000 limit :most) c) + (select count(*) from (
        select 1 from rowless j where j.outcome is not null and o.outcome = 'completed' and j.ended_at > {now} - 60000 limit :most) c))::integer as lately
from unnest(array['completed', 'failed', 'cancelled']) as o (outcome)

-- name: stats_tasks
select
    (select count(*) from task where state = 'running')::integer as running,
    (select count(*) from (select 1 from task where state = 'ready' and parked order by ready_at limit :most) p)::integer as parked,
    (select coalesce(sum(s.remaining), 0) from (select id from job_row where outcome is null order by flow_id, id limit :most) j
        cross join lateral (select remaining from stage_row where job_id = j.id and state = 'new' offset 0) s)::integer as waiting,
    (select count(*) from worker where gone_at is null and beat_at > {now} - :within::bigint)::integer as workers,
    (select coalesce(sum(slots), 0) from worker where gone_at is null and mode = 'active' and revoked_at is null
        and beat_at > {now} - :within::bigint)::integer as slots

-- name: subject_show
select s.kind, s.id, s.owner, s.facts::text as facts, s.created_at, s.updated_at, s.current_version,
    (select number from subject_version v where v.id = s.current_version) as version,
    (select max(j.id) from job_row j where j.subject_kind = s.kind and j.subject_id = s.id and j.outcome is null) as open_id,
    (select json_agg(v order by v.number desc)::text from (
        select v.id, v.number, v.job_id, v.keep, v.published_at, v.left_at,
            (select count(*) from artifact a where a.version_id = v.id) as files,
            (select coalesce(sum(a.size), 0) from artifact a where a.version_id = v.id) as bytes
        from subject_version v where v.kind = s.kind and v.subject_id = s.id order by v.number desc limit :most
    ) v) as versions
from subject s where s.kind = :kind and s.id = :id
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)

-- name: subjects_all
select s.kind, s.id, s.owner, s.facts::text as facts, s.created_at, s.updated_at, v.number as version,
    (select max(j.id) from job_row j where j.subject_kind = s.kind and j.subject_id = s.id) as job_id,
    (select max(j.id) from job_row j where j.subject_kind = s.kind and j.subject_id = s.id and j.outcome is null) as open_id
from subject s left join subject_version v on v.id = s.current_version
where s.kind = :kind and (s.created_at, s.id) < (:before::bigint, :below::text) and (:owner::text is null or s.owner = :owner)
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)
order by s.created_at desc, s.id desc limit :wanted

-- name: subjects_of_owner
select s.kind, s.id, s.owner, s.facts::text as facts, s.created_at, s.updated_at, v.number as version,
    (select max(j.id) from job_row j where j.subject_kind = s.kind and j.subject_id = s.id) as job_id,
    (select max(j.id) from job_row j where j.subject_kind = s.kind and j.subject_id = s.id and j.outcome is null) as open_id
from subject s left join subject_version v on v.id = s.current_version
where s.owner = :owner and s.owner <> '' and s.kind = :kind and (s.created_at, s.id) < (:before::bigint, :below::text)
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)
order by s.created_at desc, s.id desc limit :wanted
