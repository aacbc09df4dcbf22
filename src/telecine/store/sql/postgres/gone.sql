-- Deleting subjects. Whoever changes what becomes of a deleted one holds its row of `subject_gone` first, then the
-- subject, tasks and jobs.

-- name: gone_put
-- No row: somebody has deleted it already.
insert into subject_gone (kind, id, owner, at, actor)
select s.kind, s.id, s.owner, {now}, :actor from subject s where s.kind = :kind and s.id = :id
on conflict (kind, id) do update set owner = excluded.owner, at = excluded.at, actor = excluded.actor, cleared_at = null
where subject_gone.cleared_at is not null
returning at

-- name: gone_at
select at from subject_gone where kind = :kind and id = :id and cleared_at is null

-- name: gone_hold
select at from subject_gone where kind = :kind and id = :id and cleared_at is null for update

-- name: gone_some
-- Those that wait for their end, the oldest first.
select kind, id, at from subject_gone where cleared_at is null and (at, kind, id) > (:at::bigint, :kind::text, :id::text)
order by at, kind, id limit :wanted

-- name: gone_open
select id, cancel_asked from job_row
where subject_kind = :kind and subject_id = :id and outcome is null order by id limit :wanted

-- name: gone_ended
select j.id, j.ended_at, j.generation,
    (select coalesce(sum(s.total), 0) from stage s where s.job_id = j.id)::integer as tasks
from job_row j where j.subject_kind = :kind and j.subject_id = :id and j.outcome is not null order by j.id limit :wanted

-- name: gone_lock
-- Waits for submits that are under way; what they have submitted is seen by the next statement.
select 1 as here from subject where kind = :kind and id = :id for update

-- name: gone_jobs
select exists (select 1 from job_row where subject_kind = :kind and subject_id = :id) as found

-- name: gone_artifacts
delete from artifact where version_id = any (array(
    select id from subject_version where kind = :kind and subject_id = :id
)) returning key

-- name: gone_versions
with v as (
    delete from subject_version where kind = :kind and subject_id = :id
)
update subject set current_version = null, facts = '{}' where kind = :kind and id = :id

-- name: gone_note
update subject_gone set jobs = jobs || :jobs::text::jsonb where kind = :kind and id = :id

-- name: gone_end
with s as (
    delete from subject where kind = :kind and id = :id
)
update subject_gone set cleared_at = {now} where kind = :kind and id = :id

-- name: gone_forget
-- Those that hide nothing any more, and for long enough that nobody can still be writing for them.
delete from subject_gone where (kind, id) in (
    select kind, id from subject_gone where cleared_at <= {now} - :age::bigint order by cleared_at limit :wanted
) returning jobs::text as jobs
