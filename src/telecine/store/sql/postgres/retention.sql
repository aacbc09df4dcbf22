-- Putting old things away. Each batch is one transaction on a fixed list of ids.

-- name: old_jobs
-- The oldest ends first, each outcome by its index. `tasks` tells how much there is to move.
select o.id, o.ended_at, o.generation,
    (select coalesce(sum(s.total), 0) from stage s where s.job_id = o.id)::integer as tasks
from (
    (select id, ended_at, generation from job_row where outcome = 'completed' and ended_at < {now} - :age::bigint
        order by ended_at, id limit :wanted)
    union all
    (select id, ended_at, generation from rowless where outcome is not null and ended_at < {now} - :age::bigint
        order by ended_at, id limit :wanted)
    union all
    (select id, ended_at, generation from job_row where outcome = 'failed' and ended_at < {now} - :age::bigint
        order by ended_at, id limit :wanted)
    union all
    (select id, ended_at, generation from job_row where outcome = 'cancelled' and ended_at < {now} - :age::bigint
        order by ended_at, id limit :wanted)
) o order by o.ended_at, o.id limit :wanted

-- name: old_artifacts
select o.id, o.name, t.stage, t.position, o.key, o.size, o.sha256, o.facts::text as facts
from artifact o join task t on t.id = o.task_id where o.job_id = :job_id and o.key is not null order by o.id

-- name: retire_tasks
-- Tasks before jobs, as everybody locks them. `used`: some attempt may have left bytes, recorded or not.
select job_id, bool_or(kept > 0 or token > 1 or state in ('error', 'cancelled')) as used from (
    select job_id, kept, token, state from task where id = any (array(
        select id from job_task where job_id = any (:ids::bigint[])
    )) order by id for update
) t group by job_id

-- name: retire_jobs
-- Whoever waited here for another pass finds no row, and a job that was retried has another generation.
-- One without a row is its task, which is locked already.
with held as materialized (
    select id, ended_at, generation from job_row where id = any (:ids::bigint[]) and outcome is not null order by id for update
)
select id, ended_at, generation from held
union all
select id, ended_at, 1 from task where id = any (:ids::bigint[]) and outcome is not null

-- name: retire_versions
-- Locks the subjects, so that none can flip to a version while its files go.
select v.id, coalesce(s.current_version = v.id, false) or v.keep
    or coalesce(v.left_at > {now} - :version_age::bigint, false) as stays
from subject_version v join subject s on s.kind = v.kind and s.id = v.subject_id
where v.id = any (array(
    select version_id from artifact where job_id = any (:ids::bigint[]) and version_id is not null
)) order by s.kind, s.id for no key update of s

-- name: retire_artifacts
delete from artifact where job_id = any (:ids::bigint[])
  and (version_id is null or not version_id = any (:staying::bigint[])) returning key

-- name: unfinished_artifacts
-- Files in these folders of tasks that a retry would do again; never those that a version names.
delete from artifact where job_id = :job_id and version_id is null and key is not null
  and split_part(name, '/', 1) = any (:folders::text[])
  and task_id in (select id from task where job_id = :job_id and flow_id is null and state in ('error', 'cancelled')) returning key

-- name: artifact_free
-- A file may be carried over by reference: its bytes are free when no row names them any more.
select distinct k.key from unnest(:keys::text[]) as k (key)
where not exists (select 1 from artifact a where a.key = k.key)

-- name: freed_put
insert into freed (key, at) select x.key, {now} from unnest(:keys_key::text[]) as x (key) on conflict do nothing

-- name: freed_some
select key from freed where key > :after order by key limit :wanted

-- name: freed_drop
delete from freed where key = any (:keys::text[]) returning key

-- name: archive_put
insert into archive (job_id, owner, flow, outcome, ended_at, archived_at, document)
select x.job_id, x.owner, x.flow, x.outcome, x.ended_at, {now}, x.document::jsonb
from unnest(:jobs_job_id::bigint[], :jobs_owner::text[], :jobs_flow::text[], :jobs_outcome::text[], :jobs_ended_at::bigint[],
    :jobs_document::text[]) as x (job_id, owner, flow, outcome, ended_at, document)

-- name: retire_rows
with a as (
    delete from attempt_row where task_id = any (array(select id from job_task where job_id = any (:ids::bigint[])))
), t as (
    delete from task where id = any (array(select id from job_task where job_id = any (:ids::bigint[])))
), s as (
    delete from stage_row where job_id = any (:ids::bigint[])
), l as (
    delete from job_log where job_id = any (:ids::bigint[])
), f as (
    delete from job_after where job_id = any (:ids::bigint[])
)
delete from job_row where id = any (:ids::bigint[]) returning id

-- name: old_versions
-- Versions that nobody keeps and that another one replaced long ago.
select id from subject_version where not keep and left_at <= {now} - :age::bigint order by left_at limit :wanted

-- name: version_hold
select v.id from subject_version v join subject s on s.kind = v.kind and s.id = v.subject_id
where v.id = any (:ids::bigint[]) and not v.keep and s.current_version is distinct from v.id
order by s.kind, s.id for no key update of s

-- name: version_artifacts
delete from artifact where version_id = any (:ids::bigint[]) returning key

-- name: version_drop
delete from subject_version where id = any (:ids::bigint[]) returning id

-- name: old_keys
-- Idempotency keys in the order of their jobs, a window at a time: old ones lie in front.
select w.owner, w.key, w.job_id, w.created_at < {now} - :age::bigint as aged,
    coalesce(coalesce(j.ended_at, r.ended_at) < {now} - :age::bigint, j.id is null and r.job_id is null) as old
from (select * from idempotency where job_id > :after order by job_id limit :wanted) w
left join lateral (select id, ended_at from job where id = w.job_id limit 1) j on true left join archive r on r.job_id = w.job_id order by w.job_id

-- name: key_drop
delete from idempotency i using unnest(:keys_owner::text[], :keys_key::text[]) as x (owner, key)
where i.owner = x.owner and i.key = x.key

-- name: event_prune
-- Under `event_lock`. Up to the first of these events that is young enough; whoever asks for less gets `reset`.
with w as materialized (
    select seq, at from event order by seq limit :wanted
), edge as materialized (
    select coalesce(min(seq) filter (where at >= {now} - :age::bigint), max(seq) + 1) as stop from w
), counter as (
    update event_counter set pruned = greatest(pruned, edge.stop - 1) from edge where edge.stop is not null
), gone as (
    delete from event e using edge where e.seq < edge.stop returning 1
)
select count(*)::integer as gone from gone

-- name: log_prune
-- Only among the first: lines are written in the order of their ids, so the old ones are there.
delete from job_log where id = any (array(
    select id from (select id, at from job_log order by id limit :wanted) w where w.at < {now} - :age::bigint
)) returning id

-- name: worker_prune
-- Who left before the oldest job came is named by no attempt; the others keep their row, hence their name. With them
-- goes which key they came with.
with going as (
    select id from worker w where w.gone_at < {now} - :age::bigint
      and w.gone_at < least((select created_at from job_row order by id limit 1), (
        select min(r.created_at) from flow f cross join lateral (
            (select created_at from rowless where flow_id between f.id and f.id and state = 'ready' order by flow_id, id limit 1)
            union all
            (select created_at from rowless where flow_id between f.id and f.id and outcome is not null order by flow_id, id limit 1)
        ) r
      ), (select min(created_at) from (select * from rowless where state = 'running' offset 0) r), {now} + 60000) - 60000
      and not exists (select 1 from task t where t.state = 'running' and t.worker = w.id)
    order by id limit :wanted
), unbound as (
    delete from worker_key where worker = any (array(select id from going))
)
delete from worker where id = any (array(select id from going)) returning id

-- name: job_gone_prune
-- Jobs that somebody deleted so long ago, with their documents: while a file of theirs is shown, or a job waits for
-- them, they stay.
with going as (
    select g.job_id from job_gone g where g.cleared_at < {now} - :age::bigint
      and (select count(*) from job j where j.id = g.job_id) = 0
      and not exists (select 1 from artifact a where a.job_id = g.job_id)
      and not exists (select 1 from job_after f where f.after_id = g.job_id)
    order by g.cleared_at limit :wanted
), documents as (
    delete from archive where job_id = any (array(select job_id from going))
)
delete from job_gone where job_id = any (array(select job_id from going)) returning job_id

-- name: watched_prune
-- By the last look of anybody, not by the clock: while nobody looks, nothing grows old.
delete from watched where path = any (array(
    select path from watched where at < (select max(at) from watched) - :age::bigint order by at limit :wanted
)) returning path
