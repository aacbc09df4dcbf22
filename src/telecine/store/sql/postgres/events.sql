-- name: event_lock
-- Lasts for this transaction only, so a pooled connection can keep nothing.
select pg_advisory_xact_lock(hashtext('telecine.events:' || current_schema()))::text as mine

-- name: event_number
-- Gives committed events their public number. An event of a transaction that is still open is not visible here and
-- gets its number later. Only after `event_lock`, in the same transaction: this statement must see what the reader
-- before us has numbered.
with fresh as materialized (
    select id, row_number() over (order by id) as n from (
        select id from event where seq is null order by id limit :wanted
    ) as unnumbered
), counter as (
    update event_counter set seq = seq + (select count(*) from fresh) where exists (select 1 from fresh)
    returning seq - (select count(*) from fresh) as base
), numbered as (
    update event e set seq = counter.base + fresh.n from fresh, counter where e.id = fresh.id returning 1
)
select count(*)::integer as numbered from numbered

-- name: event_after
select seq, at, kind, job_id, task_id, stage, token, worker, data::text as data from event
where seq > :seq::bigint and (:job_id::bigint is null or job_id = :job_id) order by seq limit :wanted

-- name: event_edge
select seq as newest, pruned from event_counter

-- name: event_of_job
select seq, at, kind, job_id, task_id, stage, token, worker, data::text as data from event
where job_id = :job_id order by id limit :wanted

-- name: event_say
insert into event (at, kind, job_id, task_id, stage, token, worker, data)
values ({now}, :kind, :job_id, :task_id, :stage, :token, :worker, :data::text::jsonb)
