-- Who wants to be told what, what is on its way to them, and how far the events have been read for it.

-- name: webhook_add
insert into webhook (owner, url, format, kinds, job_id, created_at)
values (:owner::text, :url::text, :format::text, :kinds::text::jsonb, :job_id::bigint, {now})
returning id, owner, url, format, kinds::text as kinds, job_id, created_at, disabled_at

-- name: webhook_put
insert into webhook (owner, url, format, kinds, job_id, created_at)
select x.owner, x.url, x.format, x.kinds::jsonb, x.job_id, {now}
from unnest(:webhooks_owner::text[], :webhooks_url::text[], :webhooks_format::text[], :webhooks_kinds::text[],
    :webhooks_job_id::bigint[]) as x (owner, url, format, kinds, job_id)

-- name: webhook_of_jobs
select id, owner, url, format, kinds::text as kinds, job_id from webhook where job_id = any (:ids::bigint[]) order by id

-- name: webhook_turn
-- Two callers who make an owner's last one at once must not both get it. A statement of its own: the count must see what the other one made.
select pg_advisory_xact_lock(hashtext('telecine.webhooks:' || current_schema() || :owner::text))::text as mine

-- name: webhook_count
-- Those of all jobs.
select count(*) as own from webhook where owner = :owner::text and job_id is null

-- name: webhook_counts
-- Those of single jobs, by job.
select job_id, count(*) as of_job from webhook where job_id = any (:ids::bigint[]) group by job_id

-- name: webhook_passing
-- Whether there are more of single jobs than so many, all together. An owner may have very many, and asks with each
-- submit: while no more than that were made by anybody since his first one, there is nothing to count, and after that an
-- index is enough. `between`, and both in the order: else PostgreSQL may look for his first one among those of all others.
select 1 as found from webhook where owner = :owner::text and job_id is not null
limit case when (select max(id) from webhook) - (
    select id from webhook where owner between :owner::text and :owner::text and job_id is not null
    order by owner, id limit 1) >= :most::bigint then 1 else 0 end
offset :most::bigint

-- name: webhook_list
select id, owner, url, format, kinds::text as kinds, job_id, created_at, disabled_at from webhook
where owner between :owner::text and :owner::text and id < :below::bigint order by owner desc, id desc limit :wanted

-- name: webhook_all
select id, owner, url, format, kinds::text as kinds, job_id, created_at, disabled_at from webhook
where id < :below::bigint order by id desc limit :wanted

-- name: webhook_find
select id, owner, url, format, kinds::text as kinds, job_id, created_at, disabled_at from webhook where id = :id::bigint

-- name: webhook_drop
with gone as (delete from webhook where id = :id::bigint and (:owner::text is null or owner = :owner::text) returning id),
letters as (delete from delivery where webhook_id = any (array(select id from gone)))
select id from gone

-- name: webhook_disable
update webhook set disabled_at = coalesce(disabled_at, {now}) where id = any (:ids::bigint[]) returning id

-- name: webhook_prune
-- Of single jobs, which have ended so long ago, or are gone, and been told.
delete from webhook where id = any (array(
    select w.id from webhook w where w.job_id is not null and w.created_at < {now} - :age::bigint
      and (select count(*) from job j where j.id = w.job_id
          and (j.outcome is null or j.ended_at >= {now} - :age::bigint)) = 0
      and not exists (select 1 from delivery d where d.webhook_id = w.id)
    order by w.created_at limit :wanted::bigint))
returning id

-- name: postman_open
-- Whatever was before the first look is told to nobody.
insert into postman (seq, secret) select c.seq, :secret::text from event_counter c on conflict do nothing

-- name: postman_secret
select secret from postman

-- name: postman_look
select p.seq, c.seq as newest, c.pruned, exists (select 1 from unnumbered) as unnumbered
from postman p cross join event_counter c

-- name: postman_hold
-- One at a time; who comes second has nothing to do.
select p.seq, c.seq as newest, c.pruned, {now} as now from postman p cross join event_counter c
for update of p skip locked

-- name: postman_move
update postman set seq = :seq::bigint

-- name: news
select e.seq, e.at, e.kind, e.job_id, s.name as stage, e.worker, w.name as worker_name, e.data::text as data,
    j.owner, j.flow, j.subject_kind, j.subject_id, j.status, j.created_at, j.ended_at
from (
    select * from event where seq > :seq::bigint and seq <= :until::bigint and kind = any (:kinds::word[])
    order by seq limit :wanted
) e
left join lateral (
    select owner, flow, subject_kind, subject_id, status, created_at, ended_at from job where id = e.job_id limit 1
) j on true
left join lateral (select name from stage where job_id = e.job_id and number = e.stage limit 1) s on true
left join worker w on w.id = e.worker
order by e.seq

-- name: news_failures
-- For each job: failed attempts of its subject since that last completed a job, counted up to a number; and whether a
-- task of it ended in error because no attempt was left.
select j.id as job_id, (
    select count(*) from (
        select 1 from (
            select j.id
            union
            select o.id from job_row o where o.subject_kind = j.subject_kind and o.subject_id = j.subject_id
              and o.id < j.id and o.id > coalesce((
                select max(c.id) from job_row c where c.subject_kind = j.subject_kind and c.subject_id = j.subject_id
                  and c.id < j.id and c.outcome = 'completed'), 0)
        ) as o
        join task t on t.job_id = o.id and t.flow_id is null
        join attempt_row a on a.task_id = t.id and a.outcome in ('failed', 'stalled', 'timed_out')
        limit :most
    ) as found) as failures,
    exists (
        select 1 from task t join stage_row s on s.job_id = t.job_id and s.number = t.stage
        where t.job_id = j.id and t.flow_id is null and t.state = 'error' and s.name = j.error ->> 'stage'
          and (t.tries >= t.max_attempts or t.error ->> 'code' in ('quarantined', 'released_too_often'))
    ) as exhausted
from job j where j.id = any (:ids::bigint[])

-- name: news_readers
select id, owner, url, kinds::text as kinds, job_id, created_at from webhook
where job_id is null and owner = any (:owners::text[]) and disabled_at is null
union all
select id, owner, url, kinds::text as kinds, job_id, created_at from webhook
where job_id = any (:jobs::bigint[]) and disabled_at is null
order by 1

-- name: alert_list
select kind, sent_at, held from alert

-- name: alert_put
insert into alert (kind, sent_at, held)
select x.kind, x.sent_at, x.held
from unnest(:alerts_kind::text[], :alerts_sent_at::bigint[], :alerts_held::bigint[]) as x (kind, sent_at, held)
on conflict (kind) do update set sent_at = excluded.sent_at, held = excluded.held

-- name: delivery_put
insert into delivery (webhook_id, owner, host, event_seq, kind, body, state, next_at, created_at)
select x.webhook_id, x.owner, x.host, x.event_seq, x.kind, x.body::jsonb, 'waiting', {now}, {now}
from unnest(:letters_webhook_id::bigint[], :letters_owner::text[], :letters_host::text[], :letters_event_seq::bigint[],
    :letters_kind::text[], :letters_body::text[]) as x (webhook_id, owner, host, event_seq, kind, body)
on conflict do nothing

-- name: delivery_test
-- Its number is below those of all events. One at a time: nobody shall make us knock at a door without end.
insert into delivery (webhook_id, owner, host, event_seq, kind, body, state, next_at, created_at)
select :webhook_id::bigint, :owner::text, :host::text, least(0, coalesce(min(d.event_seq), 0)) - 1, 'webhook.test',
    :body::text::jsonb, 'waiting', {now}, {now}
from delivery d where d.webhook_id = :webhook_id::bigint and d.kind = 'webhook.test'
having count(*) filter (where d.state = 'waiting') = 0
returning id

-- name: delivery_hosts
-- Hosts for which something is due, the longest waiting first, and how many letters are on their way to each. Walks
-- from host to host, not through what waits for them. Who sends has moved `next_at` to the end of his lease.
with recursive hosts as (
    (select host from delivery where state = 'waiting' order by host limit 1)
    union all
    select (select d.host from delivery d where d.state = 'waiting' and d.host > h.host order by d.host limit 1)
    from hosts h where h.host is not null
)
select h.host, due.next_at, (
    select count(*) from delivery b where b.state = 'waiting' and b.host = h.host
      and b.next_at > {now} and b.next_at <= {now} + :lease::bigint and b.until > {now})::integer as busy
from hosts h cross join lateral (
    select next_at from delivery d where d.state = 'waiting' and d.host = h.host and d.next_at <= {now}
    order by next_at limit 1
) due
order by due.next_at limit :wanted

-- name: delivery_take
-- Chosen once, before: inside of the update a plan may choose anew for each row, and take more than are wanted.
with chosen as materialized (
    select id from delivery where state = 'waiting' and host = :host::text and next_at <= {now}
    order by next_at, id limit :wanted for update skip locked
)
update delivery set until = {now} + :lease::bigint, next_at = {now} + :lease::bigint, token = token + 1, tries = tries + 1
where id = any (array(select id from chosen))
returning id

-- name: delivery_letters
select d.id, d.webhook_id, d.host, d.event_seq, d.kind, d.body::text as body, d.tries, d.token, d.created_at, w.url, w.format, w.disabled_at,
    {now} as now
from delivery d left join webhook w on w.id = d.webhook_id
where d.id = any (:ids::bigint[]) order by d.id

-- name: delivery_mark
update delivery set state = :state::text, until = null, last_status = :status::integer, last_error = :error::text,
    next_at = {now} + :wait::bigint, ended_at = case when :state::text = 'waiting' then null else {now} end
where id = :id::bigint and token = :token::integer and state = 'waiting' returning id

-- name: delivery_retry
update delivery set state = 'waiting', tries = 0, next_at = {now}, ended_at = null
where id = :id::bigint and state = 'dead' returning id

-- name: delivery_find
select id, state, owner from delivery where id = :id::bigint

-- name: delivery_all
select d.id, d.webhook_id, d.kind, d.body::text as body, d.state, d.tries, d.next_at, d.last_status, d.last_error,
    d.created_at, d.ended_at
from delivery d where d.id < :below::bigint and (:state::text is null or d.state = :state::text)
order by d.id desc limit :wanted

-- name: delivery_of_owner
select d.id, d.webhook_id, d.kind, d.body::text as body, d.state, d.tries, d.next_at, d.last_status, d.last_error,
    d.created_at, d.ended_at
from delivery d
where d.owner between :owner::text and :owner::text and d.id < :below::bigint and (:state::text is null or d.state = :state::text)
order by d.owner desc, d.id desc limit :wanted

-- name: delivery_of_webhook
select d.id, d.webhook_id, d.kind, d.body::text as body, d.state, d.tries, d.next_at, d.last_status, d.last_error,
    d.created_at, d.ended_at
from delivery d
where d.webhook_id between :webhook_id::bigint and :webhook_id::bigint and d.id < :below::bigint
  and (:state::text is null or d.state = :state::text)
order by d.webhook_id desc, d.id desc limit :wanted

-- name: delivery_heaps
-- Webhooks for which more waits than they will ever take.
select webhook_id from delivery where state = 'waiting' and webhook_id is not null
group by webhook_id having count(*) > :most::bigint

-- name: delivery_abandon
update delivery set state = 'dead', until = null, ended_at = {now}, last_error = :error::text
where webhook_id = any (:ids::bigint[]) and state = 'waiting' returning id

-- name: delivery_prune
delete from delivery where id = any (array(
    select id from delivery where state <> 'waiting' and ended_at < {now} - least(:done_age::bigint, :dead_age::bigint)
      and ended_at < {now} - case state when 'done' then :done_age::bigint else :dead_age::bigint end
    order by ended_at limit :wanted))
returning id
