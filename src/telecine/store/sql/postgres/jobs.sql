-- name: submit
-- New jobs that are alike, with their stages, first tasks and events, thousands at once: what is their own comes by
-- column, what they share comes once. Each job has each of the stages, in their order. `rowless`: each is one plain task, due
-- at once, that says all there is to say.
with clock as materialized (
    select {now} as now
), alike as materialized (
    select * from unnest(:stages_number::smallint[], :stages_name::word[], :stages_state::word[], :stages_waits::smallint[],
        :stages_total::integer[], :stages_lane::word[], :stages_boost::bigint[], :stages_max_attempts::integer[],
        :stages_stall_ms::bigint[], :stages_limit_ms::bigint[])
        as x (number, name, state, waits, total, lane, boost, max_attempts, stall_ms, limit_ms)
), r as (
    insert into task (id, job_id, stage, position, lane, state, ready_at, rank, max_attempts, stall_ms, limit_ms, flow_id,
        owner, priority, phase, spec)
    select x.id, x.id, a.number, 0, a.lane, a.state, (select now from clock), (select now from clock) - a.boost,
        a.max_attempts, a.stall_ms, a.limit_ms, :flow_id, coalesce(x.owner, :same_owner), :priority, :phase, x.spec::jsonb
    from unnest(:ids::bigint[], :jobs_owner::text[], :jobs_spec::line[]) as x (id, owner, spec) cross join alike a where :rowless::boolean
), j as (
    insert into job_row (id, flow_id, flow, owner, subject_kind, subject_id, status, phase, priority, spec, dedupe_key, run_at,
        waits, created_at)
    select x.id, :flow_id, :flow, coalesce(x.owner, :same_owner), x.subject_kind, x.subject_id, 'pending', :phase, :priority, x.spec::jsonb,
        x.dedupe_key, x.run_at, coalesce(x.waits, 0), (select now from clock)
    from unnest(:jobs_id::bigint[], :jobs_owner::text[], :jobs_subject_kind::text[], :jobs_subject_id::text[],
        :jobs_spec::line[], :jobs_dedupe_key::text[], :jobs_run_at::bigint[], :jobs_waits::integer[])
        as x (id, owner, subject_kind, subject_id, spec, dedupe_key, run_at, waits)
    where not :rowless::boolean
), s as (
    insert into stage_row (job_id, number, name, state, waits, total, remaining, ended_at)
    select x.id, a.number, a.name, a.state, a.waits, a.total, a.total, case when a.state = 'skipped' then (select now from clock) end
    from unnest(:ids::bigint[]) as x (id) cross join alike a where not :rowless::boolean
), t as (
    -- A task that is ready at once is due now, or at the job's run_at: then it is parked until then. The first has the number of
    -- the job, so that of jobs which are due at the same moment the first to come is the first to begin.
    insert into task (id, job_id, stage, position, lane, state, parked, ready_at, rank, max_attempts, stall_ms, limit_ms)
    select case when a.number = (select min(number) from alike where total > 0) then a.job_id else nextval('job_id') end,
        a.job_id, a.number, 0, a.lane, a.state,
        a.state = 'ready' and a.due > (select now from clock),
        case when a.state = 'ready' then a.due end, case when a.state = 'ready' then a.due - a.boost end,
        a.max_attempts, a.stall_ms, a.limit_ms
    from unnest(:ids::bigint[], :jobs_run_at::bigint[]) as x (id, run_at)
    -- Lateral, with an offset: job by job, so that ids are given in the order of the stages.
    cross join lateral (
        select x.id as job_id, greatest(x.run_at, (select now from clock)) as due, alike.* from alike
        where alike.total > 0 offset 0
    ) a where not :rowless::boolean
)
-- Whether it waits for other jobs is told here: by the time that somebody reads this it may no longer.
insert into unnumbered (at, kind, data, job_ids)
select (select now from clock), 'job.created', null, x.ids[n.first : n.first + 4999]
from (select :ids::bigint[] as ids) x cross join generate_series(1, cardinality(x.ids), 5000) as n (first)
where :jobs_waits::text is null
union all
select (select now from clock), 'job.created', jsonb_build_object('waits', x.waits), array_agg(x.id)
from unnest(:ids::bigint[], :jobs_waits::integer[]) as x (id, waits) where x.waits is not null group by x.waits

-- name: submit_lone
-- The same for one job that needs no row: its arrays would cost more than its rows.
with t as (
    insert into task (id, job_id, stage, position, lane, state, ready_at, rank, max_attempts, stall_ms, limit_ms, flow_id,
        owner, priority, phase, spec)
    values (:id, :id, :number, 0, :lane, :state, {now}, {now} - :boost::bigint, :max_attempts, :stall_ms,
        :limit_ms, :flow_id, :owner, :priority, :phase, :spec::text::jsonb)
)
insert into unnumbered (at, kind, job_ids) values ({now}, 'job.created', array[:id::bigint])

-- name: after_add
insert into job_after (job_id, after_id) select * from unnest(:after_job_id::bigint[], :after_after_id::bigint[])

-- name: job_row_add
-- Gives jobs that are only a task the rows that others have, before `job_hold`. Their tasks are locked first, as everybody does: of two
-- who want this at once the second waits here, and then finds it done.
with bare as materialized (
    select id, stage, flow_id, owner, priority, phase, spec, outcome, lane, state, token, ready_at, claimed_at, ended_at from task
    where id = any (:ids::bigint[]) and flow_id is not null order by id for no key update
), s as (
    insert into stage_row (job_id, number, name, state, waits, total, remaining, ended_at)
    select id, stage, split_part(split_part(lane, '/', 2), '@', 1), case when state = 'running' then 'ready' else state end, 0, 1,
        case when state = 'done' then 0 else 1 end, ended_at
    from bare
), j as (
    insert into job_row (id, flow_id, created_at, priority, flow, owner, spec, status, phase, outcome, started_at, ended_at)
    select id, flow_id, ready_at, priority, split_part(lane, '/', 1), owner, spec,
        case when outcome is not null then outcome when token > 0 then phase else 'pending' end, phase, outcome, claimed_at, ended_at
    from bare
)
update task t set flow_id = null, owner = null, priority = null, phase = null, spec = null, outcome = null
from bare where t.id = bare.id returning t.id

-- name: job_hold
-- Locks jobs in id order and returns them as they are now.
select id, flow_id, flow, owner, subject_kind, subject_id, status, phase, outcome, priority, dedupe_key, run_at, waits,
    cancel_asked, failing, stopped, version, generation, warnings, created_at, {now} as now
from job_row where id = any (:ids::bigint[]) order by id for no key update

-- name: stages_of
-- A statement of its own, after the one that locked the jobs: in the same one it would still see the past.
select job_id, number, state, waits, total, remaining, failed, cancelled from stage
where job_id = any (:ids::bigint[]) order by job_id, number

-- name: job_cancel
update job_row set cancel_asked = true, error = :error::text::jsonb where id = :id

-- name: job_edit
update job_row set priority = :priority, run_at = :run_at, version = version + 1 where id = :id

-- name: task_hold_all
-- What waits or runs of a job, locked in id order, before the job itself.
select id from task where job_id = :job_id and flow_id is null and state in ('ready', 'running') order by id for no key update

-- name: task_rerank
-- The rank keeps its ready time and moves only by what was edited; what runs may come back. What became ready after
-- `task_hold_all` and is being claimed right now is left alone: its claim waits for the job that we hold.
with free as materialized (
    select id from task where job_id = :job_id and flow_id is null and state in ('ready', 'running') order by id for no key update skip locked
)
update task t set rank = t.rank + x.shift from unnest(:stages_number::smallint[], :stages_shift::bigint[]) as x (number, shift)
where t.id = any (array(select id from free)) and t.stage = x.number

-- name: task_reschedule
-- Only what has never begun waits for the job's run_at; a retry keeps the time that its event announced. What is being
-- claimed right now has begun.
with free as materialized (
    select id from task where job_id = :job_id and flow_id is null and state = 'ready' and token = 0 order by id for no key update skip locked
)
update task set rank = rank - ready_at + greatest(:run_at::bigint, {now}), ready_at = greatest(:run_at::bigint, {now}),
    parked = :run_at::bigint > {now}
where id = any (array(select id from free))

-- name: dedupe_find
select id, dedupe_key from job_row
where owner = :owner and dedupe_key = any (:keys::text[]) and outcome is null

-- name: key_put
insert into idempotency (owner, key, digest, job_id, created_at)
values (:owner, :key, :digest, :job_id, {now}) on conflict do nothing returning job_id

-- name: key_get
select digest, job_id from idempotency where owner = :owner and key = :key

-- name: after_known
select id, owner, outcome from job where id = any (:ids::bigint[])
union all
select job_id, owner, outcome from archive where job_id = any (:ids::bigint[])

-- name: after_ended
-- Jobs that wait for one that has ended. Found again by every sweep until it is resolved.
select a.job_id, a.after_id, coalesce(j.outcome, r.outcome, 'gone') as outcome
from job_after a left join lateral (select id, outcome from job where id = a.after_id limit 1) j on true left join archive r on r.job_id = a.after_id
where j.id is null or j.outcome is not null
order by a.job_id limit :wanted

-- name: after_these
select a.job_id, a.after_id, j.outcome from job_after a cross join lateral (select outcome from job where id = a.after_id limit 1) j
where a.after_id = any (:ids::bigint[]) and j.outcome is not null order by a.job_id limit :wanted

-- name: after_resolve
-- Answers with what was really still waited for: somebody else may have resolved it meanwhile.
with gone as (
    delete from job_after where job_id = :job_id and after_id = any (:after::bigint[]) returning after_id
), left_over as (
    update job_row set waits = waits - (select count(*) from gone)::integer where id = :job_id returning waits
)
select gone.after_id, left_over.waits from gone cross join left_over

-- name: halting
select id from job_row where (cancel_asked or failing) and outcome is null
  and exists (select 1 from task t where t.job_id = job_row.id and t.flow_id is null and t.state in ('new', 'ready')) order by id limit :wanted

-- name: flow_put
insert into flow (name, version, digest, graph, paused, registered_at)
select :name, :version, :digest, :graph::text::jsonb,
    coalesce((select bool_or(paused) from flow where name = :name), false), {now}
on conflict (name, digest) do update set version = excluded.version, registered_at = excluded.registered_at
returning id

-- name: flow_get
select id, name, version, graph::text as graph, paused from flow where id = :id

-- name: flow_newest
select id from flow where name = :name order by registered_at desc, id desc limit 1

-- name: flow_list
select distinct on (name) id, name, version, graph::text as graph, paused, registered_at from flow
order by name, registered_at desc, id desc

-- name: flow_pause
update flow set paused = :paused where name = :name returning id

-- name: subject_new
-- One that was deleted is there again: this comes first, and waits for whoever is freeing its bytes.
with x as materialized (
    select * from unnest(:subjects_kind::text[], :subjects_id::text[], :subjects_owner::text[]) as x (kind, id, owner)
), revived as materialized (
    update subject_gone g set cleared_at = {now} from x
    where g.kind = x.kind and g.id = x.id and g.cleared_at is null returning 1
)
insert into subject (kind, id, owner, created_at, updated_at) select x.kind, x.id, x.owner, {now}, {now}
from x where (select count(*) from revived) >= 0 order by x.kind, x.id on conflict do nothing

-- name: subject_known
-- As they are after that; nobody can remove them until this transaction has ended.
select kind, id, owner from subject
where (kind, id) in (select * from unnest(:kinds::text[], :ids::text[])) order by kind, id for key share

-- name: subject_put
insert into subject (kind, id, owner, facts, created_at, updated_at)
select kind, id, owner, facts::jsonb, {now}, {now}
from unnest(:subjects_kind::text[], :subjects_id::text[], :subjects_owner::text[], :subjects_facts::line[])
    as x (kind, id, owner, facts)
on conflict (kind, id) do update set facts = subject.facts || excluded.facts, updated_at = excluded.updated_at

-- name: subject_get
select kind, id, owner, facts::text as facts, current_version from subject where kind = :kind and id = :id

-- name: publish
-- The flip: a version with this job's artifacts, and those that are carried over, becomes the subject's current one.
with o as (
    update subject_version set left_at = {now}
    where id = (select current_version from subject where kind = :kind and id = :id)
), v as (
    insert into subject_version (kind, subject_id, number, job_id, published_at)
    select :kind, :id, coalesce(max(number), 0) + 1, :job_id, {now} from subject_version
    where kind = :kind and subject_id = :id
    returning id
), a as (
    update artifact set version_id = (select id from v) where job_id = :job_id and task_id is not null and key is not null
      and id not in (select unnest(:leave::bigint[]))
), l as (
    -- Working files go: their bytes are freed, and a task that has nothing else has kept nothing.
    delete from artifact where id = any (:leave::bigint[]) and job_id = :job_id and task_id is not null
      and key is not null and version_id is null returning key, task_id
), f as (
    insert into freed (key, at) select distinct key, {now} from l on conflict do nothing
), t as (
    update task set kept = 0 where id = any (array(select task_id from l)) and not exists (
        select 1 from artifact x where x.task_id = task.id
          and (x.id not in (select unnest(:leave::bigint[])) or x.version_id is not null or x.key is null))
), c as (
    insert into artifact (job_id, token, name, stage, position, stage_version, key, size, sha256, facts, version_id,
        created_at)
    select :job_id, x.token, x.name, x.stage, x.position, x.stage_version, x.key, x.size, x.sha256, x.facts, v.id, {now}
    from artifact x cross join v where x.id = any (:carry::bigint[]) and x.job_id <> :job_id and x.key is not null
)
update subject set current_version = (select id from v), updated_at = {now} where kind = :kind and id = :id
returning current_version

-- name: subject_hold
-- Whoever publishes, rolls back or frees a version of this subject waits here.
select current_version from subject s where kind = :kind and id = :id
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)
for no key update

-- name: version_find
select v.id, v.number, v.keep, exists (select 1 from artifact a where a.version_id = v.id) as whole
from subject_version v where v.kind = :kind and v.subject_id = :id and v.number = :number

-- name: version_show
with o as (
    update subject_version set left_at = {now}
    where id = (select current_version from subject where kind = :kind and id = :id)
), v as (
    update subject_version set left_at = null where id = :version
)
update subject set current_version = :version, updated_at = {now} where kind = :kind and id = :id returning current_version

-- name: version_keep
update subject_version set keep = :keep where id = :version returning id

-- name: job_flow
select flow_id from job where id = :id

-- name: after_awaited
select exists (select 1 from job_after where after_id = any (:ids::bigint[])) as found
