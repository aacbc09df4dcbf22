-- name: keep_artifacts
-- First the bytes of what is replaced.
insert into freed (key, at) select key, {now} from artifact
where task_id = :task_id and name = :name and key is not null and key is not :key on conflict do nothing;
insert into artifact (job_id, task_id, token, name, stage, position, stage_version, key, size, sha256, value, facts,
    created_at)
values (:job_id, :task_id, :token, :name, :stage, :position, :stage_version, :key, :size, :sha, :value, :facts, {now})
on conflict (task_id, name) do update set token = excluded.token, stage_version = excluded.stage_version,
    key = excluded.key, size = excluded.size, sha256 = excluded.sha256, value = excluded.value, facts = excluded.facts,
    created_at = excluded.created_at

-- name: keep_tasks
update task set kept = kept + 1, losses = case when :moved then 0 else losses end,
    stops_at = min(coalesce({now} + stall_ms, claimed_at + limit_ms), coalesce(claimed_at + limit_ms, {now} + stall_ms))
where id = :id

-- name: kept_of
-- With the last token before a person's retry: what was kept with it or an earlier one is of another generation.
select name, token, key, size, sha256, value, facts, coalesce((
    select max(a.token) from attempt a join job j on j.id = a.job_id
    where a.task_id = :task_id and a.generation < j.generation), 0) as retried
from artifact where task_id = :task_id and stage_version = :stage_version order by name

-- name: kept_named
select name, sha256, value from artifact
where task_id = :task_id and name in (select value from json_each(:names)) and stage_version = :stage_version

-- name: kept_by_job
-- All that a job has kept, at every position; what was carried over to its version is not its own.
select id, name, token, key, size, sha256, value, facts, stage, position, stage_version from artifact
where job_id = :job_id and task_id is not null and (:all_stages or stage in (select value from json_each(:stages)))
order by stage, position, name

-- name: carried_by_job
-- What the version that a job has published took over from the one before it.
select id, name, token, key, size, sha256, null as value, facts, stage, position
from artifact where job_id = :job_id and task_id is null and version_id is not null order by stage, position, name, id

-- name: published_of
select a.id, a.name, a.token, a.key, a.size, a.sha256, null as value, a.facts, a.stage, a.position
from subject s join artifact a on a.version_id = s.current_version
where s.kind = :kind and s.id = :id order by a.stage, a.position, a.name, a.id

-- name: carry_hold
select a.id, v.kind, v.subject_id from artifact a join subject_version v on v.id = a.version_id
where a.id in (select value from json_each(:ids)) order by a.id

-- name: fleet_of
select w.slots, w.labels from worker w
where w.gone_at is null and w.mode = 'active' and w.revoked_at is null and w.beat_at > {now} - :within
  and exists (select 1 from json_each(w.lanes) l where substr(l.value, 1, length(:flow) + 1) = :flow || '/')

-- name: log_add_lines
insert into job_log (job_id, task_id, token, at, kind, level, message, data)
select job_id, id, token, {now}, :kind, :level, :message, :data from task where id = :task_id and token = :token
