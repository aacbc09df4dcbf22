"""Uploads that are done stay as long as their videos: no question works through all of them."""

from typing import Any

from tests.contract.test_views_plans import DAY, FOREVER, MAX_ROWS, MAX_STEPS, SOME, work
from tests.support.builders import NOW
from tests.support.scene import Scene, alone

MANY = 20_000
ID = f"{MANY // 2:032d}"
STATEMENTS: list[tuple[str, dict[str, Any]]] = [
    ("upload_find", {"id": ID}),
    ("upload_hold", {"id": ID}),
    ("upload_awaited", {"owner": "ada"}),
    ("upload_held", {"owner": "rare"}),
    ("uploads_all", {"before": FOREVER, "below": "", "wanted": SOME}),
    ("uploads_of_owner", {"owner": "rare", "before": FOREVER, "below": "", "wanted": SOME}),
    ("upload_checking", {"wanted": SOME}),
    ("upload_expired", {"wanted": SOME}),
    ("upload_forget", {"subject_id": "film-7"}),
    ("upload_known", {"ids": [ID]}),
    ("watched_find", {"paths": ["/films/7.mp4"]}),
    ("watched_touch", {"paths": ["/films/7.mp4"], "age": DAY}),
    ("watched_prune", {"age": DAY, "wanted": SOME}),
]


@alone
async def test_no_question_works_through_all_uploads(scene: Scene) -> None:
    numbers = f"with recursive n (i) as (select 1 union all select i + 1 from n where i < {MANY})"
    text = "lpad(i::text, 32, '0')" if scene.is_postgres else "printf('%032d', i)"
    state = "case i % 1000 when 1 then 'open' when 2 then 'refused' when 3 then 'checking' else 'done' end"
    owner = "case when i % 1000 = 7 then 'rare' else 'ada' end"
    await scene.sql(
        "insert into upload (id, owner, name, length, received, state, subject_id, created_at, updated_at, expires_at) "
        f"{numbers} select {text}, {owner}, 'x', 9, 9, {state}, 'film-' || i, {NOW} + i, {NOW}, {NOW} + i from n"
    )
    await scene.sql(
        f"insert into watched (path, identity, at) {numbers} select '/films/' || i || '.mp4', '1-1', {NOW} from n"
    )
    await scene.sql("analyze")
    scene.store.now = NOW + DAY

    found = await work(scene, *STATEMENTS)

    assert {name: n for name, n in found.items() if n > (MAX_ROWS if scene.is_postgres else MAX_STEPS)} == {}
