"""How many webhooks of single jobs an owner may have."""

import asyncio

import pytest

from telecine.engine.webhooks.subscriptions import (
    MAX_OF_OWNER,
    MAX_PASSING,
    NewWebhook,
    WebhookRequest,
    Webhooks,
    room_for,
    row_of,
)
from telecine.errors import Conflict
from telecine.store import Row
from telecine.world import World
from tests.support.builders import NOW
from tests.support.scene import Scene, alone

LEFT = 3


def wanted(count: int, owner: str = "ada") -> list[Row]:
    # Jobs that have none yet.
    first = 2 * MAX_PASSING
    return [row_of(WebhookRequest(url="https://example.org/", owner=owner, job_id=first + n)) for n in range(count)]


async def told_of_jobs(scene: Scene, owner: str, count: int) -> None:
    await scene.sql(
        "insert into webhook (owner, url, format, kinds, job_id, created_at)"
        f" with recursive n (i) as (select 1 union all select i + 1 from n where i < {count})"
        f" select '{owner}', 'https://example.org/', 'plain', '[]', i, {NOW} from n"
    )


@alone
async def test_an_owner_fills_up_the_room_for_webhooks_of_single_jobs_and_none_of_another(scene: Scene) -> None:
    await told_of_jobs(scene, "ada", MAX_PASSING - LEFT)

    for _ in range(2):
        await scene.store.run(lambda: room_for(wanted(LEFT)))
        await scene.store.run(lambda: room_for(wanted(LEFT + 1, "bob")))
        with pytest.raises(Conflict, match="100,000 webhooks of single jobs"):
            await scene.store.run(lambda: room_for(wanted(LEFT + 1)))
        await told_of_jobs(scene, "bob", 2 * LEFT)  # more than an owner may have, of both: now they are counted


@alone
async def test_of_webhooks_that_are_made_at_once_no_more_than_allowed_are_made(scene: Scene) -> None:
    webhooks = Webhooks(scene.store, World())

    made = await asyncio.gather(
        *(webhooks.add(WebhookRequest(url="https://example.org/", owner="ada")) for _ in range(MAX_OF_OWNER + 10)),
        return_exceptions=True,
    )

    assert sum(isinstance(one, NewWebhook) for one in made) == MAX_OF_OWNER
    assert [type(one) for one in made if not isinstance(one, NewWebhook)] == [Conflict] * 10
    [row] = await scene.sql("select count(*) as n from webhook")
    assert row["n"] == MAX_OF_OWNER
