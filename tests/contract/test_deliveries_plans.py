"""A heap of letters for a dead host, of old ones and of webhooks costs nobody who looks for something else."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from telecine.store.postgres import Postgres
from telecine.store.sqlite import connect
from telecine.store.statements import load
from tests.contract.test_views_plans import DAY, FOREVER, MAX_ROWS, MAX_STEPS, SOME, work
from tests.fault.worker_processes import until
from tests.support.builders import NOW
from tests.support.scene import Scene, alone

MANY = 20_000
# The end of a lease is near `now`, which is a day later; those who failed wait for hours.
LEASE = 15_000

ROWS = {
    "webhook": {
        "owner": "case when i % 4000 = 7 then 'rare' else 'ada' end",
        "url": "'https://example.org/'",
        "format": "'plain'",
        "kinds": """'["job.completed"]'""",
        "job_id": "case when i % 4000 <> 7 then i end",
        "created_at": f"{NOW}",
    },
    "delivery": {
        "webhook_id": "case when i % 50 <> 0 then i end",
        "owner": "case when i % 4000 = 7 then 'rare' when i % 50 <> 0 then 'ada' end",
        "host": "case when i % 4000 = 3 then 'good.example' when i % 2 = 0 then 'slow.example' else 'dead.example' end",
        "event_seq": "i",
        "kind": "'job.completed'",
        "body": "'{}'",
        "state": "case i % 10 when 0 then 'dead' when 1 then 'done' when 2 then 'done' else 'waiting' end",
        "next_at": f"case when i % 2 = 0 then {NOW} + {2 * DAY} + i else {NOW} + i end",
        "created_at": f"{NOW}",
        "ended_at": f"case when i % 10 < 3 then {NOW} + i end",
    },
    "event": {"seq": "i", "at": f"{NOW}", "kind": "case when i % 1000 = 7 then 'job.completed' else 'task.done' end"},
}

STATEMENTS: list[tuple[str, dict[str, Any]]] = [
    ("postman_look", {}),
    ("postman_hold", {}),
    ("news", {"seq": MANY // 2, "until": MANY // 2 + 1_000, "kinds": ["job.completed"], "wanted": SOME}),
    ("news_readers", {"owners": ["rare"], "jobs": list(range(1, SOME))}),
    ("delivery_hosts", {"lease": LEASE, "wanted": SOME}),
    ("delivery_take", {"host": "dead.example", "wanted": 4, "lease": LEASE}),
    ("delivery_letters", {"ids": list(range(1, SOME))}),
    ("delivery_find", {"id": 7}),
    ("delivery_test", {"webhook_id": 7, "owner": "rare", "host": "example.org", "body": "{}"}),
    ("delivery_mark", {"id": 7, "token": 0, "state": "done", "status": 200, "error": None, "wait": 0}),
    ("delivery_all", {"state": None, "below": FOREVER, "wanted": SOME}),
    ("delivery_all", {"state": "dead", "below": FOREVER, "wanted": SOME}),
    ("delivery_of_owner", {"owner": "rare", "state": None, "below": FOREVER, "wanted": SOME}),
    ("delivery_of_owner", {"owner": "ada", "state": "dead", "below": FOREVER, "wanted": SOME}),
    ("delivery_of_webhook", {"webhook_id": 7, "state": None, "below": FOREVER, "wanted": SOME}),
    ("delivery_prune", {"done_age": 900 * DAY, "dead_age": 900 * DAY, "wanted": SOME}),
    ("webhook_all", {"below": FOREVER, "wanted": SOME}),
    ("webhook_list", {"owner": "ada", "below": FOREVER, "wanted": SOME}),
    ("webhook_list", {"owner": "rare", "below": FOREVER, "wanted": SOME}),
    ("webhook_find", {"id": 7}),
    ("webhook_count", {"owner": "rare"}),
    ("webhook_counts", {"ids": [9]}),
    ("webhook_of_jobs", {"ids": [9]}),
    ("webhook_passing", {"owner": "rare", "most": SOME}),
    ("webhook_passing", {"owner": "ada", "most": SOME}),
    ("webhook_passing", {"owner": "ada", "most": MANY}),
    ("webhook_drop", {"id": 7, "owner": "rare"}),
    ("webhook_prune", {"age": 900 * DAY, "wanted": SOME}),
]


async def fill(scene: Scene) -> None:
    await scene.sql("create table numbers (i bigint)")
    await scene.sql(
        f"insert into numbers with recursive n (i) as"
        f" (select 1 union all select i + 1 from n where i < {MANY}) select i from n"
    )
    for table, columns in ROWS.items():
        names, values = ", ".join(columns), ", ".join(columns.values())
        await scene.sql(f"insert into {table} ({names}) select {values} from numbers")
    if scene.is_postgres:
        await scene.sql(f"update event_counter set seq = {MANY}")
    await scene.sql("insert into postman (seq, secret) values (1, 'x')")
    await scene.sql("analyze")


@alone
async def test_no_statement_of_the_postman_works_through_a_heap(scene: Scene) -> None:
    await fill(scene)
    scene.store.now = NOW + DAY

    found = [(name, params, (await work(scene, (name, params)))[name]) for name, params in STATEMENTS]

    most = MAX_ROWS if scene.is_postgres else MAX_STEPS
    assert [one for one in found if one[2] > most] == []


@alone
async def test_whether_an_owner_has_too_many_webhooks_is_told_by_an_index_without_a_look_at_them(scene: Scene) -> None:
    await fill(scene)
    if scene.is_postgres:
        await until(lambda: vacuumed(scene, "webhook"))

    said = await plan(scene, "webhook_passing", {"owner": "ada", "most": MANY - 100})

    assert said == ("Index Only Scan" if scene.is_postgres else "COVERING INDEX", "webhook_many")


async def vacuumed(scene: Scene, table: str) -> bool:
    """Whether a vacuum has looked at all of it, which one does not while an older transaction of somebody runs."""
    await scene.sql(f"vacuum analyze {table}")
    [row] = await scene.sql(f"select relallvisible = relpages as seen from pg_class where oid = '{table}'::regclass")
    return bool(row["seen"])


async def plan(scene: Scene, name: str, params: dict[str, Any]) -> tuple[str, str]:
    """How the rows of a statement are read, and by which index."""
    if not isinstance(scene.store, Postgres):
        with closing(connect(Path(scene.url.removeprefix("sqlite:///")))) as connection:
            lines = connection.execute(f"explain query plan {load('sqlite')[name].text}", params).fetchall()
        words = str(lines[-1]["detail"]).partition(" USING ")[2].split()
        return " ".join(words[:2]), words[2]
    statement = load("postgres")[name]
    async with scene.store.connections.borrow() as connection:
        values = scene.store._values(statement, params)
        [row] = await connection.fetch(f"explain (format json) {statement.text}", *values)
    [node] = [node for node in json.loads(row[0])[0]["Plan"]["Plans"] if node["Parent Relationship"] == "Outer"]
    return node["Node Type"], node["Index Name"]
