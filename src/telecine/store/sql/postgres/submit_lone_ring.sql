-- name: submit_lone_ring
-- `submit_lone` that also notifies with its commit.
with t as (
    insert into task (id, job_id, stage, position, lane, state, ready_at, rank, max_attempts, stall_ms, limit_ms, flow_id,
        owner, priority, phase, spec)
    values (:id, :id, :number, 0, :lane, :state, {now}, {now} - :boost::bigint, :max_attempts, :stall_ms,
        :limit_ms, :flow_id, :owner, :priority, :phase, :spec::text::jsonb)
)
insert into unnumbered (at, kind, job_ids) values ({now}, 'job.created', array[:id::bigint])
returning pg_notify(:channel, :payload)
