-- name: lane_heads
select l.value as lane, t.id, t.rank from json_each(:lanes) as l
join json_each((
    select json_group_array(c.id) from (
        select id from task where lane = l.value and state = 'ready' and not parked order by rank, id limit :wanted
    ) c
)) as j
join task t on t.id = j.value
order by l.key, t.rank, t.id

-- name: installation
-- The path tells copies of one file apart.
select (select file from pragma_database_list where name = 'main') as place, 'main' as room,
    (select min(applied_at) from schema_version) as since
