-- name: event_lock
-- Lasts for this transaction only, so a pooled connection can keep nothing.
select pg_advisory_xact_lock(hashtext('telecine.events:' || current_schema()))::text as mine

-- name: event_number
-- Gives committed events their public number. An event of a transaction that is still open is not visible here and
-- gets its number later. Only after `event_lock`, in the same transaction: this statement must see what the reader
-- before us has numbered.
-- `wanted` or a little more, since rows are taken whole: who gets less knows that no more were there.
with counted as materialized (
    select id, sum(events) over (order by id) - events as before from (
        select id, events from unnumbered order by id limit :wanted
    ) oldest
), taken as (
    delete from unnumbered where id = any (array(select id from counted where before < :wanted)) returning *
), fresh as materialized (
    select row_number() over (order by t.id, x.n) as n, t.at, t.kind, x.job_id, x.task_id, x.stage, x.token, t.worker, t.data
    from taken t left join lateral unnest(t.job_ids, t.task_ids, t.stages, t.tokens)
        with ordinality as x (job_id, task_id, stage, token, n) on true
), counter as (
    update event_counter set seq = seq + (select count(*) from fresh) where exists (select 1 from fresh)
    returning seq - (select count(*) from fresh) as base
), numbered as (
    insert into event (seq, at, kind, job_id, task_id, stage, token, worker, data)
    select (select base from counter) + n, at, kind, job_id, task_id, stage, token, worker, data from fresh order by n
)
select count(*)::integer as numbered from fresh

-- name: event_after
-- One statement, hence one moment: what is numbered, up to where, what was pruned, and whether more waits for numbers.
select c.seq as newest, c.pruned, exists (select 1 from unnumbered) as unnumbered,
    e.seq, e.at, e.kind, e.job_id, e.task_id, s.name as stage, t.position, e.token, e.worker, e.data::text as data
from event_counter c
left join (select * from event where seq > :seq::bigint order by seq limit :wanted) e on true
left join lateral (select name from stage where job_id = e.job_id and number = e.stage limit 1) s on true
left join task t on t.id = e.task_id
order by e.seq

-- name: event_after_of_job
select c.seq as newest, c.pruned, exists (select 1 from unnumbered) as unnumbered,
    e.seq, e.at, e.kind, e.job_id, e.task_id, s.name as stage, t.position, e.token, e.worker, e.data::text as data
from event_counter c
left join (select * from event where job_id = :job_id and seq > :seq::bigint order by seq limit :wanted) e on true
left join lateral (select name from stage where job_id = e.job_id and number = e.stage limit 1) s on true
left join task t on t.id = e.task_id
order by e.seq

-- name: event_say
insert into unnumbered (at, kind, worker, data, job_ids, task_ids, stages, tokens)
values ({now}, :kind, :worker, :data::text::jsonb, array[:job_id::bigint], array[:task_id::bigint], array[:stage::smallint],
    array[:token::integer])
