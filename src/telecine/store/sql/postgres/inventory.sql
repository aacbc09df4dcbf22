-- name: tally
select s.name as stage, split_part(a.name, '/', 1) as folder, count(*) as files, sum(a.size)::bigint as bytes,
    min(a.created_at) as first_at, max(a.created_at) as last_at
from artifact a
join task t on t.id = a.task_id
cross join lateral (select name from stage where job_id = t.job_id and number = t.stage limit 1) s
where a.job_id = :job_id and a.key is not null and strpos(a.name, '/') > 0
group by 1, 2 order by 1, 2

-- name: kept_since
-- What a job has kept since the artifact with the id :after. One that was kept anew has its old id, and a transaction
-- may end after another that took later ids: whatever is young is told again.
select id, name, token, key, size, sha256, value::text as value, facts::text as facts, stage, position
from artifact where job_id = :job_id and task_id is not null and stage = any (:stages::text[])
  and (id > :after or created_at > {now} - :young::bigint)
order by id

-- name: worked
-- For how long anybody worked on a job. What ran side by side counts once; a lost attempt ended when its worker was
-- last heard of, not when somebody came by.
select coalesce(sum(case when x.before is null or x.began > x.before then x.ended - x.began
    when x.ended > x.before then x.ended - x.before else 0 end), 0)::bigint as ms
from (
    select y.began, y.ended,
        max(y.ended) over (order by y.began, y.ended rows between unbounded preceding and 1 preceding) as before
    from (
        select a.started_at as began, case when a.outcome <> 'lost' then a.ended_at
            else least(a.ended_at - coalesce(a.silent_ms, 0), greatest(a.started_at, coalesce(w.beat_at, a.ended_at))) end as ended
        from job_task t cross join lateral (select * from attempt where task_id = t.id offset 0) a left join worker w on w.id = a.worker
        where t.job_id = :job_id and a.started_at is not null
        union all
        select claimed_at, least({now}, lease_until) from job_task where job_id = :job_id and state = 'running'
    ) y where y.ended > y.began
) x

-- name: result_of
select t.result from stage s join job_task t on t.stage = s.number
where s.job_id = :job_id and t.job_id = :job_id and s.name = :stage and t.position = 0 and t.state = 'done'

-- name: kept_of_version
select id, name, token, key, size, sha256, null::text as value, facts::text as facts, stage, position
from artifact where version_id = :version order by stage, position, name, id
