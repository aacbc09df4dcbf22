-- name: event_lock
-- Lasts for this transaction only, so a pooled connection can keep nothing.
select pg_advisory_xact_lock(hashtext('telecine.events:' || current_schema()))::text as mine

-- name: event_number
-- Gives committed events their public number. An event of a transaction that is still open is not visible here and
-- gets its number later. Only after `event_lock`, in the same transaction: this statement must see what the reader
-- before us has numbered.
-- By place (ctid), since nobody else touches an event before it has a number: the planner, who thinks that none
-- or all are without one, then has no worse way to choose.
with fresh as materialized (
    select place, row_number() over (order by id) as n from (
        select id, ctid as place from event where seq is null order by id limit :wanted
    ) as unnumbered
), counter as (
    update event_counter set seq = seq + (select count(*) from fresh) where exists (select 1 from fresh)
    returning seq - (select count(*) from fresh) as base
), numbered as (
    update event e set seq = (select base from counter) + fresh.n from fresh where e.ctid = fresh.place returning 1
)
select count(*)::integer as numbered from numbered

-- name: event_after
-- One statement, hence one moment: what is numbered, up to where, what was pruned, and whether more waits for numbers.
select c.seq as newest, c.pruned, exists (select 1 from event where seq is null) as unnumbered,
    e.seq, e.at, e.kind, e.job_id, e.task_id, s.name as stage, e.token, e.worker, e.data::text as data
from event_counter c
left join (select * from event where seq > :seq::bigint order by seq limit :wanted) e on true
left join stage s on s.job_id = e.job_id and s.number = e.stage
order by e.seq

-- name: event_after_of_job
select c.seq as newest, c.pruned, exists (select 1 from event where seq is null) as unnumbered,
    e.seq, e.at, e.kind, e.job_id, e.task_id, s.name as stage, e.token, e.worker, e.data::text as data
from event_counter c
left join (select * from event where job_id = :job_id and seq > :seq::bigint order by seq limit :wanted) e on true
left join stage s on s.job_id = e.job_id and s.number = e.stage
order by e.seq

-- name: event_say
insert into event (at, kind, job_id, task_id, stage, token, worker, data)
values ({now}, :kind, :job_id, :task_id, :stage, :token, :worker, :data::text::jsonb)
