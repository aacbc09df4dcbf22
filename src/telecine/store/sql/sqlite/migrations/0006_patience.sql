-- Patience counts only while a lane is not served: the sweep walks patient tasks lane by lane, and notes when it last saw
-- that a lane was served.
drop index task_patience;
create index task_patience on task (lane, (ready_at + patience_ms)) where state = 'ready' and not parked and patience_ms is not null;
-- When the sweep last saw that a lane with patient tasks was served: their patience counts from then. Other lanes have no row.
create table lane_seen (
    lane text primary key,
    at integer not null
);
