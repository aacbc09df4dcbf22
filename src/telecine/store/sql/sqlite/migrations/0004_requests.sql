-- SQLite leaves no dead entries in an index, so the one of running tasks stays as it is.
-- What was begun and waits again: few, and how far each has come is shown in lists.
create index task_begun on task (job_id) where state = 'ready' and token > 0;
