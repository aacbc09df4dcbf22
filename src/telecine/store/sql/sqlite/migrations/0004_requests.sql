-- SQLite leaves no dead entries in an index: nothing changes.
select 1;
