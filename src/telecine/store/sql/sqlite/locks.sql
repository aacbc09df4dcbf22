-- name: lock_try
insert into lock (name, holder, worker, token, acquired_at, until) values (:name, :holder, :worker, 1, {now}, {now} + :ttl)
on conflict (name) do update set holder = excluded.holder, worker = excluded.worker, token = lock.token + 1,
    acquired_at = excluded.acquired_at, until = excluded.until
where lock.holder is null or lock.until <= {now}
returning token, acquired_at, until

-- name: lock_refresh
update lock set until = {now} + :ttl where name = :name and holder = :holder and until > {now}
returning name, holder, worker, token, acquired_at, until

-- name: lock_release
update lock set holder = null, worker = null, until = null, acquired_at = null
where name = :name and holder = :holder and until > {now} returning token

-- name: lock_get
select name, holder, worker, token, acquired_at, until from lock where name = :name and until > {now}

-- name: lock_list
select name, holder, worker, token, acquired_at, until from lock where until > {now} order by name
