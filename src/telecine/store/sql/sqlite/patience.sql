-- Tasks with limited patience: the twins of the PostgreSQL statements.

-- name: patient_lanes
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
    or substr(w.lane, 1, instr(w.lane, '/') - 1) in (select name from flow where paused)
    or exists (select 1 from worker k where k.gone_at is null and k.revoked_at is null and k.mode = 'active'
        and k.beat_at > {now} - :within and exists (select 1 from json_each(k.lanes) e where e.value = w.lane)) as served
from waiting w where w.lane is not null

-- name: lane_seen
delete from lane_seen where lane not in (select value from json_each(:waiting));
insert into lane_seen (lane, at) select value, {now} from json_each(:served) where true
on conflict (lane) do update set at = excluded.at

-- name: untaken
select distinct t.job_id from json_each(:lanes) l left join lane_seen s on s.lane = l.value
cross join task t
where t.state = 'ready' and not t.parked and t.patience_ms is not null and t.lane = l.value
    and t.ready_at + t.patience_ms <= {now} and t.patience_ms <= {now} - coalesce(s.at, 0)
limit :wanted

-- name: pass_over
create temp table if not exists passed (id integer, stage integer);
delete from temp.passed;
insert into temp.passed
select t.id, t.stage from task t left join lane_seen s on s.lane = t.lane
where t.job_id = :job_id and t.state = 'ready' and not t.parked and t.patience_ms is not null
    and t.lane in (select value from json_each(:lanes))
    and t.ready_at + t.patience_ms <= {now} and t.patience_ms <= {now} - coalesce(s.at, 0);
update task set state = 'skipped', ended_at = :at where id in (select id from temp.passed);
select stage, count(*) as count from temp.passed group by stage
