-- name: claim
-- Walks each served lane in rank order, takes the best, and grants them unless their job is winding down.
-- The worker's row is locked, so a drain that was acknowledged is obeyed. Tasks are locked first, then jobs, in id
-- order, by the update that begins them: it waits for whoever holds one and looks at it anew, so a cancel that
-- commits meanwhile is seen. A job that was begun before is written again all the same: to lock it costs no less. A job
-- without a row is its task (`flow_id`), and cannot be winding down; if it was given a row since this statement began, it is
-- not seen here, comes back as if it wound down, and is claimed the next time.
-- A repeat of the request gets nothing: what the first one was granted is told by `overlooked`. If it comes while the
-- first is still under way, it waits for it at the worker's row and sees there that its request was the last one granted.
-- Sets are handed on as arrays: joins between them would be planned as nested loops.
-- `due` says whether something parked could be unparked by now: a claim that comes up short need not go and look.
-- The clock is read once: to read it costs more than to write what it says.
-- `claim_hinted` and `claim_after` repeat most of it; a unit test compares the parts that must agree.
with clock as materialized (
    select {now} as now
), due as materialized (
    select exists (select 1 from task where state = 'ready' and parked and ready_at <= (select now from clock)) as yes
), buried as materialized (
    select exists (select 1 from subject_gone where cleared_at is null) as yes
), me as materialized (
    select request from worker where id = :worker and mode = 'active' and gone_at is null and revoked_at is null
    for no key update
), served as materialized (
    select l.lane from unnest(:lanes::text[], :flows::text[]) as l (lane, flow)
    where exists (select 1 from me where request is distinct from :request)
      and not exists (select 1 from task where worker = :worker and state = 'running' and request = :request)
      and not exists (select 1 from flow f where f.name = l.flow and f.paused)
), candidate as materialized (
    select c.id, c.job_id, c.rank, c.flow_id from served cross join lateral (
        select t.id, t.job_id, t.rank, t.flow_id from task t
        where t.lane = served.lane and t.state = 'ready' and not t.parked
          -- Tasks of a deleted subject are passed over until they are cancelled.
          and not ((select yes from buried) and exists (
            select 1 from job_row j join subject_gone g on g.kind = j.subject_kind and g.id = j.subject_id
            where j.id = t.job_id and g.cleared_at is null))
        order by t.rank, t.id
        limit :wanted
        for no key update skip locked
    ) c
), picked as materialized (
    select id, job_id, flow_id from candidate order by rank, id limit :wanted
), begun as (
    update job_row j set status = case j.status when 'pending' then j.phase else j.status end,
        started_at = coalesce(j.started_at, (select now from clock))
    -- One by one, in this order: a plan for all at once might take them as they lie.
    from unnest(array(select distinct job_id from picked where flow_id is null order by job_id)) as p (id)
    where j.id = p.id and not (j.cancel_asked or j.failing)
    returning j.id, j.flow_id, j.spec, j.owner, j.subject_kind, j.subject_id
), halted as materialized (
    select job_id as id from picked
    where flow_id is null and (select count(distinct job_id) from picked where flow_id is null) > (select count(*) from begun)
      and job_id <> all (array(select id from begun))
), granted as (
    update task t
    set state = 'running', token = t.token + 1, tries = t.tries + 1, worker = :worker, request = :request,
        claimed_at = (select now from clock), lease_until = (select now from clock) + :ttl::bigint,
        stops_at = (select now from clock) + least(t.stall_ms, t.limit_ms), progress = null, note = null
    where t.id = any (array(select id from picked)) and t.job_id <> all (array(select id from halted))
    returning t.id, t.job_id, t.stage, t.position, t.token, t.tries, t.max_attempts, t.lease_until, t.input, t.kept,
        t.limit_ms, t.rank, t.flow_id, t.spec, t.owner
), noted as (
    update worker set request = :request where id = :worker and exists (select 1 from granted)
), said as (
    insert into unnumbered (at, kind, worker, job_ids, task_ids, stages, tokens)
    select (select now from clock), 'task.started', :worker, array_agg(job_id), array_agg(id), array_agg(stage), array_agg(token)
    from granted having count(*) > 0
)
select g.id, g.job_id, g.stage, g.position, g.token, g.tries, g.max_attempts, g.lease_until, g.input, g.kept, g.limit_ms,
    coalesce(g.flow_id, j.flow_id) as flow_id, coalesce(g.spec, j.spec) as spec, coalesce(g.owner, j.owner) as owner,
    j.subject_kind, j.subject_id, g.flow_id is not null as lone,
    g.rank, false as halted, (select yes from due) as due
-- Each that was begun has its match. Said as a full join, which cannot be planned as a nested loop.
from granted g full join begun j on j.id = g.job_id
union all
select p.id, p.job_id, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, 0, true,
    (select yes from due)
from picked p where p.job_id = any (array(select id from halted))
order by rank, id

-- name: overlooked
-- For a claim that got nothing: is it a repeat, with leases already? If not: could something parked be unparked by now,
-- or does something stand there that others had locked, or that came since? Reads only. Always a row; without a lease
-- its id is null.
select t.id, t.job_id, t.stage, t.position, t.token, t.tries, t.max_attempts, t.lease_until, t.input, t.kept, t.limit_ms,
    coalesce(t.flow_id, j.flow_id) as flow_id, coalesce(t.spec, j.spec) as spec, coalesce(t.owner, j.owner) as owner,
    j.subject_kind, j.subject_id, t.flow_id is not null as lone,
    t.rank, t.lane, x.due, x.standing
from (
    select exists (select 1 from task where state = 'ready' and parked and ready_at <= {now}) as due, exists (
        select 1 from unnest(:lanes::text[], :flows::text[]) as l (lane, flow)
        cross join lateral (
            select 1 from task t where t.lane = l.lane and t.state = 'ready' and not t.parked limit 1
        ) c
        where l.flow not in (select name from flow where paused)
    ) as standing
) x
left join (
    task t left join job_row j on j.id = t.job_id
) on t.worker = :worker and t.state = 'running' and t.request = :request
order by t.rank, t.id

-- name: glance
-- Would a claim find anything in these lanes? Reads only; wakes the writer for nothing otherwise. What stands in a flow
-- that is paused is nothing: whoever looked at it would claim in vain, each second, for as long as the pause lasts.
select exists (
    select 1 from unnest(:lanes::text[], :flows::text[]) as l (lane, flow)
    cross join lateral (
        select 1 from task t where t.lane = l.lane and t.state = 'ready' and not t.parked limit 1
    ) c
    where l.flow not in (select name from flow where paused)
) or exists (
    select 1 from task t where t.state = 'ready' and t.parked and t.ready_at <= {now}
) as found

-- name: unpark
-- What is due becomes claimable. Called by the sweep and by a claim that came up short.
with due as materialized (
    select id from task where state = 'ready' and parked and ready_at <= {now}
    order by ready_at limit :wanted for no key update skip locked
)
update task t set parked = false from due where t.id = due.id returning t.id, t.lane
