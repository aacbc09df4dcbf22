-- name: keep
with x as materialized (
    select * from unnest(:artifacts_job_id::bigint[], :artifacts_task_id::bigint[], :artifacts_token::integer[],
        :artifacts_name::text[], :artifacts_stage::text[], :artifacts_position::integer[],
        :artifacts_stage_version::integer[], :artifacts_key::text[], :artifacts_size::bigint[],
        :artifacts_sha::text[], :artifacts_value::line[], :artifacts_facts::line[])
        as x (job_id, task_id, token, name, stage, position, stage_version, key, size, sha256, value, facts)
), f as (
    -- The bytes of what is replaced.
    insert into freed (key, at) select o.key, {now} from x join artifact o on o.task_id = x.task_id and o.name = x.name
    where o.key is not null and o.key is distinct from x.key on conflict do nothing
), a as (
    insert into artifact (job_id, task_id, token, name, stage, position, stage_version, key, size, sha256, value, facts,
        created_at)
    select x.job_id, x.task_id, x.token, x.name, x.stage, x.position, x.stage_version, x.key, x.size, x.sha256,
        x.value::jsonb, x.facts::jsonb, {now} from x
    on conflict (task_id, name) do update set token = excluded.token, stage_version = excluded.stage_version,
        key = excluded.key, size = excluded.size, sha256 = excluded.sha256, value = excluded.value, facts = excluded.facts,
        created_at = excluded.created_at
)
-- What is recorded outlives the lease, so it is progress; it ends a row of losses only if it is news.
update task set kept = task.kept + 1, losses = case when x.moved then 0 else task.losses end, stops_at = least({now} + task.stall_ms, task.claimed_at + task.limit_ms)
from unnest(:tasks_id::bigint[], :tasks_moved::boolean[]) as x (id, moved) where task.id = x.id

-- name: kept_of
-- With the last token before a person's retry: what was kept with it or an earlier one is of another generation.
select name, token, key, size, sha256, value::text as value, facts::text as facts, coalesce((
    select max(a.token) from attempt_row a join job_row j on j.id = a.job_id
    where a.task_id = :task_id and a.generation < j.generation), 0) as retried
from artifact where task_id = :task_id and stage_version = :stage_version order by name

-- name: kept_named
select name, sha256, value::text as value from artifact
where task_id = :task_id and name = any (:names::text[]) and stage_version = :stage_version

-- name: kept_by_job
-- All that a job has kept, at every position; what was carried over to its version is not its own.
select id, name, token, key, size, sha256, value::text as value, facts::text as facts, stage, position, stage_version
from artifact where job_id = :job_id and task_id is not null and (:all_stages::boolean or stage = any (:stages::text[]))
order by stage, position, name

-- name: carried_by_job
-- What the version that a job has published took over from the one before it.
select id, name, token, key, size, sha256, null::text as value, facts::text as facts, stage, position
from artifact where job_id = :job_id and task_id is null and version_id is not null order by stage, position, name, id

-- name: published_of
select a.id, a.name, a.token, a.key, a.size, a.sha256, null::text as value, a.facts::text as facts, a.stage, a.position
from subject s join artifact a on a.version_id = s.current_version
where s.kind = :kind and s.id = :id order by a.stage, a.position, a.name, a.id

-- name: carry_hold
-- Artifacts of published versions, and whose they are; held so that nobody frees them meanwhile.
select a.id, v.kind, v.subject_id from artifact a join subject_version v on v.id = a.version_id
where a.id = any (:ids::bigint[]) order by a.id for share of a

-- name: fleet_of
-- The workers that could claim something of this flow now.
select w.slots, w.labels::text as labels from worker w
where w.gone_at is null and w.mode = 'active' and w.revoked_at is null and w.beat_at > {now} - :within::bigint
  and exists (select 1 from jsonb_array_elements_text(w.lanes) l (lane) where starts_with(l.lane, :flow || '/'))

-- name: log_add
insert into job_log (job_id, task_id, token, at, kind, level, message, data)
select t.job_id, x.task_id, x.token, {now}, x.kind, x.level, x.message, x.data::jsonb
from unnest(:lines_task_id::bigint[], :lines_token::integer[], :lines_kind::text[], :lines_level::text[],
    :lines_message::text[], :lines_data::line[]) with ordinality as x (task_id, token, kind, level, message, data, n)
join task t on t.id = x.task_id and t.token = x.token order by x.n
