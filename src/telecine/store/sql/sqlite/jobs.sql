-- name: submit_jobs
insert into job (id, flow_id, flow, owner, subject_kind, subject_id, status, phase, priority, spec, dedupe_key, run_at,
    waits, created_at)
values (:id, :flow_id, :flow, coalesce(:owner, :same_owner), :subject_kind, :subject_id, 'pending', :phase, :priority, :spec,
    :dedupe_key, :run_at, coalesce(:waits, 0), {now});
insert into event (at, kind, job_id, data)
values ({now}, 'job.created', :id, case when :waits is not null then json_object('waits', :waits) end)

-- name: after_add_after
insert into job_after (job_id, after_id) values (:job_id, :after_id)

-- name: submit_stages
-- Each job has each of the stages; the jobs are there already.
insert into stage (job_id, number, name, state, waits, total, remaining, ended_at)
select value, :number, :name, :state, :waits, :total, :total, case when :state = 'skipped' then {now} end from json_each(:ids);
insert into task (job_id, stage, position, lane, state, parked, ready_at, rank, max_attempts, stall_ms, limit_ms)
select j.id, :number, 0, :lane, :state, :state = 'ready' and coalesce(j.run_at > {now}, 0),
    case when :state = 'ready' then max(coalesce(j.run_at, 0), {now}) end,
    case when :state = 'ready' then max(coalesce(j.run_at, 0), {now}) - :boost end,
    :max_attempts, :stall_ms, :limit_ms
from json_each(:ids) as i cross join job j on j.id = i.value where :total > 0

-- name: submit_lone
-- The same for one job of one stage, of which there is no more to say.
insert into job (id, flow_id, flow, owner, status, phase, priority, spec, created_at)
values (:id, :flow_id, :flow, :owner, 'pending', :phase, :priority, :spec, {now});
insert into event (at, kind, job_id) values ({now}, 'job.created', :id);
insert into stage (job_id, number, name, state, waits, total, remaining)
values (:id, :number, :name, :state, 0, 1, 1);
insert into task (job_id, stage, position, lane, state, ready_at, rank, max_attempts, stall_ms, limit_ms)
values (:id, :number, 0, :lane, :state, {now}, {now} - :boost, :max_attempts, :stall_ms, :limit_ms)

-- name: job_row_add
-- Here every job has its row.
select id from job where id in (select value from json_each(:ids)) and false

-- name: job_hold
select id, flow_id, flow, owner, subject_kind, subject_id, status, phase, outcome, priority, dedupe_key, run_at, waits,
    cancel_asked, failing, stopped, version, generation, warnings, created_at, {now} as now
from job where id in (select value from json_each(:ids)) order by id

-- name: stages_of
select job_id, number, state, waits, total, remaining, failed, cancelled from stage
where job_id in (select value from json_each(:ids)) order by job_id, number

-- name: job_cancel
update job set cancel_asked = 1, error = :error where id = :id

-- name: job_edit
update job set priority = :priority, run_at = :run_at, version = version + 1 where id = :id

-- name: task_hold_all
select id from task where job_id = :job_id and state in ('ready', 'running') order by id

-- name: task_rerank_stages
update task set rank = rank + :shift where job_id = :job_id and stage = :number and state in ('ready', 'running')

-- name: task_reschedule
update task set rank = rank - ready_at + max(:run_at, {now}), ready_at = max(:run_at, {now}), parked = :run_at > {now}
where job_id = :job_id and state = 'ready' and token = 0

-- name: dedupe_find
select id, dedupe_key from job
where owner = :owner and dedupe_key in (select value from json_each(:keys)) and outcome is null

-- name: key_put
insert into idempotency (owner, key, digest, job_id, created_at)
values (:owner, :key, :digest, :job_id, {now}) on conflict do nothing returning job_id

-- name: key_get
select digest, job_id from idempotency where owner = :owner and key = :key

-- name: after_known
select id, owner, outcome from job where id in (select value from json_each(:ids))
union all
select job_id, owner, outcome from archive where job_id in (select value from json_each(:ids))

-- name: after_ended
select a.job_id, a.after_id, coalesce(j.outcome, r.outcome, 'gone') as outcome
from job_after a left join job j on j.id = a.after_id left join archive r on r.job_id = a.after_id
where j.id is null or j.outcome is not null
order by a.job_id limit :wanted

-- name: after_these
select a.job_id, a.after_id, j.outcome from job_after a join job j on j.id = a.after_id
where a.after_id in (select value from json_each(:ids)) and j.outcome is not null order by a.job_id limit :wanted

-- name: after_resolve
-- Answers with what was really still waited for: somebody else may have resolved it meanwhile.
update job set waits = waits - (
    select count(*) from job_after where job_id = :job_id and after_id in (select value from json_each(:after))
) where id = :job_id;
delete from job_after where job_id = :job_id and after_id in (select value from json_each(:after))
returning after_id, (select waits from job where id = :job_id) as waits

-- name: halting
select id from job where (cancel_asked or failing) and outcome is null
  and exists (select 1 from task t where t.job_id = job.id and t.state in ('new', 'ready')) order by id limit :wanted

-- name: flow_put
insert into flow (name, version, digest, graph, paused, registered_at)
select :name, :version, :digest, :graph, coalesce((select max(paused) from flow where name = :name), 0), {now} where true
on conflict (name, digest) do update set version = excluded.version, registered_at = excluded.registered_at
returning id

-- name: flow_get
select id, name, version, graph, paused from flow where id = :id

-- name: flow_newest
select id from flow where name = :name order by registered_at desc, id desc limit 1

-- name: flow_list
select id, name, version, graph, paused, registered_at from flow f
where id = (select id from flow g where g.name = f.name order by registered_at desc, id desc limit 1) order by name

-- name: flow_pause
update flow set paused = :paused where name = :name returning id

-- name: subject_new_subjects
update subject_gone set cleared_at = {now} where kind = :kind and id = :id and cleared_at is null;
insert into subject (kind, id, owner, created_at, updated_at) values (:kind, :id, :owner, {now}, {now}) on conflict do nothing

-- name: subject_known
select s.kind, s.id, s.owner from json_each(:kinds) k join json_each(:ids) i on i.key = k.key
join subject s on s.kind = k.value and s.id = i.value

-- name: subject_put_subjects
insert into subject (kind, id, owner, facts, created_at, updated_at) values (:kind, :id, :owner, :facts, {now}, {now})
on conflict (kind, id) do update set updated_at = excluded.updated_at, facts = (
    -- As `||` does on PostgreSQL: new keys win, nothing is merged deeper. JSON's true, false and null come as 1, 0, null.
    select json_group_object(key, json(case type
        when 'true' then 'true' when 'false' then 'false' when 'null' then 'null'
        when 'text' then json_quote(value) else value end))
    from (
        select key, value, type from json_each(subject.facts) where key not in (select key from json_each(excluded.facts))
        union all
        select key, value, type from json_each(excluded.facts)
    )
)

-- name: subject_get
select kind, id, owner, facts, current_version from subject where kind = :kind and id = :id

-- name: publish
update subject_version set left_at = {now}
where id = (select current_version from subject where kind = :kind and id = :id);
insert into subject_version (kind, subject_id, number, job_id, published_at)
select :kind, :id, coalesce(max(number), 0) + 1, :job_id, {now} from subject_version where kind = :kind and subject_id = :id;
-- Working files go: their bytes are freed, and a task that has nothing else has kept nothing.
insert into freed (key, at) select key, {now} from artifact
where id in (select value from json_each(:leave)) and job_id = :job_id and task_id is not null and key is not null
  and version_id is null on conflict do nothing;
update task set kept = 0 where job_id = :job_id
  and id in (select task_id from artifact where id in (select value from json_each(:leave)))
  and not exists (select 1 from artifact a where a.task_id = task.id
    and (a.id not in (select value from json_each(:leave)) or a.version_id is not null or a.key is null));
delete from artifact
where id in (select value from json_each(:leave)) and job_id = :job_id and task_id is not null and key is not null
  and version_id is null;
update artifact set version_id = (select max(id) from subject_version)
where job_id = :job_id and task_id is not null and key is not null and id not in (select value from json_each(:leave));
insert into artifact (job_id, token, name, stage, position, stage_version, key, size, sha256, facts, version_id, created_at)
select :job_id, token, name, stage, position, stage_version, key, size, sha256, facts,
    (select max(id) from subject_version), {now}
from artifact where id in (select value from json_each(:carry)) and job_id <> :job_id and key is not null;
update subject set current_version = (select max(id) from subject_version), updated_at = {now} where kind = :kind and id = :id;
select current_version from subject where kind = :kind and id = :id

-- name: subject_hold
select current_version from subject s where kind = :kind and id = :id
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)

-- name: version_find
select v.id, v.number, v.keep, exists (select 1 from artifact a where a.version_id = v.id) as whole
from subject_version v where v.kind = :kind and v.subject_id = :id and v.number = :number

-- name: version_show
update subject_version set left_at = {now}
where id = (select current_version from subject where kind = :kind and id = :id);
update subject_version set left_at = null where id = :version;
update subject set current_version = :version, updated_at = {now} where kind = :kind and id = :id returning current_version

-- name: version_keep
update subject_version set keep = :keep where id = :version returning id

-- name: job_flow
select flow_id from job where id = :id

-- name: after_awaited
select exists (select 1 from job_after where after_id in (select value from json_each(:ids))) as found
