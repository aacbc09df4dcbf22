-- What players ask for. All go by the video, so that nobody sees what belongs to another one, or was deleted.

-- name: watch_version
-- One version, or the one that is shown. `lingers`: it was shown until not long ago, and some may still be watching it.
select s.owner, v.id, v.number, v.job_id, v.id = s.current_version or coalesce(v.left_at > {now} - :linger::bigint, false) as lingers,
    {now} as now
from subject s join subject_version v on v.kind = s.kind and v.subject_id = s.id
where s.kind = :kind and s.id = :id
  and case when :number::integer is null then v.id = s.current_version else v.number = :number end
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)

-- name: watch_file
-- A file of one of its versions, or of a job of it that has not published it.
select s.owner, a.name, a.key, a.size, a.sha256, a.version_id is not null as published,
    coalesce(v.id = s.current_version or v.left_at > {now} - :linger::bigint, false) as lingers, {now} as now
from subject s cross join artifact a
left join subject_version v on v.id = a.version_id left join job_row j on j.id = a.job_id
where s.kind = :kind and s.id = :id and a.id = :artifact and a.token = :token and a.key is not null
  and case when a.version_id is not null then v.kind = s.kind and v.subject_id = s.id
      else j.subject_kind = s.kind and j.subject_id = s.id end
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)

-- name: watch_beside
-- Pictures of a version, by name.
select a.name, a.key, a.size, a.sha256 from artifact a
where a.version_id = :version and a.stage = any (:stages::text[]) and a.name = :name and a.key is not null
order by a.id limit 1

-- name: watch_names
-- Where some files of a version are; a film has thousands of others.
select stage, name, key from artifact where version_id = :version and name = any (:names::text[]) and key is not null
order by id

-- name: watch_job
select s.owner, j.status, {now} as now from subject s join job_row j on j.subject_kind = s.kind and j.subject_id = s.id
where s.kind = :kind and s.id = :id and j.id = :job_id and j.flow = :flow
  and not exists (select 1 from subject_gone g where g.kind = s.kind and g.id = s.id and g.cleared_at is null)

-- name: secret_put
insert into secret (name, value) values (:name, :value) on conflict do nothing

-- name: secret_get
select value, {now} as now from secret where name = :name
