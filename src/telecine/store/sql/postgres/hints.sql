-- name: lane_heads
-- The most urgent tasks of each lane, for hints.
select l.lane, c.id, c.rank from unnest(:lanes::text[]) as l (lane)
cross join lateral (
    select t.id, t.rank from task t where t.lane = l.lane and t.state = 'ready' and not t.parked
    order by t.rank, t.id limit :wanted
) c

-- name: installation
-- What tells this Telecine from others that share its Redis: whoever asks the same tables gets the same answer.
select current_database() as place, current_schema() as room, (select min(applied_at) from schema_version) as since
