-- Putting old things away: the twins of the PostgreSQL statements. Nothing is locked here: one writes at a time.

-- name: old_jobs
select o.id, o.ended_at, o.generation,
    (select coalesce(sum(s.total), 0) from stage s where s.job_id = o.id) as tasks
from (
    select * from (select id, ended_at, generation from job where outcome = 'completed' and ended_at < {now} - :age
        order by ended_at, id limit :wanted)
    union all
    select * from (select id, ended_at, generation from job where outcome = 'failed' and ended_at < {now} - :age
        order by ended_at, id limit :wanted)
    union all
    select * from (select id, ended_at, generation from job where outcome = 'cancelled' and ended_at < {now} - :age
        order by ended_at, id limit :wanted)
) o order by o.ended_at, o.id limit :wanted

-- name: old_artifacts
select o.id, o.name, t.stage, t.position, o.key, o.size, o.sha256, o.facts
from artifact o join task t on t.id = o.task_id where o.job_id = :job_id and o.key is not null order by o.id

-- name: retire_tasks
select job_id, max(kept > 0 or token > 1 or state in ('error', 'cancelled')) as used
from task where job_id in (select value from json_each(:ids)) group by job_id

-- name: retire_jobs
select id, ended_at, generation from job
where id in (select value from json_each(:ids)) and outcome is not null order by id

-- name: retire_versions
select v.id, coalesce(s.current_version = v.id, 0) or v.keep
    or coalesce(v.left_at > {now} - :version_age, 0) as stays
from subject_version v join subject s on s.kind = v.kind and s.id = v.subject_id
where v.id in (
    select version_id from artifact where job_id in (select value from json_each(:ids)) and version_id is not null
)

-- name: retire_artifacts
delete from artifact where job_id in (select value from json_each(:ids))
  and (version_id is null or version_id not in (select value from json_each(:staying))) returning key

-- name: unfinished_artifacts
-- Files in these folders of tasks that a retry would do again; never those that a version names.
delete from artifact where job_id = :job_id and version_id is null and key is not null
  and substr(name, 1, instr(name, '/') - 1) in (select value from json_each(:folders))
  and task_id in (select id from task where job_id = :job_id and state in ('error', 'cancelled')) returning key

-- name: artifact_free
select distinct k.value as key from json_each(:keys) as k
where not exists (select 1 from artifact a where a.key = k.value)

-- name: freed_put_keys
insert into freed (key, at) values (:key, {now}) on conflict do nothing

-- name: freed_some
select key from freed where key > :after order by key limit :wanted

-- name: freed_drop
delete from freed where key in (select value from json_each(:keys)) returning key

-- name: archive_put_jobs
insert into archive (job_id, owner, flow, outcome, ended_at, archived_at, document)
values (:job_id, :owner, :flow, :outcome, :ended_at, {now}, :document)

-- name: retire_rows
delete from attempt where task_id in (
    select id from task where job_id in (select value from json_each(:ids)));
delete from task where job_id in (select value from json_each(:ids));
delete from stage where job_id in (select value from json_each(:ids));
delete from job_log where job_id in (select value from json_each(:ids));
delete from job_after where job_id in (select value from json_each(:ids));
delete from job where id in (select value from json_each(:ids)) returning id

-- name: old_versions
select id from subject_version where not keep and left_at <= {now} - :age order by left_at limit :wanted

-- name: version_hold
select v.id from subject_version v join subject s on s.kind = v.kind and s.id = v.subject_id
where v.id in (select value from json_each(:ids)) and not v.keep and s.current_version is not v.id

-- name: version_artifacts
delete from artifact where version_id in (select value from json_each(:ids)) returning key

-- name: version_drop
delete from subject_version where id in (select value from json_each(:ids)) returning id

-- name: old_keys
select w.owner, w.key, w.job_id, w.created_at < {now} - :age as aged,
    coalesce(coalesce(j.ended_at, r.ended_at) < {now} - :age, j.id is null and r.job_id is null) as old
from (select * from idempotency where job_id > :after order by job_id limit :wanted) w
left join job j on j.id = w.job_id left join archive r on r.job_id = w.job_id order by w.job_id

-- name: key_drop_keys
delete from idempotency where owner = :owner and key = :key

-- name: event_prune
update event_counter set pruned = max(pruned, coalesce((
    select coalesce(min(case when at >= {now} - :age then seq end), max(seq) + 1) - 1
    from (select seq, at from event order by seq limit :wanted)), pruned));
delete from event where seq <= (select pruned from event_counter);
select changes() as gone

-- name: log_prune
delete from job_log where id in (
    select id from (select id, at from job_log order by id limit :wanted) w where w.at < {now} - :age
) returning id

-- name: worker_prune
-- Who left before the oldest job came is named by no attempt; the others keep their row, hence their name. With them
-- goes which key they came with.
delete from worker_key where worker in (
    select id from worker w where w.gone_at < {now} - :age
      and w.gone_at < coalesce((select created_at from job order by id limit 1) - 60000, {now})
      and not exists (select 1 from task t where t.state = 'running' and t.worker = w.id)
    order by id limit :wanted
);
delete from worker where id in (
    select id from worker w where w.gone_at < {now} - :age
      and w.gone_at < coalesce((select created_at from job order by id limit 1) - 60000, {now})
      and not exists (select 1 from task t where t.state = 'running' and t.worker = w.id)
    order by id limit :wanted
) returning id

-- name: job_gone_prune
delete from archive where job_id in (
    select g.job_id from job_gone g where g.cleared_at < {now} - :age
      and not exists (select 1 from job j where j.id = g.job_id)
      and not exists (select 1 from artifact a where a.job_id = g.job_id)
      and not exists (select 1 from job_after f where f.after_id = g.job_id)
    order by g.cleared_at limit :wanted
);
delete from job_gone where job_id in (
    select g.job_id from job_gone g where g.cleared_at < {now} - :age
      and not exists (select 1 from job j where j.id = g.job_id)
      and not exists (select 1 from artifact a where a.job_id = g.job_id)
      and not exists (select 1 from job_after f where f.after_id = g.job_id)
    order by g.cleared_at limit :wanted
) returning job_id

-- name: watched_prune
delete from watched where path in (
    select path from watched where at < (select max(at) from watched) - :age order by at limit :wanted
) returning path
