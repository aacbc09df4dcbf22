-- name: event_lock
select '' as mine

-- name: event_number
-- Nothing to do: one writer at a time, so the id is given in the order of commits.
select min(0, :wanted) as numbered

-- name: event_after
select coalesce((select seq from sqlite_sequence where name = 'event'), 0) as newest, c.pruned, 0 as unnumbered,
    e.seq, e.at, e.kind, e.job_id, e.task_id, s.name as stage, t.position, e.token, e.worker, e.data
from event_counter c
left join (select * from event where seq > :seq order by seq limit :wanted) e on true
left join stage s on s.job_id = e.job_id and s.number = e.stage
left join task t on t.id = e.task_id
order by e.seq

-- name: event_after_of_job
select coalesce((select seq from sqlite_sequence where name = 'event'), 0) as newest, c.pruned, 0 as unnumbered,
    e.seq, e.at, e.kind, e.job_id, e.task_id, s.name as stage, t.position, e.token, e.worker, e.data
from event_counter c
left join (select * from event where job_id = :job_id and seq > :seq order by seq limit :wanted) e on true
left join stage s on s.job_id = e.job_id and s.number = e.stage
left join task t on t.id = e.task_id
order by e.seq

-- name: event_say
insert into event (at, kind, job_id, task_id, stage, token, worker, data)
values ({now}, :kind, :job_id, :task_id, :stage, :token, :worker, :data)
