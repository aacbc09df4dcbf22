-- name: vitals
-- Read on the connection that writes: `synchronous` belongs to a connection. SQLite does not tell who has a
-- transaction open; a reader that stays open shows as a log (-wal) that grows.
select 'SQLite ' || sqlite_version() as product, {now} as now,
    (select case synchronous when 0 then 'off' when 1 then 'normal' when 2 then 'full' else 'extra' end
        from pragma_synchronous) as synchronous,
    'on' as fsync, (select journal_mode from pragma_journal_mode) as whole_pages,
    (select page_count from pragma_page_count) * (select page_size from pragma_page_size) as bytes,
    null as oldest
