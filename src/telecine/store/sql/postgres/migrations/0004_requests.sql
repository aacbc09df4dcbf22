-- A claim looks up its own request among what its worker runs: without the request in the index it walked over all that the
-- worker ever ran and that nobody could clear away yet.
drop index task_running;
create index task_running on task (worker, request) where state = 'running';
-- What was begun and waits again: few, and how far each has come is shown in lists.
create index task_begun on task (job_id) where state = 'ready' and token > 0;
