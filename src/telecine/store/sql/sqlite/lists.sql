-- Lists of jobs: one statement per way into the table, because a condition that may be absent would hide the index.
-- All take the same filters and answer with ids, newest first.

-- name: jobs_all
select id, null as ended_at from job
where id < :below and id >= :above and created_at >= :since and created_at < :until
  and (:owner is null or owner = :owner)
  and (:status is null or status = :status) and (not :open or outcome is null)
order by id desc limit :wanted

-- name: jobs_of_flow
select id, null as ended_at from job
where flow = :flow and id < :below and id >= :above and created_at >= :since and created_at < :until
  and (:owner is null or owner = :owner)
  and (:status is null or status = :status) and (not :open or outcome is null)
order by id desc limit :wanted

-- name: jobs_of_owner
select id, null as ended_at from job
where owner = :owner and owner <> '' and id < :below and id >= :above and created_at >= :since and created_at < :until
  and (:flow is null or flow = :flow)
  and (:status is null or status = :status) and (not :open or outcome is null)
order by id desc limit :wanted

-- name: jobs_of_subject
select id, null as ended_at from job
where subject_kind = :subject_kind and subject_id = :subject_id and id < :below and id >= :above
  and created_at >= :since and created_at < :until
  and (:owner is null or owner = :owner) and (:flow is null or flow = :flow)
  and (:status is null or status = :status) and (not :open or outcome is null)
order by id desc limit :wanted

-- name: jobs_open
select id, null as ended_at from job indexed by job_open
where outcome is null and id < :below and id >= :above and created_at >= :since and created_at < :until
  and (:owner is null or owner = :owner) and (:flow is null or flow = :flow)
  and (:status is null or status = :status)
order by id desc limit :wanted

-- name: jobs_ended
select id, ended_at from job
where outcome = :status and (ended_at, id) < (:ended, :below)
  and (:owner is null or owner = :owner) and (:flow is null or flow = :flow)
order by ended_at desc, id desc limit :wanted

-- name: job_id_near
-- Ids are given in the order of time (but for a moment), so a time is found by halving.
select id, created_at from job where id >= :id order by id limit 1

-- name: job_id_edges
select (select min(id) from job) as first, (select max(id) from job) as last
