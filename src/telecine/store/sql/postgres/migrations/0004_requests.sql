-- A claim looks up its own request among what its worker runs: without the request in the index it walked over all that the
-- worker ever ran and that nobody could clear away yet.
drop index task_running;
create index task_running on task (worker, request) where state = 'running';
