-- name: upload_turn
-- One writer at a time anyway. The PostgreSQL twin takes a lock, so that two cannot be promised the same space.
select 1 as mine

-- name: upload_awaited
select coalesce(sum(length - received), 0) as bytes, count(*) as uploads,
    count(*) filter (where owner = :owner) as theirs
from upload where state in ('open', 'refused') and state = 'open'  -- both: so the index is found

-- name: upload_held
-- What an owner has here, or will have: unfinished uploads and the sources of videos.
select coalesce(sum(length), 0) as bytes from upload
where owner = :owner and (state in ('open', 'checking') or how = 'submitted')

-- name: upload_add
insert into upload (id, owner, name, length, state, metadata, spec, created_at, updated_at, expires_at)
values (:id, :owner, :name, :length, 'open', :metadata, :spec, {now}, {now}, {now} + :life)
returning *, {now} as now

-- name: upload_find
select *, {now} as now from upload where id = :id

-- name: upload_hold
-- The PostgreSQL twin locks the row.
select *, {now} as now from upload where id = :id

-- name: uploads_all
select *, {now} as now from upload where (created_at, id) < (:before, :below)
order by created_at desc, id desc
limit :wanted

-- name: uploads_of_owner
select *, {now} as now from upload where owner = :owner and (created_at, id) < (:before, :below)
order by created_at desc, id desc
limit :wanted

-- name: upload_grow
update upload set received = :received, updated_at = {now}, expires_at = {now} + :life,
    state = case when :received = length then 'checking' else state end
where id = :id and state = 'open' and received = :before
returning *, {now} as now

-- name: upload_refuse
update upload set state = 'refused', error = :error, updated_at = {now}, expires_at = {now} + :life
where id = :id and state in ('open', 'checking')
returning *, {now} as now

-- name: upload_done
update upload set state = 'done', sha256 = :hash, job_id = :job_id, subject_id = :subject_id,
    how = :how, updated_at = {now}
where id = :id and state = 'checking'
returning *, {now} as now

-- name: upload_checking
select *, {now} as now from upload where state = 'checking' order by id limit :wanted

-- name: upload_expired
select id from upload where state in ('open', 'refused') and expires_at <= {now} order by expires_at limit :wanted

-- name: upload_drop
delete from upload where id = :id and state in ('open', 'refused') and (not :expired or expires_at <= {now})
returning id

-- name: upload_forget
delete from upload where subject_id = :subject_id and state = 'done'
returning id

-- name: upload_known
select id, state from upload where id in (select value from json_each(:ids))

-- name: watched_find
select path, identity from watched where path in (select value from json_each(:paths))

-- name: watched_put
insert into watched (path, identity, at, job_id, subject_id, error)
values (:path, :identity, {now}, :job_id, :subject_id, :error)
on conflict (path) do update set identity = excluded.identity, at = excluded.at, job_id = excluded.job_id,
    subject_id = excluded.subject_id, error = excluded.error

-- name: watched_touch
-- They are still there; said once a day.
update watched set at = {now} where path in (select value from json_each(:paths)) and at < {now} - :age returning path
