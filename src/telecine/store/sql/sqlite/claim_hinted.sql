-- name: claim_hinted
-- `claim` (claims.sql explains it) that takes the hinted tasks first, if they can be claimed like any other, and then
-- walks the lanes. It also returns the lane of each task.
update task
set state = 'running', token = token + 1, tries = tries + 1, worker = :worker, request = :request,
    claimed_at = {now}, lease_until = {now} + :ttl,
    stops_at = {now} + min(coalesce(stall_ms, limit_ms), coalesce(limit_ms, stall_ms)), progress = null, note = null
where id in (
    select t.id from json_each(:lanes) as l
    join json_each((
        select json_group_array(c.id) from (
            select id from (
                select id from task where lane = l.value and state = 'ready' and not parked
                  -- Tasks of a deleted subject are passed over until they are cancelled.
                  and not (exists (select 1 from subject_gone where cleared_at is null) and exists (
                    select 1 from job d join subject_gone g on g.kind = d.subject_kind and g.id = d.subject_id
                    where d.id = task.job_id and g.cleared_at is null))
                order by rank, id limit :wanted
            )
            union
            select id from task
            where id in (select value from json_each(:hinted)) and lane = l.value and state = 'ready' and not parked
              and not (exists (select 1 from subject_gone where cleared_at is null) and exists (
                select 1 from job d join subject_gone g on g.kind = d.subject_kind and g.id = d.subject_id
                where d.id = task.job_id and g.cleared_at is null))
        ) c
    )) as j
    join task t on t.id = j.value
    where exists (
            select 1 from worker where id = :worker and mode = 'active' and gone_at is null and revoked_at is null
              and request is not :request
        )
      and not exists (select 1 from task where worker = :worker and state = 'running' and request = :request)
      and not exists (select 1 from flow where name = json_extract(:flows, '$[' || l.key || ']') and paused)
    order by t.id not in (select value from json_each(:hinted)), t.rank, t.id limit :wanted
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
    exists (select 1 from task where state = 'ready' and parked and ready_at <= {now}) as due, t.lane
from task t join job j on j.id = t.job_id
where t.worker = :worker and t.state = 'running' and t.request = :request
order by t.rank, t.id
