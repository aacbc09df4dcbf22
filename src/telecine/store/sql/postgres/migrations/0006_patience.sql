-- Patience counts only while a lane is not served: the sweep walks patient tasks lane by lane, and notes when it last saw
-- that a lane was served.
-- Built beside the old index: readers go on meanwhile, writers of `task` wait for it.
create index task_patience_by_lane on task (lane, (ready_at + patience_ms)) where state = 'ready' and not parked and patience_ms is not null;
drop index task_patience;
alter index task_patience_by_lane rename to task_patience;
-- When the sweep last saw that a lane with patient tasks was served: their patience counts from then. Other lanes have no row.
create table lane_seen (
    lane text primary key,
    at bigint not null
);
