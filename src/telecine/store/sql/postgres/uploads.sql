-- name: upload_turn
-- Two who begin at once must not be promised the same space.
select pg_advisory_xact_lock(hashtext('telecine.uploads:' || current_schema()))::text as mine

-- name: upload_awaited
select coalesce(sum(length - received), 0)::bigint as bytes, count(*) as uploads,
    count(*) filter (where owner = :owner::text) as theirs
from upload where state in ('open', 'refused') and state = 'open'

-- name: upload_held
-- What an owner has here, or will have: unfinished uploads and the sources of videos.
select coalesce(sum(length), 0)::bigint as bytes from upload
where owner = :owner::text and (state in ('open', 'checking') or how = 'submitted')

-- name: upload_add
insert into upload (id, owner, name, length, state, metadata, spec, created_at, updated_at, expires_at)
values (:id::text, :owner::text, :name::text, :length::bigint, 'open', :metadata::jsonb, :spec::jsonb, {now}, {now}, {now} + :life::bigint)
returning *, {now} as now

-- name: upload_find
select *, {now} as now from upload where id = :id::text

-- name: upload_hold
select *, {now} as now from upload where id = :id::text for no key update

-- name: uploads_all
select *, {now} as now from upload where (created_at, id) < (:before::bigint, :below::text)
order by created_at desc, id desc
limit :wanted::bigint

-- name: uploads_of_owner
select *, {now} as now from upload where owner = :owner::text and (created_at, id) < (:before::bigint, :below::text)
order by created_at desc, id desc
limit :wanted::bigint

-- name: upload_grow
update upload set received = :received::bigint, updated_at = {now}, expires_at = {now} + :life::bigint,
    state = case when :received::bigint = length then 'checking' else state end
where id = :id::text and state = 'open' and received = :before::bigint
returning *, {now} as now

-- name: upload_refuse
update upload set state = 'refused', error = :error::text, updated_at = {now}, expires_at = {now} + :life::bigint
where id = :id::text and state in ('open', 'checking')
returning *, {now} as now

-- name: upload_done
update upload set state = 'done', sha256 = :hash::text, job_id = :job_id::bigint, subject_id = :subject_id::text,
    how = :how::text, updated_at = {now}
where id = :id::text and state = 'checking'
returning *, {now} as now

-- name: upload_checking
select *, {now} as now from upload where state = 'checking' order by id limit :wanted::bigint

-- name: upload_expired
select id from upload where state in ('open', 'refused') and expires_at <= {now} order by expires_at limit :wanted::bigint

-- name: upload_drop
delete from upload where id = :id::text and state in ('open', 'refused') and (not :expired::boolean or expires_at <= {now})
returning id

-- name: upload_forget
delete from upload where subject_id = :subject_id::text and state = 'done'
returning id

-- name: upload_known
select id, state from upload where id = any(:ids::text[])

-- name: watched_find
select path, identity from watched where path = any(:paths::text[])

-- name: watched_put
insert into watched (path, identity, at, job_id, subject_id, error)
values (:path::text, :identity::text, {now}, :job_id::bigint, :subject_id::text, :error::text)
on conflict (path) do update set identity = excluded.identity, at = excluded.at, job_id = excluded.job_id,
    subject_id = excluded.subject_id, error = excluded.error

-- name: watched_touch
-- They are still there; said once a day.
update watched set at = {now} where path = any(:paths::text[]) and at < {now} - :age::bigint returning path
