-- name: remote_came
select worker from worker_key where key_id = :key_id::text and request = :request::text

-- name: remote_bind
insert into worker_key (worker, key_id, request) values (:worker::bigint, :key_id::text, :request::text)

-- name: remote_worker
select w.id, w.name, w.release, k.key_id from worker_key k join worker w on w.id = k.worker where k.worker = :id::bigint

-- name: remote_crew
select w.id from worker_key k join worker w on w.id = k.worker
where k.key_id = :key_id::text and w.gone_at is null and w.revoked_at is null order by w.id

-- name: remote_barred
-- Workers that came with a key which is not valid any more.
select w.id from worker w join worker_key k on k.worker = w.id left join api_key a on a.id = k.key_id
where w.gone_at is null and w.revoked_at is null
  and (a.id is null or a.revoked_at is not null or a.expires_at <= {now})
order by w.id

-- name: remote_lease
select t.id, t.job_id, t.stage, t.position, t.token, t.tries, t.max_attempts, t.lease_until, t.input, t.kept, t.limit_ms,
    t.worker, j.flow_id, j.spec, j.owner, j.subject_kind, j.subject_id, j.cancel_asked, {now} as now
from task t cross join lateral (
    select flow_id, spec, owner, subject_kind, subject_id, cancel_asked from job where id = t.job_id limit 1
) j join worker_key k on k.worker = t.worker
where t.id = :id::bigint and t.token = :token::bigint and t.state = 'running' and k.key_id = :key_id::text

-- name: remote_owned
-- What this key's workers hold, or have held: a token belongs to one worker for ever.
select t.id, t.token from unnest(:ids::bigint[], :tokens::bigint[]) as i (id, token)
join task t on t.id = i.id and t.token = i.token
join worker_key k on k.worker = t.worker
where t.state = 'running' and k.key_id = :key_id::text
union
select a.task_id, a.token from unnest(:ids::bigint[], :tokens::bigint[]) as i (id, token)
cross join lateral (select * from attempt where task_id = i.id and token = i.token limit 1) a
join worker_key k on k.worker = a.worker
where k.key_id = :key_id::text

-- name: remote_readable
-- An artifact of the job, or of the version that its subject shows.
select size, sha256 from artifact
where key = :key::text and (job_id = :job_id::bigint
    or version_id = (select current_version from subject where kind = :kind::text and id = :subject::text))
limit 1

-- name: remote_recorded
select token, key, size, sha256 from artifact where task_id = :task_id::bigint and name = :name::text and key is not null

-- name: remote_running
select t.id, t.token from unnest(:ids::bigint[], :tokens::bigint[]) as i (id, token)
join task t on t.id = i.id and t.token = i.token where t.state = 'running'
