-- name: vitals
-- What `telecine doctor` reads back. Transactions of other users are visible only to whoever may see them.
select 'PostgreSQL ' || current_setting('server_version') as product, {now} as now,
    current_setting('synchronous_commit') as synchronous, current_setting('fsync') as fsync,
    current_setting('full_page_writes') as whole_pages, pg_database_size(current_database()) as bytes,
    (select max((extract(epoch from statement_timestamp() - xact_start) * 1000)::bigint) from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend' and pid <> pg_backend_pid()) as oldest
