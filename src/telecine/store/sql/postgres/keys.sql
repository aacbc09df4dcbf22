-- name: key_add
insert into api_key (id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at)
values (:id::text, :kind::text, :scope::text, :owner::text, :name::text, :secret_hash::text, :facts::jsonb,
    {now}, {now} + :life::bigint)
returning created_at, expires_at

-- name: key_find
select id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key where id = :id::text

-- name: view_job_asked
-- The key of whoever asks, and the job if it waits: one round trip for what is asked most. What has begun has more to
-- tell, and view_job tells it; each of its parts costs time here, even one that is left out.
select k.kind as key_kind, k.scope as key_scope, k.owner as key_owner, k.name as key_name,
    k.secret_hash as key_secret_hash, k.expires_at as key_expires_at, k.last_used_at as key_last_used_at,
    k.revoked_at as key_revoked_at, {now} as key_now,
    j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.status, j.phase, j.priority, j.spec::text as spec,
    j.dedupe_key, j.run_at, j.cancel_asked, j.version, j.generation, j.warnings, j.error::text as error, j.created_at,
    j.started_at, j.ended_at,
    (select json_agg(s)::text from (
        select number, state, waits, total, remaining, failed, cancelled, ended_at from stage
        where job_id = j.id order by number) s) as stages,
    (select json_agg(c)::text from (
        select t.stage, t.state, count(*) as count from job_task t where t.job_id = j.id group by t.stage, t.state) c) as tasks,
    (select json_agg(f.after_id order by f.after_id)::text from job_after f where f.job_id = j.id) as waits_for
from api_key k left join job j on j.id = :id and j.started_at is null and j.generation = 1
where k.id = :key_id::text

-- name: key_touch
update api_key set last_used_at = {now} where id = :id::text

-- name: key_list
-- Keys of programs, the newest first.
select id, kind, scope, owner, name, facts::text as facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key
where kind = 'key' and (created_at, id) < (:before::bigint, :below::text)
order by created_at desc, id desc limit :wanted::bigint

-- name: key_list_of
-- The same of one owner: those that open what is his.
select id, kind, scope, owner, name, facts::text as facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key
where owner = :owner::text and kind = 'key' and scope = 'owner'
  and (created_at, id) < (:before::bigint, :below::text)
order by created_at desc, id desc limit :wanted::bigint

-- name: key_turn
-- Two who make the last one at once must not both get it.
select pg_advisory_xact_lock(hashtext('telecine.keys:' || current_schema() || :owner::text))::text as mine

-- name: key_count
select count(*) as valid from api_key
where owner = :owner::text and kind = 'key' and scope = 'owner' and revoked_at is null
  and (expires_at is null or expires_at > {now})

-- name: key_trim
-- Of those that are worth nothing any more, the newest are kept for whoever looks.
delete from api_key where id in (
    select id from api_key where owner = :owner::text and kind = 'key' and scope = 'owner'
      and (revoked_at is not null or expires_at <= {now})
    order by created_at desc, id desc limit all offset :most::bigint)

-- name: key_revoke
update api_key set revoked_at = {now}
where id = :id::text and revoked_at is null and (:owner::text is null or owner = :owner::text)
returning id, kind, scope, owner, name

-- name: key_spend
update api_key set revoked_at = {now}
where id = :id::text and kind = 'link' and revoked_at is null and expires_at > {now} and facts ->> 'ticket_of' is null
returning scope, owner, name

-- name: key_any
select exists (select 1 from api_key where scope = 'admin' and kind <> 'link' and revoked_at is null
    and (expires_at is null or expires_at > {now})) as found

-- name: key_prune
-- Links and sessions that ended so long ago; keys only if no worker came with them.
delete from api_key where id in (
    select k.id from api_key k where least(k.revoked_at, k.expires_at)
        < {now} - case k.kind when 'key' then :age::bigint else :brief::bigint end
      and not exists (select 1 from worker_key w where w.key_id = k.id)
    limit :wanted::bigint)
returning id
