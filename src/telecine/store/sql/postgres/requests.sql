-- What the public API asks beyond the views: whose things are, dead letters of an owner, stale tasks, deleted jobs.

-- name: job_owners
-- Archived jobs too, unless somebody deleted them. `going`: deleted, but not ended yet.
select j.id, j.owner, j.outcome, false as archived, exists (select 1 from job_gone g where g.job_id = j.id) as going
from job j where j.id = any (:ids::bigint[])
union all
select a.job_id, a.owner, a.outcome, true, false from archive a
where a.job_id = any (:ids::bigint[]) and not exists (select 1 from job_gone g where g.job_id = a.job_id)

-- name: task_owner
select t.job_id, t.state, j.owner, j.outcome
from task t cross join lateral (select owner, outcome from job where id = t.job_id limit 1) j where t.id = :id

-- name: job_gone_put
insert into job_gone (job_id, owner, at, actor) values (:id, :owner, {now}, :actor) on conflict do nothing

-- name: job_gone_due
-- Deleted jobs that have ended since; those that retention has put away meanwhile come without an end.
select g.job_id as id, j.ended_at, j.generation from job_gone g left join lateral (
    select id, outcome, ended_at, generation from job where id = g.job_id limit 1
) j on true
where g.cleared_at is null and (j.id is null or j.outcome is not null) order by g.at limit :wanted

-- name: job_gone_clear
update job_gone set cleared_at = {now} where job_id = any (:ids::bigint[]) returning job_id

-- name: job_ended_at
select id, ended_at, generation from job where id = :id and outcome is not null

-- name: tasks_by_id
select t.id, t.job_id, j.flow_id, t.stage, t.position, t.lane, t.state, t.parked, t.optional, t.ready_at, t.token, t.tries,
    t.losses, t.releases, t.max_attempts, t.worker, w.name as worker_name, t.claimed_at, t.lease_until, t.progress, t.note,
    t.kept, t.input::text as input, t.result::text as result, t.error::text as error, t.ended_at, {now} as now
from task t cross join lateral (select flow_id from job where id = t.job_id limit 1) j left join worker w on w.id = t.worker
where t.id = any (:ids::bigint[])

-- name: failed_of_owner
-- By the index of the owner's jobs, the newest first.
select t.id, t.job_id from (
    select id from job_row where owner between :owner and :owner and owner <> '' and id < :below and outcome = 'failed'
      and (:flow::text is null or flow = :flow)
    order by owner desc, id desc limit :wanted
) j join task t on t.job_id = j.id and t.flow_id is null and t.state = 'error'
order by j.id desc, t.stage, t.position

-- name: stale_tasks
-- Walks so many rows of the index of the claim, no more; the last one comes too, stale or not: there it goes on.
with near as materialized (
    select id, job_id, lane, rank, ready_at from task
    where state = 'ready' and not parked and (lane, rank, id) > (:lane::text, :rank::bigint, :after::bigint)
    order by lane, rank, id limit :most
), edge as materialized (
    select id from near order by lane desc, rank desc, id desc limit 1
)
select s.id, s.lane, s.rank,
    s.ready_at <= {now} - :age::bigint and (:owner::text is null or j.owner = :owner)
      and (:flow::text is null or j.flow = :flow) as stale,
    s.id = (select id from edge) as last, (select count(*) from near)::integer as walked
from near s cross join lateral (select owner, flow from job where id = s.job_id limit 1) j
where s.id = (select id from edge) or (s.ready_at <= {now} - :age::bigint
  and (:owner::text is null or j.owner = :owner) and (:flow::text is null or j.flow = :flow))
order by s.lane, s.rank, s.id limit :wanted

-- name: stats_jobs_of_owner
select status as state, count(*)::integer as count from (
    select * from (
        (select id, status from job_row where owner between :owner and :owner and owner <> '' order by owner desc, id desc limit :most)
        union all
        (select id, status from rowless where owner between :owner and :owner and owner <> '' order by owner desc, id desc limit :most)
    ) j order by id desc limit :most
) o group by status

-- name: stats_tasks_of_owner
select case when t.state = 'ready' and t.parked then 'parked' else t.state end as state, count(*)::integer as count from (
    select t.state, t.parked from (
        -- (The outcome is compared as an expression, lest the planner look at all open jobs instead of at the owner's.)
        select id from (
            (select id from job_row where owner between :owner and :owner and owner <> '' and (outcome is null) is true order by owner desc, id desc limit :most)
            union all
            (select id from rowless where owner between :owner and :owner and owner <> '' and (outcome is null) is true order by owner desc, id desc limit :most)
        ) x order by id desc limit :most
    ) j cross join lateral (
        select state, parked from job_task where job_id = j.id and state in ('new', 'ready', 'running') offset 0
    ) t limit :most
) t group by 1

-- name: key_of_worker
select key_id from worker_key where worker = :id
