-- Lists of jobs: one statement per way into the table, because a condition that may be absent would hide the index.
-- All take the same filters and answer with ids, newest first.

-- name: jobs_all
-- Jobs without a row have no index of their own by id: each graph that a flow ever had is a way in, for those that wait and for
-- those that have ended; there are few. It is asked for as a range and as the first thing to order by, lest the planner walk
-- through all jobs of all flows, in the order of their ids, for want of better. What runs is found by the index of
-- running tasks, once for all (hence the offset).
select id, null::bigint as ended_at from (
    (select id from job_row
    where id < :below and id >= :above and created_at >= :since and created_at < :until
      and (:owner::text is null or owner = :owner)
      and (:status::text is null or status = :status) and (not :open::boolean or outcome is null)
    order by id desc limit :wanted)
    union all
    select r.id from flow f cross join lateral (
        (select id from rowless
        where flow_id between f.id and f.id and state = 'ready' and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
        union all
        (select id from rowless
        where flow_id between f.id and f.id and outcome is not null and not :open::boolean and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
    ) r
    union all
    (select id from (select * from rowless where state = 'running' offset 0) r
    where id < :below and id >= :above and created_at >= :since and created_at < :until
      and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
    order by id desc limit :wanted)
) j order by id desc limit :wanted

-- name: jobs_of_flow
select id, null::bigint as ended_at from (
    select j.id from flow f cross join lateral (
        (select id from job_row
        where flow_id between f.id and f.id and outcome is null and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
        union all
        (select id from job_row
        where flow_id between f.id and f.id and outcome is not null and not :open::boolean and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
        union all
        (select id from rowless
        where flow_id between f.id and f.id and state = 'ready' and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
        union all
        (select id from rowless
        where flow_id between f.id and f.id and outcome is not null and not :open::boolean and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
    ) j where f.name = :flow
    union all
    (select id from (select * from rowless where state = 'running' offset 0) r
    where flow = :flow and id < :below and id >= :above and created_at >= :since and created_at < :until
      and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
    order by id desc limit :wanted)
) j order by id desc limit :wanted

-- name: jobs_of_owner
-- As a range, and as the first thing to order by: a plan for any owner would rather walk through everybody's jobs.
select id, null::bigint as ended_at from (
    (select id from job_row
    where owner between :owner and :owner and owner <> '' and id < :below and id >= :above and created_at >= :since and created_at < :until
      and (:flow::text is null or flow = :flow)
      and (:status::text is null or status = :status) and (not :open::boolean or outcome is null)
    order by owner desc, id desc limit :wanted)
    union all
    (select id from rowless
    where owner between :owner and :owner and owner <> '' and id < :below and id >= :above and created_at >= :since and created_at < :until
      and (:flow::text is null or flow = :flow)
      and (:status::text is null or status = :status) and (not :open::boolean or outcome is null)
    order by owner desc, id desc limit :wanted)
) j order by id desc limit :wanted

-- name: jobs_of_subject
select id, null::bigint as ended_at from job_row
where subject_kind = :subject_kind and subject_id = :subject_id and id < :below and id >= :above
  and created_at >= :since and created_at < :until
  and (:owner::text is null or owner = :owner) and (:flow::text is null or flow = :flow)
  and (:status::text is null or status = :status) and (not :open::boolean or outcome is null)
order by id desc limit :wanted

-- name: jobs_open
select id, null::bigint as ended_at from (
    select j.id from flow f cross join lateral (
        (select id from job_row
        where flow_id between f.id and f.id and outcome is null and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
        union all
        (select id from rowless
        where flow_id between f.id and f.id and state = 'ready' and id < :below and id >= :above and created_at >= :since and created_at < :until
          and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
        order by flow_id desc, id desc limit :wanted)
    ) j where :flow::text is null or f.name = :flow
    union all
    (select id from (select * from rowless where state = 'running' offset 0) r
    where (:flow::text is null or flow = :flow) and id < :below and id >= :above and created_at >= :since and created_at < :until
      and (:owner::text is null or owner = :owner) and (:status::text is null or status = :status)
    order by id desc limit :wanted)
) j order by id desc limit :wanted

-- name: jobs_ended
select id, ended_at from (
    (select id, ended_at from job_row
    where outcome = :status and (ended_at, id) < (:ended::bigint, :below::bigint)
      and (:owner::text is null or owner = :owner) and (:flow::text is null or flow = :flow)
    order by ended_at desc, id desc limit :wanted)
    union all
    (select id, ended_at from rowless
    where outcome is not null and :status = 'completed' and (ended_at, id) < (:ended::bigint, :below::bigint)
      and (:owner::text is null or owner = :owner) and (:flow::text is null or flow = :flow)
    order by ended_at desc, id desc limit :wanted)
) j order by ended_at desc, id desc limit :wanted

-- name: job_id_near
-- Ids are given in the order of time (but for a moment), so a time is found by halving.
select id, created_at from (
    (select id, created_at from job_row where id >= :id order by id limit 1)
    union all
    select r.id, r.created_at from flow f cross join lateral (
        (select id, created_at from rowless where flow_id between f.id and f.id and state = 'ready' and id >= :id
        order by flow_id, id limit 1)
        union all
        (select id, created_at from rowless where flow_id between f.id and f.id and outcome is not null and id >= :id
        order by flow_id, id limit 1)
    ) r
    union all
    (select id, created_at from (select * from rowless where state = 'running' offset 0) r where id >= :id order by id limit 1)
) j order by id limit 1

-- name: job_id_edges
select min(e.first) as first, max(e.last) as last from (
    select (select min(id) from job_row) as first, (select max(id) from job_row) as last
    union all
    select min(id), max(id) from (select * from rowless where state = 'running' offset 0) r
    union all
    select least(o.first, d.first), greatest(o.last, d.last) from flow f cross join lateral (
        select (select id from rowless where flow_id between f.id and f.id and state = 'ready' order by flow_id, id limit 1) as first,
            (select id from rowless where flow_id between f.id and f.id and state = 'ready' order by flow_id desc, id desc limit 1) as last
    ) o cross join lateral (
        select (select id from rowless where flow_id between f.id and f.id and outcome is not null order by flow_id, id limit 1) as first,
            (select id from rowless where flow_id between f.id and f.id and outcome is not null order by flow_id desc, id desc limit 1)
            as last
    ) d
) e
