"""How many webhooks an owner and a job may have."""

import asyncio
from dataclasses import replace

import asyncpg
import pytest

from telecine.engine.jobs.submit import Submission
from telecine.engine.jobs.submit_with_webhook import submit_telling
from telecine.engine.webhooks.subscriptions import (
    MAX_OF_JOB,
    MAX_OF_OWNER,
    MAX_PASSING,
    CreatedWebhook,
    WebhookRequest,
    Webhooks,
    room_for,
    row_of,
)
from telecine.errors import Conflict, StoreError
from telecine.store import Row
from telecine.world import World
from tests.support.builders import NOW, a_flow
from tests.support.scene import Scene, alone, alone_on_postgres

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

    assert sum(isinstance(one, CreatedWebhook) for one in made) == MAX_OF_OWNER
    assert [type(one) for one in made if not isinstance(one, CreatedWebhook)] == [Conflict] * 10
    [row] = await scene.sql("select count(*) as n from webhook")
    assert row["n"] == MAX_OF_OWNER


@alone
async def test_of_webhooks_that_are_made_for_one_job_at_once_no_more_than_allowed_are_made(scene: Scene) -> None:
    await scene.engine.jobs.register(a_flow())
    job = (await scene.engine.jobs.submit("film", owner="ada")).job_id
    webhooks = Webhooks(scene.store, World())
    wishes = [WebhookRequest(url=f"https://example.org/{n}", owner="ada", job_id=job) for n in range(MAX_OF_JOB + 5)]
    again = [Submission("film", owner="ada", dedupe_key="twin") for _ in wishes]

    made = await asyncio.gather(*(webhooks.add(wish) for wish in wishes), return_exceptions=True)
    told = await asyncio.gather(
        *(submit_telling(scene.engine, webhooks, [(one, replace(wish, job_id=None))])
          for one, wish in zip(again, wishes, strict=True)),
        return_exceptions=True,
    )  # fmt: skip

    for results in (made, told):
        assert sum(isinstance(one, Conflict) for one in results) == 5, results
    rows = await scene.sql("select job_id, count(*) as n from webhook group by job_id")
    assert [row["n"] for row in rows] == [MAX_OF_JOB] * 2


@alone
async def test_twins_that_are_submitted_together_have_together_no_more_than_one_job_may(scene: Scene) -> None:
    await scene.engine.jobs.register(a_flow())
    webhooks = Webhooks(scene.store, World())
    twins = [
        (
            Submission("film", owner="ada", dedupe_key="twin"),
            WebhookRequest(url=f"https://example.org/{n}", owner="ada"),
        )
        for n in range(MAX_OF_JOB + 1)
    ]

    await scene.engine.jobs.submit("film", owner="ada", dedupe_key="twin")

    with pytest.raises(Conflict, match="11 webhooks, and no job more than 10"):
        await submit_telling(scene.engine, webhooks, twins)
    assert len(await submit_telling(scene.engine, webhooks, twins[1:])) == MAX_OF_JOB


@alone_on_postgres
async def test_a_submit_with_a_webhook_does_not_wait_for_another_one_of_its_owner(scene: Scene) -> None:
    """Each took the turn of its owner and kept it until it was committed, and a connection with it."""
    await scene.engine.jobs.register(a_flow())
    webhooks = Webhooks(scene.store, World())
    wanted = [(Submission("film", owner="ada"), WebhookRequest(url="https://example.org/", owner="ada"))]
    await submit_telling(scene.engine, webhooks, wanted)
    other = await asyncpg.connect(scene.url)
    try:
        await other.execute("select pg_advisory_lock(hashtext('telecine.webhooks:' || current_schema() || 'ada'))")

        await asyncio.wait_for(submit_telling(scene.engine, webhooks, wanted), 10)
        with pytest.raises(StoreError):  # those of all jobs are counted, one caller after the other
            await webhooks.add(WebhookRequest(url="https://example.org/", owner="ada"))
    finally:
        await other.close()
