-- name: key_add
insert into api_key (id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at)
values (:id::text, :kind::text, :scope::text, :owner::text, :name::text, :secret_hash::text, :facts::jsonb,
    {now}, {now} + :life::bigint)
returning created_at, expires_at

-- name: key_find
select id, kind, scope, owner, name, secret_hash, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key where id = :id::text

-- name: key_touch
update api_key set last_used_at = {now} where id = :id::text

-- name: key_list
select id, kind, scope, owner, name, facts, created_at, expires_at, last_used_at, revoked_at, {now} as now
from api_key
where (:owner::text is null or owner = :owner::text) and kind = :kind::text
order by created_at desc, id

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
delete from api_key where kind <> 'key' and expires_at < {now} - :age::bigint
returning id
