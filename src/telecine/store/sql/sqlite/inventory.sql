-- name: tally
select s.name as stage, substr(a.name, 1, instr(a.name, '/') - 1) as folder, count(*) as files, sum(a.size) as bytes,
    min(a.created_at) as first_at, max(a.created_at) as last_at
from artifact a
join task t on t.id = a.task_id
join stage s on s.job_id = t.job_id and s.number = t.stage
where a.job_id = :job_id and a.key is not null and instr(a.name, '/') > 0
group by 1, 2 order by 1, 2

-- name: result_of
select t.result from stage s join task t on t.job_id = s.job_id and t.stage = s.number
where s.job_id = :job_id and s.name = :stage and t.position = 0 and t.state = 'done'

-- name: kept_of_version
select id, name, token, key, size, sha256, null as value, facts as facts, stage, position
from artifact where version_id = :version order by stage, position, name, id
