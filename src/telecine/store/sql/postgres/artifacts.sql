-- name: keep
with a as (
    insert into artifact (job_id, task_id, token, name, stage_version, key, size, sha256, value, facts, created_at)
    select x.job_id, x.task_id, x.token, x.name, x.stage_version, x.key, x.size, x.sha256, x.value::jsonb, x.facts::jsonb, {now}
    from unnest(:artifacts_job_id::bigint[], :artifacts_task_id::bigint[], :artifacts_token::integer[],
        :artifacts_name::text[], :artifacts_stage_version::integer[], :artifacts_key::text[], :artifacts_size::bigint[],
        :artifacts_sha::text[], :artifacts_value::text[], :artifacts_facts::text[])
        as x (job_id, task_id, token, name, stage_version, key, size, sha256, value, facts)
    on conflict (task_id, name) do update set token = excluded.token, stage_version = excluded.stage_version,
        key = excluded.key, size = excluded.size, sha256 = excluded.sha256, value = excluded.value, facts = excluded.facts,
        created_at = excluded.created_at
)
-- What is recorded outlives the lease, so it is progress; it ends a row of losses only if it is news.
update task set kept = task.kept + 1, losses = case when x.moved then 0 else task.losses end, stops_at = least({now} + task.stall_ms, task.claimed_at + task.limit_ms)
from unnest(:tasks_id::bigint[], :tasks_moved::boolean[]) as x (id, moved) where task.id = x.id

-- name: kept_of
select name, token, key, size, sha256, value::text as value, facts::text as facts from artifact
where task_id = :task_id and stage_version = :stage_version order by name

-- name: log_add
insert into job_log (job_id, task_id, token, at, kind, level, message, data)
select t.job_id, x.task_id, x.token, {now}, x.kind, x.level, x.message, x.data::jsonb
from unnest(:lines_task_id::bigint[], :lines_token::integer[], :lines_kind::text[], :lines_level::text[],
    :lines_message::text[], :lines_data::text[]) with ordinality as x (task_id, token, kind, level, message, data, n)
join task t on t.id = x.task_id and t.token = x.token order by x.n
