-- name: figure_lanes
with recursive lanes (lane, n) as (
    select (select lane from task where state = 'ready' and not parked order by lane limit 1), 1
    union all
    select (select t.lane from task t where t.state = 'ready' and not t.parked and t.lane > l.lane order by t.lane limit 1),
        l.n + 1
    from lanes l where l.lane is not null and l.n < :lanes
)
select l.lane,
    (select count(*) from (
        select 1 from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
        order by t.rank, t.id limit :most)) as count,
    (select coalesce(sum(r.ready_at < {now} - :stale), 0) from (
        select t.ready_at from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
        order by t.rank, t.id limit :most) r) as stale,
    {now} - (select min(r.ready_at) from (
        select t.ready_at from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
        order by t.rank, t.id limit :most) r) as oldest
from lanes l where l.lane is not null order by l.lane

-- name: figure_running
select r.lane, count(*) as count from (select lane from task where state = 'running' limit :most) r
group by r.lane order by r.lane

-- name: figure_jobs
select o.flow, o.status, count(*) as count
from (select flow, status from job indexed by job_open where outcome is null order by id desc limit :most) o
group by o.flow, o.status order by o.flow, o.status

-- name: figure_workers
select w.name, w.kind, case when w.revoked_at is null then w.mode else 'disabled' end as mode, w.slots,
    (select count(*) from task t where t.worker = w.id and t.state = 'running') as load
from worker w where w.gone_at is null and w.beat_at > {now} - :within order by w.id limit :most

-- name: figure_rest
select
    (select count(*) from (select 1 from task where state = 'ready' and parked limit :most) p) as parked,
    (select count(*) from (select 1 from delivery where state = 'waiting' limit :most) d) as waiting,
    (select count(*) from (select 1 from delivery where state = 'dead' limit :most) d) as dead,
    (select count(*) from (select 1 from freed limit :most) f) as freed,
    (select count(*) from (select 1 from job where outcome = 'failed' limit :most) j) as failed,
    u.uploads, u.bytes, coalesce((select seq from sqlite_sequence where name = 'event'), 0) as newest, c.pruned,
    coalesce((select value from tally where name = 'seq' and labels = '[]'), 0) as counted,
    {now} - p.at as pulse
from event_counter c cross join pulse p cross join (
    select coalesce(sum(state = 'open'), 0) as uploads,
        coalesce(sum(case when state = 'open' then received else 0 end), 0) as bytes
    from (select state, received from upload where state in ('open', 'refused') limit :most) u
) u

-- name: figure_recent
select coalesce(j.flow, '') as flow, coalesce(s.name, '') as stage, e.kind, a.ended_at - a.started_at as ms
from (select kind, job_id, stage, task_id, token from event order by seq desc limit :most) e
join attempt a on a.task_id = e.task_id and a.token = e.token
left join job j on j.id = e.job_id
left join stage s on s.job_id = e.job_id and s.number = e.stage
where e.kind <> 'task.started'

-- name: figure_ping
select {now} as now

-- name: tally_all
select name, labels, value from tally where name not in ('seq', 'identity') order by name, labels limit :most

-- name: tally_found
insert into tally (name, labels, value)
select 'seq', '[]', pruned from event_counter where true
union all select 'identity', '[]', :identity where true
on conflict do nothing

-- name: tally_state
select t.value as seq, c.pruned from tally t cross join event_counter c where t.name = 'seq' and t.labels = '[]'

-- name: tally_hold
-- No lock: one writes at a time.
select t.value as seq, c.pruned from tally t cross join event_counter c where t.name = 'seq' and t.labels = '[]'

-- name: tally_look
select e.seq, e.at, e.kind, e.job_id, j.created_at, j.generation, e.data, j.flow, s.name as stage, j.started_at as job_started, a.started_at, a.ended_at,
    a.outcome
from (select * from event where seq > :seq order by seq limit :wanted) e
left join job j on j.id = e.job_id
left join stage s on s.job_id = e.job_id and s.number = e.stage
left join attempt a on a.task_id = e.task_id and a.token = e.token
order by e.seq

-- name: tally_identity
select value from tally where name = 'identity' and labels = '[]'

-- name: tally_move
update tally set value = :seq where name = 'seq' and labels = '[]'

-- name: tally_add_counts
insert into tally (name, labels, value) values (:name, :labels, :value)
on conflict (name, labels) do update set value = tally.value + excluded.value
