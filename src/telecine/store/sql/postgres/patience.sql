-- Tasks with limited patience. It counts only while nothing can take the task: no live worker serves its lane, none works
-- in it, and its flow is not paused.

-- name: patient_lanes
-- The lanes with patient tasks, found by jumping from lane to lane in the index, and whether each is served or paused now.
with recursive waiting (lane) as (
    select min(lane) from task where state = 'ready' and not parked and patience_ms is not null
    union all
    select (select min(t.lane) from task t
        where t.state = 'ready' and not t.parked and t.patience_ms is not null and t.lane > w.lane)
    from waiting w where w.lane is not null
), worked as materialized (
    select distinct lane from task where state = 'running' and lease_until > {now}
)
select w.lane, w.lane in (select lane from worked)
    or split_part(w.lane, '/', 1) in (select name from flow where paused)
    or exists (select 1 from worker k where k.gone_at is null and k.revoked_at is null and k.mode = 'active'
        and k.beat_at > {now} - :within::bigint and jsonb_exists(k.lanes, w.lane)) as served
from waiting w where w.lane is not null

-- name: lane_seen
-- Note that these lanes are served now; forget lanes in which nothing waits.
with forgotten as (
    delete from lane_seen where lane <> all (:waiting::text[])
)
insert into lane_seen (lane, at) select lane, {now} from unnest(:served::text[]) as s (lane) order by lane
on conflict (lane) do update set at = excluded.at

-- name: untaken
-- Jobs with tasks in these lanes whose patience has ended.
select distinct x.job_id from unnest(:lanes::text[]) as l (lane) left join lane_seen s on s.lane = l.lane
cross join lateral (
    select t.job_id from task t where t.state = 'ready' and not t.parked and t.patience_ms is not null and t.lane = l.lane
        and t.ready_at + t.patience_ms <= {now} and t.patience_ms <= {now} - coalesce(s.at, 0)
    order by t.ready_at + t.patience_ms limit :wanted
) x

-- name: pass_over
-- Called with the job's row locked. A task that a worker is claiming right now is left to it.
with late as materialized (
    select t.id from task t left join lane_seen s on s.lane = t.lane
    where t.job_id = :job_id and t.flow_id is null and t.state = 'ready' and not t.parked and t.patience_ms is not null
        and t.lane = any (:lanes::text[])
        and t.ready_at + t.patience_ms <= {now} and t.patience_ms <= {now} - coalesce(s.at, 0)
    order by t.id for no key update of t skip locked
), gone as (
    update task t set state = 'skipped', ended_at = :at::bigint from late where t.id = late.id returning t.stage
)
select stage, count(*)::integer as count from gone group by stage
