-- name: keep_artifacts
insert into artifact (job_id, task_id, token, name, stage_version, key, size, sha256, value, facts, created_at)
values (:job_id, :task_id, :token, :name, :stage_version, :key, :size, :sha, :value, :facts, {now})
on conflict (task_id, name) do update set token = excluded.token, stage_version = excluded.stage_version,
    key = excluded.key, size = excluded.size, sha256 = excluded.sha256, value = excluded.value, facts = excluded.facts,
    created_at = excluded.created_at

-- name: keep_tasks
update task set kept = kept + 1, losses = case when :moved then 0 else losses end,
    stops_at = min(coalesce({now} + stall_ms, claimed_at + limit_ms), coalesce(claimed_at + limit_ms, {now} + stall_ms))
where id = :id

-- name: kept_of
select name, token, key, size, sha256, value, facts from artifact
where task_id = :task_id and stage_version = :stage_version order by name

-- name: log_add_lines
insert into job_log (job_id, task_id, token, at, kind, level, message, data)
select job_id, id, token, {now}, :kind, :level, :message, :data from task where id = :task_id and token = :token
