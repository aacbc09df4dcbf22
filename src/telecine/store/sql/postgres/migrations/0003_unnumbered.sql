-- Events wait for their numbers in a table of their own, many in a row; `event` is only ever added to.
-- Rows stay where they are: two indexes are built, and nothing is copied.

-- In the order in which everybody takes them: who holds some of them ends first.
lock table task, job, stage, event in access exclusive mode;

-- Events as transactions write them: what one statement says alike of many tasks is one row. They get their numbers after
-- the commit, from whichever reader comes first, who moves them to `event`.
create table unnumbered (
    id bigint generated always as identity primary key,
    at bigint not null,
    kind text not null,
    worker bigint,
    data jsonb,
    -- An event for each place. Null: one event, of no job.
    job_ids bigint[],
    task_ids bigint[],
    stages smallint[],
    tokens integer[],
    events integer not null generated always as (coalesce(cardinality(job_ids), 1)) stored
-- Rows live for a moment: kept as they are if they fit a page, and cleared away early. The room is not given back, since
-- whoever gives it back locks the table.
) with (toast_tuple_target = 8160, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    vacuum_truncate = off);

with late as (
    delete from event where seq is null returning id, at, kind, job_id, task_id, stage, token, worker, data
)
insert into unnumbered (at, kind, worker, data, job_ids, task_ids, stages, tokens)
select at, kind, worker, data, array[job_id], array[task_id], array[stage], array[token] from late order by id;

drop index event_unnumbered;
drop index event_seq;
alter table event drop column id;
alter table event add primary key (seq);

-- A job that is one task has no stage row: its task says it all, and the view `stage` shows both alike. Jobs from before keep
-- theirs, and go the long way.

alter table stage rename to stage_row;
alter table stage_row rename constraint stage_pkey to stage_row_pkey;

alter table task add column alone boolean not null default false;

-- An only task has the first place, by which it is found.
create view stage as
select job_id, number, name, state, waits, total, remaining, failed, cancelled, ended_at from stage_row
union all
select job_id, stage, split_part(split_part(lane, '/', 2), '@', 1),
    case when state = 'running' then 'ready' else state end, 0::smallint, 1,
    case when state in ('new', 'ready', 'running') then 1 else 0 end, (state = 'error')::integer,
    (state = 'cancelled')::integer, ended_at
from task where alone and stage = 0 and position = 0;

-- A job is in one index of its flow while it is open, and in another when it has ended: each costs one entry.

drop index job_open;
drop index job_flow;
create index job_open on job (flow_id, id) where outcome is null;
create index job_flow on job (flow_id, id) where outcome is not null;
