-- Deleting subjects: the twins of the PostgreSQL statements. Nothing is locked here: one writes at a time.

-- name: gone_put
insert into subject_gone (kind, id, owner, at, actor)
select s.kind, s.id, s.owner, {now}, :actor from subject s where s.kind = :kind and s.id = :id
on conflict (kind, id) do update set owner = excluded.owner, at = excluded.at, actor = excluded.actor, cleared_at = null
where subject_gone.cleared_at is not null
returning at

-- name: gone_at
select at from subject_gone where kind = :kind and id = :id and cleared_at is null

-- name: gone_hold
select at from subject_gone where kind = :kind and id = :id and cleared_at is null

-- name: gone_some
select kind, id, at from subject_gone where cleared_at is null and (at, kind, id) > (:at, :kind, :id)
order by at, kind, id limit :wanted

-- name: gone_open
select id, cancel_asked from job
where subject_kind = :kind and subject_id = :id and outcome is null order by id limit :wanted

-- name: gone_ended
select j.id, j.ended_at, j.generation,
    (select coalesce(sum(s.total), 0) from stage s where s.job_id = j.id) as tasks
from job j where j.subject_kind = :kind and j.subject_id = :id and j.outcome is not null order by j.id limit :wanted

-- name: gone_lock
select 1 as here from subject where kind = :kind and id = :id

-- name: gone_jobs
select exists (select 1 from job where subject_kind = :kind and subject_id = :id) as found

-- name: gone_artifacts
delete from artifact where version_id in (
    select id from subject_version where kind = :kind and subject_id = :id
) returning key

-- name: gone_versions
delete from subject_version where kind = :kind and subject_id = :id;
update subject set current_version = null, facts = '{}' where kind = :kind and id = :id

-- name: gone_note
update subject_gone set jobs = (
    select json_group_array(value) from (select value from json_each(subject_gone.jobs) union all select value from json_each(:jobs))
) where kind = :kind and id = :id

-- name: gone_end
delete from subject where kind = :kind and id = :id;
update subject_gone set cleared_at = {now} where kind = :kind and id = :id

-- name: gone_forget
delete from subject_gone where (kind, id) in (
    select kind, id from subject_gone where cleared_at <= {now} - :age order by cleared_at limit :wanted
) returning jobs
