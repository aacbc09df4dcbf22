-- name: event_lock
select '' as mine

-- name: event_number
-- Nothing to do: one writer at a time, so the id is given in the order of commits.
select min(0, :wanted) as numbered

-- name: event_after
select seq, at, kind, job_id, task_id, stage, token, worker, data from event
where seq > :seq and (:job_id is null or job_id = :job_id) order by seq limit :wanted

-- name: event_edge
select coalesce((select seq from sqlite_sequence where name = 'event'), 0) as newest, pruned from event_counter

-- name: event_of_job
select seq, at, kind, job_id, task_id, stage, token, worker, data from event
where job_id = :job_id order by seq limit :wanted

-- name: event_say
insert into event (at, kind, job_id, task_id, stage, token, worker, data)
values ({now}, :kind, :job_id, :task_id, :stage, :token, :worker, :data)
