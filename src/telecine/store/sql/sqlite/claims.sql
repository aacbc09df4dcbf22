-- name: claim
-- No SKIP LOCKED here: SQLite has one writer at a time, so nobody else can hold these rows, and a job that winds
-- down has no ready task left. There is no lateral join: each lane is walked by a correlated subquery, so that a
-- backlog elsewhere costs nothing. A repeat of the request changes no row, hence says no event.
-- `claim_hinted` repeats most of it; a unit test compares the parts that must agree.
update task
set state = 'running', token = token + 1, tries = tries + 1, worker = :worker, request = :request,
    claimed_at = {now}, lease_until = {now} + :ttl,
    stops_at = {now} + min(coalesce(stall_ms, limit_ms), coalesce(limit_ms, stall_ms)), progress = null, note = null
where id in (
    select t.id from json_each(:lanes) as l
    join json_each((
        select json_group_array(c.id) from (
            select id from task where lane = l.value and state = 'ready' and not parked
              -- Tasks of a deleted subject are passed over until they are cancelled.
              and not (exists (select 1 from subject_gone where cleared_at is null) and exists (
                select 1 from job d join subject_gone g on g.kind = d.subject_kind and g.id = d.subject_id
                where d.id = task.job_id and g.cleared_at is null))
            order by rank, id limit :wanted
        ) c
    )) as j
    join task t on t.id = j.value
    where exists (
            select 1 from worker where id = :worker and mode = 'active' and gone_at is null and revoked_at is null
              and request is not :request
        )
      and not exists (select 1 from task where worker = :worker and state = 'running' and request = :request)
      and not exists (select 1 from flow where name = json_extract(:flows, '$[' || l.key || ']') and paused)
    order by t.rank, t.id limit :wanted
);
insert into event (at, kind, job_id, task_id, stage, token, worker)
select {now}, 'task.started', job_id, id, stage, token, :worker
from task where changes() > 0 and worker = :worker and state = 'running' and request = :request;
update worker set request = :request where id = :worker and changes() > 0;
update job set status = phase, started_at = coalesce(started_at, {now})
where status = 'pending'
  and id in (select job_id from task where worker = :worker and state = 'running' and request = :request);
select t.id, t.job_id, t.stage, t.position, t.token, t.tries, t.max_attempts, t.lease_until, t.input, t.kept, t.limit_ms,
    j.flow_id, j.spec, j.owner, j.subject_kind, j.subject_id, 1 as lone, t.rank, 0 as halted,
    exists (select 1 from task where state = 'ready' and parked and ready_at <= {now}) as due
from task t join job j on j.id = t.job_id
where t.worker = :worker and t.state = 'running' and t.request = :request
order by t.rank, t.id

-- name: overlooked
select t.id, t.job_id, t.stage, t.position, t.token, t.tries, t.max_attempts, t.lease_until, t.input, t.kept, t.limit_ms,
    j.flow_id, j.spec, j.owner, j.subject_kind, j.subject_id, 1 as lone, t.rank, t.lane, x.due,
    x.standing
from (
    select exists (select 1 from task where state = 'ready' and parked and ready_at <= {now}) as due, exists (
        select 1 from json_each(:lanes) as l
        where json_extract(:flows, '$[' || l.key || ']') not in (select name from flow where paused)
          and exists (select 1 from task where lane = l.value and state = 'ready' and not parked)
    ) as standing
) x
left join task t on t.worker = :worker and t.state = 'running' and t.request = :request
left join job j on j.id = t.job_id
order by t.rank, t.id

-- name: glance
select exists (
    select 1 from json_each(:lanes) as l
    where json_extract(:flows, '$[' || l.key || ']') not in (select name from flow where paused)
      and exists (select 1 from task where lane = l.value and state = 'ready' and not parked)
) or exists (
    select 1 from task where state = 'ready' and parked and ready_at <= {now}
) as found

-- name: unpark
update task set parked = 0
where id in (select id from task where state = 'ready' and parked and ready_at <= {now} order by ready_at limit :wanted)
returning id, lane
