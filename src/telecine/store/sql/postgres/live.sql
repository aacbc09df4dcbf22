-- name: live_jobs
-- What readers of events need to know about jobs, also about those that were put away.
select j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.priority, j.created_at,
    (select json_agg(json_build_object('name', s.name, 'total', s.total,
        'never', s.state = 'skipped' and s.ended_at = j.created_at) order by s.number)::text
     from stage s where s.job_id = j.id) as stages
from job j where j.id = any (:ids::bigint[])
union all
select a.job_id, null, a.flow, a.owner, a.document #>> '{job,subject,0}', a.document #>> '{job,subject,1}',
    (a.document #>> '{job,priority}')::integer, (a.document #>> '{job,created_at}')::bigint,
    (select json_agg(json_build_object('name', s.value ->> 'name', 'total', (s.value ->> 'total')::integer, 'never', false)
        order by s.ordinality)::text
     from jsonb_array_elements(a.document #> '{job,stages}') with ordinality as s)
from archive a where a.job_id = any (:ids::bigint[])

-- name: live_subjects
-- Whose subjects are; one that is there comes before one that was.
select s.kind, s.id, s.owner from subject s
where (s.kind, s.id) in (select * from unnest(:kinds::text[], :ids::text[]))
union all
select g.kind, g.id, g.owner from subject_gone g
where (g.kind, g.id) in (select * from unnest(:kinds::text[], :ids::text[]))
  and not exists (select 1 from subject s where s.kind = g.kind and s.id = g.id)

-- name: live_workers
select id, name from worker where id = any (:ids::bigint[])

-- name: live_begun
-- What tells when stages of these jobs began, each time anew: opened, then first claimed.
select e.job_id, e.seq, e.kind, s.name as stage from event e
cross join lateral (select name from stage where job_id = e.job_id and number = e.stage limit 1) s
where e.job_id = any (:ids::bigint[]) and e.kind in ('task.started', 'stage.ready') order by e.seq

-- name: live_errors
-- What ended stages in error, the first of each in front.
select t.job_id, s.name as stage, t.error::text as error, t.tries, t.max_attempts from task t
cross join lateral (select name from stage where job_id = t.job_id and number = t.stage limit 1) s
where t.job_id = any (:ids::bigint[]) and t.flow_id is null and t.state = 'error' order by t.job_id, t.stage, t.ended_at, t.id

-- name: live_keys
-- Those of these keys that are valid now.
select id from api_key where id = any (:ids::text[]) and revoked_at is null and (expires_at is null or expires_at > {now})

-- name: live_owner_stats
-- How one owner's jobs stand, by the newest of them.
select coalesce(sum(case when outcome is null and status = 'pending' then 1 else 0 end), 0)::integer as pending,
    coalesce(sum(case when outcome is null and status <> 'pending' then 1 else 0 end), 0)::integer as active,
    coalesce(sum(case when outcome = 'completed' then 1 else 0 end), 0)::integer as completed,
    coalesce(sum(case when outcome = 'failed' then 1 else 0 end), 0)::integer as failed,
    coalesce(sum(case when outcome = 'completed' and ended_at > {now} - 60000 then 1 else 0 end), 0)::integer as lately
from (
    select * from (
        (select id, status, outcome, ended_at from job_row where owner between :owner and :owner and owner <> '' order by owner desc, id desc limit :most)
        union all
        (select id, status, outcome, ended_at from rowless where owner between :owner and :owner and owner <> '' order by owner desc, id desc limit :most)
    ) x order by id desc limit :most
) j

-- name: ticket_spend
-- A ticket works once, and only while the key that it was made with is valid.
delete from api_key t using api_key k
where t.id = :id and t.kind = 'link' and t.facts ->> 'ticket_of' = k.id and t.revoked_at is null and t.expires_at > {now}
  and k.revoked_at is null and (k.expires_at is null or k.expires_at > {now})
returning k.id, k.kind, k.scope, k.owner, k.name
