-- name: worker_add
insert into worker (name, hostname, kind, release, labels, lanes, capabilities, metadata, mode, slots, boot_id, pid_space, pid,
    pid_started, registered_at, beat_at)
values (:name, :hostname, :kind, :release, :labels::text::jsonb, :lanes::text::jsonb, :capabilities::text::jsonb,
    :metadata::text::jsonb, 'active', :slots, :boot_id, :pid_space, :pid, :pid_started, {now}, {now})
returning id

-- name: beat
-- Renews exactly the leases that the worker names, if they are still its own. Going beyond the furthest that any
-- attempt got is progress: it moves the stall limit and ends a row of losses. Tasks first, the worker's row last.
with named as materialized (
    select * from unnest(:ids::bigint[], :tokens::integer[], :progress::real[], :notes::text[])
        as n (id, token, progress, note)
), held as materialized (
    select t.id, n.progress, n.note, n.progress > t.best as moved from task t join named n on n.id = t.id
    where t.token = n.token and t.state = 'running' and t.worker = :worker and t.lease_until > {now}
      and exists (select 1 from worker w where w.id = :worker and w.revoked_at is null and w.gone_at is null)
    order by t.id for no key update of t
), renewed as (
    update task t set lease_until = {now} + :ttl::bigint, progress = coalesce(h.progress, t.progress),
        note = coalesce(h.note, t.note), best = greatest(t.best, h.progress),
        losses = case when h.moved then 0 else t.losses end,
        stops_at = case when h.moved or h.progress is distinct from t.progress and h.progress is not null
            then least({now} + t.stall_ms, t.claimed_at + t.limit_ms) else t.stops_at end
    from held h where t.id = h.id
    returning t.id, t.token, t.job_id
), seen as (
    update worker set beat_at = {now}, load = :load, done = :done, failed = :failed
    where id = :worker and revoked_at is null and gone_at is null
    returning mode
)
select {now} as now, seen.mode, r.id, r.token, coalesce(j.cancel_asked or j.failing, false) as stop
from seen left join renewed r on true left join job_row j on j.id = r.job_id

-- name: worker_mode
update worker set mode = :mode, revoked_at = case when :revoke then coalesce(revoked_at, {now}) else revoked_at end
where id = :id and (revoked_at is null or :mode = 'disabled') returning id

-- name: worker_revoked
select id from worker where id = :id and revoked_at is not null

-- name: worker_end
with gone as (
    update worker set gone_at = {now}, load = 0 where id = any (:ids::bigint[]) and gone_at is null returning id, name
)
insert into unnumbered (at, kind, worker, data)
select {now}, 'worker.left', id, jsonb_build_object('name', name) from gone order by id returning worker as id

-- name: worker_list
select w.id, w.name, w.hostname, w.kind, w.release, w.labels::text as labels, w.lanes::text as lanes,
    w.capabilities::text as capabilities, w.metadata::text as metadata, w.mode, w.slots, w.load, w.done, w.failed,
    w.registered_at, w.beat_at, w.revoked_at, w.gone_at, {now} as now,
    (select count(*) from task t where t.state = 'running' and t.worker = w.id)::integer as running
from worker w where (:all::boolean or w.gone_at is null) and (:id::bigint is null or w.id = :id) order by w.id

-- name: worker_here
-- Workers of this machine that say they live, or that still hold leases; each half by its own index.
select w.id, w.pid, w.pid_started from worker w
where w.boot_id = :boot_id and w.pid_space = :pid_space and w.gone_at is null
union
select w.id, w.pid, w.pid_started from worker w
where w.id in (select worker from task where state = 'running') and w.boot_id = :boot_id and w.pid_space = :pid_space

-- name: worker_barred
select w.id from worker w where w.id in (select worker from task where state = 'running')
  and (w.mode = 'disabled' or w.revoked_at is not null) order by w.id

-- name: worker_silent
-- Long gone without a word: marked so, that lists stay short. Only once it holds nothing.
with gone as (
    update worker set gone_at = {now} where gone_at is null and beat_at < {now} - :after::bigint
      and not exists (select 1 from task t where t.state = 'running' and t.worker = worker.id)
    returning id, name
)
insert into unnumbered (at, kind, worker, data)
select {now}, 'worker.lost', id, jsonb_build_object('name', name) from gone order by id returning worker as id

-- name: pulse_take
-- Whose turn it is: one winner per period for the whole fleet. Says how long nobody swept.
with last as materialized (select at from pulse for update)
update pulse set at = {now} from last where last.at <= {now} - :period::bigint or last.at > {now} returning {now} - last.at as silent, {now} as now

-- name: pulse_get
select at, {now} as now from pulse

-- name: grace
-- After an outage every lease gets a fresh term: nobody is to blame for what the database missed. What was claimed a moment
-- ago, by a clock that goes as it did then, has one.
update task set lease_until = {now} + :ttl::bigint, stops_at = stops_at + least(:silent::bigint, {now} - claimed_at)
where id = any (array(
    select id from task where state = 'running' and claimed_at not between {now} - :period::bigint and {now}
    order by id for no key update)) returning id
