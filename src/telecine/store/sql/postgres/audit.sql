-- The audit: what is stored twice, side by side. One statement per look, hence one moment: every transaction changes
-- both sides together, so a difference is a fault and never a race.

-- name: audit_jobs
-- Jobs without a row are found graph by graph, as their indexes have them: also those of a graph that is lost.
with recursive graph (id) as (
    select least((select min(flow_id) from rowless where state = 'ready'), (select min(flow_id) from rowless where outcome is not null))
    union all
    select least((select min(flow_id) from rowless where state = 'ready' and flow_id > g.id),
        (select min(flow_id) from rowless where outcome is not null and flow_id > g.id))
    from graph g where g.id is not null
)
select j.id, j.flow_id, j.status, j.phase, j.outcome, j.warnings, j.waits, j.failing, j.cancel_asked, j.started_at,
    exists (select 1 from flow f where f.id = j.flow_id) as has_flow, (select count(*) from job o where o.id = j.id)::integer as told,
    (select count(*) from job_after f where f.job_id = j.id)::integer as after,
    (select count(*) from job_after f where f.job_id = j.id and (select count(*) from job o where o.id = f.after_id) = 0
        and not exists (select 1 from archive r where r.job_id = f.after_id))::integer as after_lost,
    (select json_agg(s order by s.number)::text from stage s where s.job_id = j.id) as stages,
    (select json_agg(c)::text from (
        select t.stage, t.state, t.optional, count(*) as count from job_task t where t.job_id = j.id
        group by t.stage, t.state, t.optional) c) as tasks,
    (select json_agg(c)::text from (
        select t.stage, count(*) as count from task t
        where t.job_id = j.id and t.flow_id is null and t.state = 'skipped' and t.patience_ms is not null group by t.stage
        ) c) as passed_over,
    (select json_agg(b)::text from (
        select t.id, t.state, t.token, t.kept, t.parked, t.lease_until, t.worker,
            (select count(*) from attempt a where a.task_id = t.id) as attempts,
            (select max(a.token) from attempt a where a.task_id = t.id) as last_token,
            (select count(*) from attempt a where a.task_id = t.id and a.state = 'done') as done,
            -- Of a job that has ended, retention may have freed the files.
            exists (select 1 from artifact o where o.task_id = t.id) or t.kept > 0 and j.outcome is not null as has_kept,
            exists (select 1 from worker w where w.id = t.worker) as has_worker
        from job_task t where t.job_id = j.id) b
        where b.attempts <> b.token - (b.state = 'running')::integer
            or coalesce(b.last_token, 0) <> b.token - (b.state = 'running')::integer
            or b.done <> (b.state = 'done')::integer
            or (b.state = 'running') <> (b.lease_until is not null) or (b.state = 'running') <> (b.worker is not null)
            or (b.state = 'running' and not b.has_worker)
            or (b.parked and b.state <> 'ready')
            or (b.kept > 0) <> b.has_kept) as odd
from (
    select id from (
        (select id from job_row where id > :after order by id limit :wanted)
        union all
        select r.id from graph f cross join lateral (
            (select id from rowless where flow_id between f.id and f.id and state = 'ready' and id > :after
            order by flow_id, id limit :wanted)
            union all
            (select id from rowless where flow_id between f.id and f.id and outcome is not null and id > :after
            order by flow_id, id limit :wanted)
        ) r
        union all
        (select id from (select * from rowless where state = 'running' offset 0) r where id > :after order by id limit :wanted)
    ) x group by id order by id limit :wanted
) x cross join lateral (select * from job where id = x.id limit 1) j order by j.id

-- Rows without the row that they belong to: what foreign keys would have refused. Each looks at a window of an index;
-- the row without `missing` says how far that reached.

-- name: orphans_stage
with w as (select job_id from stage_row where job_id > :after order by job_id limit :wanted)
select null::bigint as missing, max(job_id) as last from w
union all
select distinct job_id, null::bigint from w where not exists (select 1 from job_row j where j.id = w.job_id)

-- name: orphans_task
-- One that is its job has no other row to belong to.
with w as (select job_id from task where job_id > :after and flow_id is null order by job_id limit :wanted)
select null::bigint as missing, max(job_id) as last from w
union all
select distinct job_id, null::bigint from w where not exists (select 1 from job_row j where j.id = w.job_id)

-- name: orphans_job_log
with w as (select job_id from job_log where job_id > :after order by job_id limit :wanted)
select null::bigint as missing, max(job_id) as last from w
union all
select distinct job_id, null::bigint from w where (select count(*) from job j where j.id = w.job_id) = 0

-- name: orphans_job_after
with w as (select job_id from job_after where job_id > :after order by job_id limit :wanted)
select null::bigint as missing, max(job_id) as last from w
union all
select distinct job_id, null::bigint from w where not exists (select 1 from job_row j where j.id = w.job_id)

-- name: orphans_attempt
with w as (select task_id from attempt_row where task_id > :after order by task_id limit :wanted)
select null::bigint as missing, max(task_id) as last from w
union all
select distinct task_id, null::bigint from w where not exists (select 1 from task t where t.id = w.task_id)

-- name: orphans_artifact
-- Files of a published version outlive their job, which is in the archive then.
with w as (select job_id from artifact where job_id > :after order by job_id limit :wanted)
select null::bigint as missing, max(job_id) as last from w
union all
select distinct job_id, null::bigint from w where (select count(*) from job j where j.id = w.job_id) = 0
  and not exists (select 1 from archive r where r.job_id = w.job_id)

-- name: orphans_idempotency
with w as (select job_id from idempotency where job_id > :after order by job_id limit :wanted)
select null::bigint as missing, max(job_id) as last from w
union all
select distinct job_id, null::bigint from w where (select count(*) from job j where j.id = w.job_id) = 0
  and not exists (select 1 from archive r where r.job_id = w.job_id)

-- name: orphans_subject_version
-- Versions without subject, and artifacts that are given to a version which is not there.
with w as (select id, kind, subject_id from subject_version where id > :after order by id limit :wanted)
select null::bigint as missing, max(id) as last from w
union all
select id, null::bigint from w where not exists (select 1 from subject s where s.kind = w.kind and s.id = w.subject_id)

-- name: orphans_version_of_artifact
with w as (select version_id from artifact where version_id > :after order by version_id limit :wanted)
select null::bigint as missing, max(version_id) as last from w
union all
select distinct version_id, null::bigint from w where not exists (select 1 from subject_version v where v.id = w.version_id)

-- name: orphans_current_version
-- All subjects at once: there is no index by version, and they are far fewer than anything above.
select null::bigint as missing, null::bigint as last
union all
select current_version, null::bigint from subject s
where current_version > :after and not exists (select 1 from subject_version v where v.id = s.current_version)
limit :wanted
