-- name: key_add
insert into api_key (id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at)
values (:id, :kind, :scope, :owner, :name, :secret_hash, :facts,
    {now}, {now} + :life)
returning created_at, expires_at

-- name: key_find
select id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key where id = :id

-- name: key_touch
update api_key set last_used_at = {now} where id = :id

-- name: key_list
select id, kind, scope, owner, name, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key
where (:owner is null or owner = :owner) and kind = :kind
order by created_at desc, id

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
delete from api_key where kind <> 'key' and expires_at < {now} - :age
returning id
