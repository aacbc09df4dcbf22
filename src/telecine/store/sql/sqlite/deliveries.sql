-- Who wants to be told what, what is on its way to them, and how far the events have been read for it.

-- name: webhook_add
insert into webhook (owner, url, format, kinds, job_id, created_at)
values (:owner, :url, :format, :kinds, :job_id, {now})
returning id, owner, url, format, kinds, job_id, created_at, disabled_at

-- name: webhook_put_webhooks
insert into webhook (owner, url, format, kinds, job_id, created_at)
values (:owner, :url, :format, :kinds, :job_id, {now})

-- name: webhook_of_jobs
select id, owner, url, format, kinds, job_id from webhook where job_id in (select value from json_each(:ids)) order by id

-- name: webhook_turn
-- One writes at a time anyway; the PostgreSQL twin takes a lock.
select :owner as mine

-- name: webhook_count
-- Those of all jobs.
select count(*) as own from webhook where owner = :owner and job_id is null

-- name: webhook_counts
-- Those of single jobs, by job.
select job_id, count(*) as of_job from webhook where job_id in (select value from json_each(:ids)) group by job_id

-- name: webhook_passing
-- Whether there are more of single jobs than so many, all together. An owner may have very many, and asks with each
-- submit: while no more than that were made by anybody since his first one, there is nothing to count, and after that an
-- index is enough. `between`, and both in the order: else PostgreSQL may look for his first one among those of all others.
select 1 as found from webhook where owner = :owner and job_id is not null
limit case when (select max(id) from webhook) - (
    select id from webhook where owner between :owner and :owner and job_id is not null
    order by owner, id limit 1) >= :most then 1 else 0 end
offset :most

-- name: webhook_list
select id, owner, url, format, kinds, job_id, created_at, disabled_at from webhook
where owner = :owner and id < :below order by id desc limit :wanted

-- name: webhook_all
select id, owner, url, format, kinds, job_id, created_at, disabled_at from webhook
where id < :below order by id desc limit :wanted

-- name: webhook_find
select id, owner, url, format, kinds, job_id, created_at, disabled_at from webhook where id = :id

-- name: webhook_drop
-- The letters first, while it is known whose they are.
delete from delivery where webhook_id in (select id from webhook where id = :id and (:owner is null or owner = :owner));
delete from webhook where id = :id and (:owner is null or owner = :owner) returning id

-- name: webhook_disable
update webhook set disabled_at = coalesce(disabled_at, {now}) where id in (select value from json_each(:ids)) returning id

-- name: webhook_prune
-- Of single jobs, which have ended so long ago, or are gone, and been told.
delete from webhook where id in (
    select w.id from webhook w where w.job_id is not null and w.created_at < {now} - :age
      and not exists (select 1 from job j where j.id = w.job_id
          and (j.outcome is null or j.ended_at >= {now} - :age))
      and not exists (select 1 from delivery d where d.webhook_id = w.id)
    limit :wanted)
returning id

-- name: postman_open
insert into postman (seq, secret)
select coalesce((select seq from sqlite_sequence where name = 'event'), 0), :secret
where not exists (select 1 from postman)

-- name: postman_secret
select secret from postman

-- name: postman_look
select p.seq, coalesce((select seq from sqlite_sequence where name = 'event'), 0) as newest, c.pruned, 0 as unnumbered
from postman p cross join event_counter c

-- name: postman_hold
select p.seq, coalesce((select seq from sqlite_sequence where name = 'event'), 0) as newest, c.pruned, {now} as now
from postman p cross join event_counter c

-- name: postman_move
update postman set seq = :seq

-- name: news
select e.seq, e.at, e.kind, e.job_id, s.name as stage, e.worker, w.name as worker_name, e.data,
    j.owner, j.flow, j.subject_kind, j.subject_id, j.status, j.created_at, j.ended_at
from (
    select * from event where seq > :seq and seq <= :until and kind in (select value from json_each(:kinds))
    order by seq limit :wanted
) e
left join job j on j.id = e.job_id
left join stage s on s.job_id = e.job_id and s.number = e.stage
left join worker w on w.id = e.worker
order by e.seq

-- name: news_failures
select j.id as job_id, (
    select count(*) from (
        select 1 from (
            select j.id as id
            union
            select o.id from job o where o.subject_kind = j.subject_kind and o.subject_id = j.subject_id
              and o.id < j.id and o.id > coalesce((
                select max(c.id) from job c where c.subject_kind = j.subject_kind and c.subject_id = j.subject_id
                  and c.id < j.id and c.outcome = 'completed'), 0)
        ) as o
        join task t on t.job_id = o.id
        join attempt a on a.task_id = t.id and a.outcome in ('failed', 'stalled', 'timed_out')
        limit :most
    )) as failures,
    exists (
        select 1 from task t join stage s on s.job_id = t.job_id and s.number = t.stage
        where t.job_id = j.id and t.state = 'error' and s.name = json_extract(j.error, '$.stage')
          and (t.tries >= t.max_attempts or json_extract(t.error, '$.code') in ('quarantined', 'released_too_often'))
    ) as exhausted
from job j where j.id in (select value from json_each(:ids))

-- name: news_readers
select id, owner, url, kinds, job_id, created_at from webhook
where job_id is null and owner in (select value from json_each(:owners)) and disabled_at is null
union all
select id, owner, url, kinds, job_id, created_at from webhook
where job_id in (select value from json_each(:jobs)) and disabled_at is null
order by 1

-- name: alert_list
select kind, sent_at, held from alert

-- name: alert_put_alerts
insert into alert (kind, sent_at, held) values (:kind, :sent_at, :held)
on conflict (kind) do update set sent_at = excluded.sent_at, held = excluded.held

-- name: delivery_put_letters
insert into delivery (webhook_id, owner, host, event_seq, kind, body, state, next_at, created_at)
values (:webhook_id, :owner, :host, :event_seq, :kind, :body, 'waiting', {now}, {now})
on conflict do nothing

-- name: delivery_test
insert into delivery (webhook_id, owner, host, event_seq, kind, body, state, next_at, created_at)
select :webhook_id, :owner, :host, min(0, coalesce(min(d.event_seq), 0)) - 1, 'webhook.test', :body, 'waiting', {now}, {now}
from delivery d where d.webhook_id = :webhook_id and d.kind = 'webhook.test'
having count(*) filter (where d.state = 'waiting') = 0
returning id

-- name: delivery_hosts
with recursive hosts as (
    select min(host) as host from delivery where state = 'waiting'
    union all
    select (select min(d.host) from delivery d where d.state = 'waiting' and d.host > h.host)
    from hosts h where h.host is not null
)
select * from (
    select h.host, (
        select min(d.next_at) from delivery d where d.state = 'waiting' and d.host = h.host and d.next_at <= {now}
    ) as next_at, (
        select count(*) from delivery b where b.state = 'waiting' and b.host = h.host
          and b.next_at > {now} and b.next_at <= {now} + :lease and b.until > {now}) as busy
    from hosts h where h.host is not null
) where next_at is not null
order by next_at limit :wanted

-- name: delivery_take
update delivery set until = {now} + :lease, next_at = {now} + :lease, token = token + 1, tries = tries + 1
where id in (
    select id from delivery where state = 'waiting' and host = :host and next_at <= {now}
    order by next_at, id limit :wanted)
returning id

-- name: delivery_letters
select d.id, d.webhook_id, d.host, d.event_seq, d.kind, d.body, d.tries, d.token, d.created_at, w.url, w.format, w.disabled_at, {now} as now
from delivery d left join webhook w on w.id = d.webhook_id
where d.id in (select value from json_each(:ids)) order by d.id

-- name: delivery_mark
update delivery set state = :state, until = null, last_status = :status, last_error = :error,
    next_at = {now} + :wait, ended_at = case when :state = 'waiting' then null else {now} end
where id = :id and token = :token and state = 'waiting' returning id

-- name: delivery_retry
update delivery set state = 'waiting', tries = 0, next_at = {now}, ended_at = null
where id = :id and state = 'dead' returning id

-- name: delivery_find
select id, state, owner from delivery where id = :id

-- name: delivery_all
select d.id, d.webhook_id, d.kind, d.body, d.state, d.tries, d.next_at, d.last_status, d.last_error,
    d.created_at, d.ended_at
from delivery d where d.id < :below and (:state is null or d.state = :state)
order by d.id desc limit :wanted

-- name: delivery_of_owner
select d.id, d.webhook_id, d.kind, d.body, d.state, d.tries, d.next_at, d.last_status, d.last_error,
    d.created_at, d.ended_at
from delivery d where d.owner = :owner and d.id < :below and (:state is null or d.state = :state)
order by d.id desc limit :wanted

-- name: delivery_of_webhook
select d.id, d.webhook_id, d.kind, d.body, d.state, d.tries, d.next_at, d.last_status, d.last_error,
    d.created_at, d.ended_at
from delivery d where d.webhook_id = :webhook_id and d.id < :below and (:state is null or d.state = :state)
order by d.id desc limit :wanted

-- name: delivery_heaps
-- Webhooks for which more waits than they will ever take.
select webhook_id from delivery where state = 'waiting' and webhook_id is not null
group by webhook_id having count(*) > :most

-- name: delivery_abandon
update delivery set state = 'dead', until = null, ended_at = {now}, last_error = :error
where webhook_id in (select value from json_each(:ids)) and state = 'waiting' returning id

-- name: delivery_prune
delete from delivery where id in (
    select id from delivery where state <> 'waiting' and ended_at < {now} - min(:done_age, :dead_age)
      and ended_at < {now} - case state when 'done' then :done_age else :dead_age end
    order by ended_at limit :wanted)
returning id
