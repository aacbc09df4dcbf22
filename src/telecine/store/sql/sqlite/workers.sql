-- name: worker_add
insert into worker (name, hostname, kind, release, labels, lanes, capabilities, metadata, mode, slots, boot_id, pid_space, pid,
    pid_started, registered_at, beat_at)
values (:name, :hostname, :kind, :release, :labels, :lanes, :capabilities, :metadata, 'active', :slots, :boot_id, :pid_space,
    :pid, :pid_started, {now}, {now})
returning id

-- name: beat
update task set lease_until = {now} + :ttl, progress = coalesce(n.progress, task.progress), note = coalesce(n.note, task.note),
    best = max(task.best, coalesce(n.progress, 0)),
    losses = case when n.progress > task.best then 0 else task.losses end,
    stops_at = case when n.progress > task.best or n.progress is not task.progress and n.progress is not null
        then min(coalesce({now} + task.stall_ms, task.claimed_at + task.limit_ms),
            coalesce(task.claimed_at + task.limit_ms, {now} + task.stall_ms))
        else task.stops_at end
from (
    select i.value as id, json_extract(:tokens, '$[' || i.key || ']') as token,
        json_extract(:progress, '$[' || i.key || ']') as progress, json_extract(:notes, '$[' || i.key || ']') as note
    from json_each(:ids) as i
) as n
where task.id = n.id and task.token = n.token and task.state = 'running' and task.worker = :worker
  and task.lease_until > {now};
update worker set beat_at = {now}, load = :load, done = :done, failed = :failed
where id = :worker and revoked_at is null and gone_at is null;
-- A lease of this worker that was named and is still current was renewed just now.
select {now} as now, w.mode, t.id, t.token, coalesce(j.cancel_asked or j.failing, 0) as stop
from worker w
left join (
    select distinct task.id, task.token, task.job_id from json_each(:ids) as i
    join task on task.id = i.value and task.token = json_extract(:tokens, '$[' || i.key || ']')
    where task.state = 'running' and task.worker = :worker and task.lease_until > {now}
) as t on true
left join job j on j.id = t.job_id
where w.id = :worker and w.revoked_at is null and w.gone_at is null

-- name: worker_mode
update worker set mode = :mode, revoked_at = case when :revoke then coalesce(revoked_at, {now}) else revoked_at end
where id = :id and (revoked_at is null or :mode = 'disabled') returning id

-- name: worker_revoked
select id from worker where id = :id and revoked_at is not null

-- name: worker_end
insert into event (at, kind, worker, data) select {now}, 'worker.left', id, json_object('name', name) from worker
where id in (select value from json_each(:ids)) and gone_at is null order by id;
update worker set gone_at = {now}, load = 0 where id in (select value from json_each(:ids)) and gone_at is null returning id

-- name: worker_list
select w.id, w.name, w.hostname, w.kind, w.release, w.labels, w.lanes, w.capabilities, w.metadata, w.mode, w.slots, w.load,
    w.done, w.failed, w.registered_at, w.beat_at, w.revoked_at, w.gone_at, {now} as now,
    (select count(*) from task t where t.state = 'running' and t.worker = w.id) as running
from worker w where (:all or w.gone_at is null) and (:id is null or w.id = :id) order by w.id

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
insert into event (at, kind, worker, data) select {now}, 'worker.lost', id, json_object('name', name) from worker
where gone_at is null and beat_at < {now} - :after
  and not exists (select 1 from task t where t.state = 'running' and t.worker = worker.id) order by id;
update worker set gone_at = {now} where gone_at is null and beat_at < {now} - :after
  and not exists (select 1 from task t where t.state = 'running' and t.worker = worker.id)
returning id

-- name: pulse_take
create temp table if not exists last_pulse (at integer);
delete from temp.last_pulse;
insert into temp.last_pulse select at from pulse where at <= {now} - :period or at > {now};
update pulse set at = {now} where at <= {now} - :period or at > {now};
select {now} - at as silent, {now} as now from temp.last_pulse

-- name: pulse_get
select at, {now} as now from pulse

-- name: grace
update task set lease_until = {now} + :ttl, stops_at = stops_at + min(:silent, {now} - claimed_at)
where state = 'running' and claimed_at not between {now} - :period and {now} returning id
