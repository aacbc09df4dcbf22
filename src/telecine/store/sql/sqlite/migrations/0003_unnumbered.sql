-- In SQLite an event has its number from the start: nothing changes.
select 1;
