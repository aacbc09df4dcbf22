-- name: live_jobs
select j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.priority, j.created_at,
    (select json_group_array(json_object('name', s.name, 'total', s.total,
        'never', s.state = 'skipped' and s.ended_at = j.created_at))
     from (select * from stage where job_id = j.id order by number) s) as stages
from job j where j.id in (select value from json_each(:ids))
union all
select a.job_id, null, a.flow, a.owner, json_extract(a.document, '$.job.subject[0]'),
    json_extract(a.document, '$.job.subject[1]'), json_extract(a.document, '$.job.priority'),
    json_extract(a.document, '$.job.created_at'),
    (select json_group_array(json_object('name', json_extract(s.value, '$.name'),
        'total', json_extract(s.value, '$.total'), 'never', 0))
     from json_each(a.document, '$.job.stages') s)
from archive a where a.job_id in (select value from json_each(:ids))

-- name: live_subjects
select s.kind, s.id, s.owner from json_each(:kinds) k join json_each(:ids) i on i.key = k.key
join subject s on s.kind = k.value and s.id = i.value
union all
select g.kind, g.id, g.owner from json_each(:kinds) k join json_each(:ids) i on i.key = k.key
join subject_gone g on g.kind = k.value and g.id = i.value
where not exists (select 1 from subject s where s.kind = g.kind and s.id = g.id)

-- name: live_workers
select id, name from worker where id in (select value from json_each(:ids))

-- name: live_begun
select e.job_id, e.seq, e.kind, s.name as stage from event e
join stage s on s.job_id = e.job_id and s.number = e.stage
where e.job_id in (select value from json_each(:ids)) and e.kind in ('task.started', 'stage.ready') order by e.seq

-- name: live_errors
select t.job_id, s.name as stage, t.error, t.tries, t.max_attempts from task t
join stage s on s.job_id = t.job_id and s.number = t.stage
where t.job_id in (select value from json_each(:ids)) and t.state = 'error' order by t.job_id, t.stage, t.ended_at, t.id

-- name: live_keys
select id from api_key where id in (select value from json_each(:ids)) and revoked_at is null
  and (expires_at is null or expires_at > {now})

-- name: live_owner_stats
select coalesce(sum(outcome is null and status = 'pending'), 0) as pending,
    coalesce(sum(outcome is null and status <> 'pending'), 0) as active,
    coalesce(sum(outcome = 'completed'), 0) as completed, coalesce(sum(outcome = 'failed'), 0) as failed,
    coalesce(sum(outcome = 'completed' and ended_at > {now} - 60000), 0) as lately
from (select status, outcome, ended_at from job where owner = :owner and owner <> '' order by id desc limit :most)

-- name: ticket_spend
-- The answer first: afterwards the ticket is gone.
create temp table if not exists admitted (id text, kind text, scope text, owner text, name text);
delete from temp.admitted;
insert into temp.admitted select k.id, k.kind, k.scope, k.owner, k.name
from api_key t join api_key k on k.id = json_extract(t.facts, '$.ticket_of')
where t.id = :id and t.kind = 'link' and t.revoked_at is null and t.expires_at > {now}
  and k.revoked_at is null and (k.expires_at is null or k.expires_at > {now});
delete from api_key where id = :id and exists (select 1 from temp.admitted);
select id, kind, scope, owner, name from temp.admitted
