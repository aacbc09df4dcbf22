-- name: figure_lanes
-- Hops from lane to lane in the index of what can be claimed; counts each up to the cap, also what waits for too long.
with recursive lanes as (
    (select lane, 1 as n from task where state = 'ready' and not parked order by lane limit 1)
    union all
    select (select t.lane from task t where t.state = 'ready' and not t.parked and t.lane > l.lane order by t.lane limit 1),
        l.n + 1
    from lanes l where l.lane is not null and l.n < :lanes::integer
)
select l.lane, c.count::integer as count, c.stale::integer as stale, ({now} - c.oldest)::bigint as oldest
from lanes l cross join lateral (
    select count(*) as count, count(*) filter (where r.ready_at < {now} - :stale::bigint) as stale, min(r.ready_at) as oldest
    from (select t.ready_at from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
        order by t.rank, t.id limit :most) r
) c where l.lane is not null order by l.lane

-- name: figure_running
select r.lane, count(*)::integer as count from (select lane from task where state = 'running' limit :most) r
group by r.lane order by r.lane

-- name: figure_jobs
select f.name as flow, o.status, count(*)::integer as count
from flow f join (
    select f.id, o.status from flow f cross join lateral (
        select status from (
            (select status from job_row where flow_id = f.id and outcome is null limit :most)
            union all
            (select status from rowless where flow_id = f.id and state = 'ready' limit :most)
        ) j limit :most
    ) o
    union all
    (select flow_id, status from rowless where state = 'running' limit :most)
) o on o.id = f.id
group by f.name, o.status order by f.name, o.status

-- name: figure_workers
select w.name, w.kind, case when w.revoked_at is null then w.mode else 'disabled' end as mode, w.slots,
    (select count(*) from task t where t.worker = w.id and t.state = 'running')::integer as load
from worker w where w.gone_at is null and w.beat_at > {now} - :within::bigint order by w.id limit :most

-- name: figure_rest
select
    (select count(*) from (select 1 from task where state = 'ready' and parked limit :most) p)::integer as parked,
    (select count(*) from (select 1 from delivery where state = 'waiting' limit :most) d)::integer as waiting,
    (select count(*) from (select 1 from delivery where state = 'dead' limit :most) d)::integer as dead,
    (select count(*) from (select 1 from freed limit :most) f)::integer as freed,
    (select count(*) from (select 1 from job_row where outcome = 'failed' limit :most) j)::integer as failed,
    u.uploads::integer as uploads, u.bytes::bigint as bytes, c.seq as newest, c.pruned,
    coalesce((select value from tally where name = 'seq' and labels = '[]'), 0) as counted,
    ({now} - p.at)::bigint as pulse
from event_counter c cross join pulse p cross join (
    select count(*) filter (where state = 'open') as uploads,
        coalesce(sum(received) filter (where state = 'open'), 0) as bytes
    from (select state, received from upload where state in ('open', 'refused') limit :most) u
) u

-- name: figure_recent
-- The latest events from the newest back, those that ended an attempt: how long it took, and how it ended.
select coalesce(j.flow, '') as flow, coalesce(s.name, '') as stage, e.kind, a.ended_at - a.started_at as ms
from (select kind, job_id, stage, task_id, token from event order by seq desc limit :most) e
cross join lateral (select started_at, ended_at from attempt where task_id = e.task_id and token = e.token limit 1) a
left join lateral (select flow from job where id = e.job_id limit 1) j on true
left join lateral (select name from stage where job_id = e.job_id and number = e.stage limit 1) s on true
where e.kind <> 'task.started'

-- name: figure_ping
select {now} as now

-- name: tally_all
select name, labels, value from tally where name not in ('seq', 'identity') order by name, labels limit :most

-- name: tally_found
-- Both rows are there from the first look on; what was pruned before cannot be counted.
insert into tally (name, labels, value)
select 'seq', '[]', pruned from event_counter union all select 'identity', '[]', :identity::bigint
on conflict do nothing

-- name: tally_state
select t.value as seq, c.pruned from tally t cross join event_counter c where t.name = 'seq' and t.labels = '[]'

-- name: tally_hold
-- Who counts; nobody else counts meanwhile, and nobody waits for it.
select t.value as seq, c.pruned from tally t cross join event_counter c
where t.name = 'seq' and t.labels = '[]' for no key update of t skip locked

-- name: tally_look
select e.seq, e.at, e.kind, e.job_id, j.created_at, j.generation, e.data::text as data, j.flow, s.name as stage, j.started_at as job_started, a.started_at,
    a.ended_at, a.outcome
from (select * from event where seq > :seq::bigint order by seq limit :wanted) e
left join lateral (select created_at, generation, flow, started_at from job where id = e.job_id limit 1) j on true
left join lateral (select name from stage where job_id = e.job_id and number = e.stage limit 1) s on true
left join lateral (
    select started_at, ended_at, outcome from attempt where task_id = e.task_id and token = e.token limit 1
) a on true
order by e.seq

-- name: tally_identity
select value from tally where name = 'identity' and labels = '[]'

-- name: tally_move
update tally set value = :seq::bigint where name = 'seq' and labels = '[]'

-- name: tally_add
insert into tally (name, labels, value)
select x.name, x.labels, x.value from unnest(:counts_name::text[], :counts_labels::text[], :counts_value::bigint[])
    as x (name, labels, value)
on conflict (name, labels) do update set value = tally.value + excluded.value
