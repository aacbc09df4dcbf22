-- In SQLite every job and every attempt has its row: nothing changes.
select 1;
