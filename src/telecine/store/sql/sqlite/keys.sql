-- name: key_add
insert into api_key (id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at)
values (:id, :kind, :scope, :owner, :name, :secret_hash, :facts,
    {now}, {now} + :life)
returning created_at, expires_at

-- name: key_find
select id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key where id = :id

-- name: view_job_asked
select k.kind as key_kind, k.scope as key_scope, k.owner as key_owner, k.name as key_name,
    k.secret_hash as key_secret_hash, k.expires_at as key_expires_at, k.last_used_at as key_last_used_at,
    k.revoked_at as key_revoked_at, {now} as key_now,
    j.id, j.flow_id, j.flow, j.owner, j.subject_kind, j.subject_id, j.status, j.phase, j.priority, j.spec,
    j.dedupe_key, j.run_at, j.cancel_asked, j.version, j.generation, j.warnings, j.error, j.created_at,
    j.started_at, j.ended_at,
    (select json_group_array(json_object('number', s.number, 'state', s.state, 'waits', s.waits, 'total', s.total,
        'remaining', s.remaining, 'failed', s.failed, 'cancelled', s.cancelled, 'ended_at', s.ended_at))
        from (select * from stage where job_id = j.id order by number) s) as stages,
    (select json_group_array(json_object('stage', c.stage, 'state', c.state, 'count', c.count)) from (
        select t.stage, t.state, count(*) as count from task t where t.job_id = j.id group by t.stage, t.state) c) as tasks,
    (select json_group_array(f.after_id) from (select after_id from job_after where job_id = j.id order by after_id) f)
        as waits_for
from api_key k left join job j on j.id = :id and j.started_at is null and j.generation = 1
where k.id = :key_id

-- name: key_touch
update api_key set last_used_at = {now} where id = :id

-- name: key_list
-- Keys of programs, the newest first.
select id, kind, scope, owner, name, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key
where kind = 'key' and (created_at, id) < (:before, :below)
order by created_at desc, id desc limit :wanted

-- name: key_list_of
-- The same of one owner: those that open what is his.
select id, kind, scope, owner, name, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key
where owner = :owner and kind = 'key' and scope = 'owner'
  and (created_at, id) < (:before, :below)
order by created_at desc, id desc limit :wanted

-- name: key_turn
-- One writes at a time anyway; the PostgreSQL twin takes a lock.
select :owner as mine

-- name: key_count
select count(*) as valid from api_key
where owner = :owner and kind = 'key' and scope = 'owner' and revoked_at is null
  and (expires_at is null or expires_at > {now})

-- name: key_trim
-- Of those that are worth nothing any more, the newest are kept for whoever looks.
delete from api_key where id in (
    select id from api_key where owner = :owner and kind = 'key' and scope = 'owner'
      and (revoked_at is not null or expires_at <= {now})
    order by created_at desc, id desc limit -1 offset :most)

-- name: key_revoke
update api_key set revoked_at = {now}
where id = :id and revoked_at is null and (:owner is null or owner = :owner)
returning id, kind, scope, owner, name

-- name: key_spend
update api_key set revoked_at = {now}
where id = :id and kind = 'link' and revoked_at is null and expires_at > {now}
  and json_extract(facts, '$.ticket_of') is null
returning scope, owner, name

-- name: key_any
select exists (select 1 from api_key where scope = 'admin' and kind <> 'link' and revoked_at is null
    and (expires_at is null or expires_at > {now})) as found

-- name: key_prune
-- Links and sessions that ended so long ago; keys only if no worker came with them.
delete from api_key where id in (
    select k.id from api_key k where min(coalesce(k.revoked_at, k.expires_at), coalesce(k.expires_at, k.revoked_at))
        < {now} - case k.kind when 'key' then :age else :brief end
      and not exists (select 1 from worker_key w where w.key_id = k.id)
    limit :wanted)
returning id
