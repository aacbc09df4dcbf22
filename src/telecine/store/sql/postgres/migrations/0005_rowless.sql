-- A job that is one plain task has no row of its own until somebody asks something of it, and an attempt that ended well at once
-- has none: the task says both, under the number of the job. Jobs from before keep their rows, and get the stage rows that those of
-- one task did without. Of the indexes that are built, one goes over all tasks, the others are empty at first.

-- In the order in which everybody takes them: who holds some of them ends first.
lock table task, job, stage_row, attempt in access exclusive mode;

drop view stage;
insert into stage_row (job_id, number, name, state, waits, total, remaining, failed, cancelled, ended_at)
select job_id, stage, split_part(split_part(lane, '/', 2), '@', 1),
    case when state = 'running' then 'ready' else state end, 0, 1,
    case when state in ('new', 'ready', 'running') then 1 else 0 end, (state = 'error')::integer,
    (state = 'cancelled')::integer, ended_at
from task where alone;
alter table task drop column alone;

alter table job rename to job_row;
alter table attempt rename to attempt_row;
-- Their constraints have the names that they would have if the tables had always been called so.
do $$
declare
    c record;
begin
    for c in
        select t.relname, k.conname from pg_constraint k join pg_class t on t.oid = k.conrelid
        where t.relnamespace = current_schema()::regnamespace and t.relname in ('job_row', 'stage_row', 'attempt_row')
          and left(k.conname, length(t.relname) + 1) <> t.relname || '_'
    loop
        execute format('alter table %I rename constraint %I to %I', c.relname, c.conname,
            c.relname || substr(c.conname, length(c.relname) - 3));
    end loop;
end $$;

select setval('job_id', greatest(j.last_value, t.last_value), j.is_called or t.is_called) from job_id j, task_id t;
drop sequence task_id;

alter table task
    add column flow_id bigint,
    add column owner text,
    add column priority smallint,
    add column phase text,
    add column spec jsonb,
    add column outcome text,
    add column done_by bigint,
    add column digest text;

-- What seven checks said, in one: each is read anew by every statement that writes here.
alter table task
    drop constraint task_token_check,
    drop constraint task_tries_check,
    drop constraint task_state_check,
    drop constraint task_check,
    drop constraint task_check1,
    drop constraint task_check2,
    drop constraint task_check3,
    add constraint task_check check (token >= 0 and tries >= 0 and case state
        when 'ready' then ready_at is not null and rank is not null and lease_until is null and worker is null and outcome is null
        when 'running' then lease_until is not null and worker is not null and not parked and outcome is null
        when 'done' then lease_until is null and worker is null and not parked and (flow_id is null) = (outcome is null)
            and (flow_id is null or outcome = 'completed' and ended_at is not null and done_by is not null)
        else state in ('new', 'error', 'cancelled', 'skipped') and lease_until is null and worker is null and not parked
            and flow_id is null and outcome is null end
        and (flow_id is null or id = job_id and token <= 1 and not parked and owner is not null and phase is not null
            and spec is not null and priority is not null and priority between 0 and 10));

-- One that is its job is found by that number.
drop index task_place;
create unique index task_place on task (job_id, stage, position) with (fillfactor = 35) where flow_id is null;
-- Serve lists, like those of `job_row`, for jobs that have no row there. Of those that run there are never more than slots.
create index task_owner on task (owner, id) with (fillfactor = 50) where owner <> '';
create index task_open on task (flow_id, id) where flow_id is not null and state = 'ready';
create index task_flow on task (flow_id, id) where outcome is not null;
create index task_ended on task (ended_at, id) where outcome is not null;

-- Jobs, stages and tasks as if each job had its rows. Who looks for one by its number finds it by an index in each half, if the
-- number is a parameter, or a column outside of a lateral subquery with a limit or an offset; a join or an order does not reach
-- the second half. In `job_task` a task is found by the number of its job, in `rowless` are the jobs without a row: if they have
-- ended, they have completed.
create view rowless as
select id, flow_id, ready_at as created_at, null::bigint as run_at, priority, split_part(lane, '/', 1) as flow, owner,
    null::text as subject_kind, null::text as subject_id, null::text as dedupe_key, spec, 1 as version, 1 as generation, 0 as waits,
    0 as warnings, false as cancel_asked, false as failing, false as stopped,
    case when outcome is not null then outcome when token > 0 then phase else 'pending' end as status, phase, outcome,
    claimed_at as started_at, ended_at, null::jsonb as error, state
from task where flow_id is not null;

create view job as
select id, flow_id, created_at, run_at, priority, flow, owner, subject_kind, subject_id, dedupe_key, spec, version, generation,
    waits, warnings, cancel_asked, failing, stopped, status, phase, outcome, started_at, ended_at, error
from job_row
union all
select id, flow_id, created_at, run_at, priority, flow, owner, subject_kind, subject_id, dedupe_key, spec, version, generation,
    waits, warnings, cancel_asked, failing, stopped, status, phase, outcome, started_at, ended_at, error
from rowless;

create view stage as
select job_id, number, name, state, waits, total, remaining, failed, cancelled, ended_at from stage_row
union all
select id, stage, split_part(split_part(lane, '/', 2), '@', 1), case when state = 'running' then 'ready' else state end,
    0::smallint, 1, case when state = 'done' then 0 else 1 end, 0, 0, ended_at
from task where flow_id is not null;

create view job_task as
select id, job_id, stage, position, optional, lane, input, max_attempts, ready_at, token, tries, losses, releases, kept, best,
    parked, state, worker, claimed_at, lease_until, ended_at, progress, note, result, error
from task where flow_id is null
union all
select id, id, stage, position, optional, lane, input, max_attempts, ready_at, token, tries, losses, releases, kept, best,
    parked, state, worker, claimed_at, lease_until, ended_at, progress, note, result, error
from task where flow_id is not null;

create view attempt as
select task_id, token, job_id, generation, try, worker, outcome, digest, state, ready_at, error, silent_ms, started_at, ended_at
from attempt_row
union all
select id, token, job_id, 1, tries, done_by, 'done'::text, coalesce(digest, 'done'), 'done'::text, null::bigint, null::jsonb,
    null::bigint, claimed_at, ended_at
from task where done_by is not null;
