-- name: claim_after
-- `claim` (claims.sql explains it) that starts its walk after a given rank and id. If it finds too few tasks there, it
-- takes the rest from before that position. Only this driver uses it: see store/claim_cursor.py.
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
          and (t.rank, t.id) > (:after_rank::bigint, :after_id::bigint)
          -- Tasks of a deleted subject are passed over until they are cancelled.
          and not ((select yes from buried) and exists (
            select 1 from job_row j join subject_gone g on g.kind = j.subject_kind and g.id = j.subject_id
            where j.id = t.job_id and g.cleared_at is null))
        order by t.rank, t.id
        limit :wanted
        for no key update skip locked
    ) c
), passed as materialized (
    select c.id, c.job_id, c.rank, c.flow_id from served cross join lateral (
        select t.id, t.job_id, t.rank, t.flow_id from task t
        where t.lane = served.lane and not t.parked and t.state = 'ready'
          and (t.rank, t.id) <= (:after_rank::bigint, :after_id::bigint)
          and not ((select yes from buried) and exists (
            select 1 from job_row j join subject_gone g on g.kind = j.subject_kind and g.id = j.subject_id
            where j.id = t.job_id and g.cleared_at is null))
        order by t.rank, t.id
        limit greatest(0, :wanted - (select count(*) from candidate))
        for no key update skip locked
    ) c
), picked as materialized (
    select id, job_id, flow_id from (
        select * from candidate
        union all
        select * from passed
    ) c
    order by rank, id limit :wanted
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
