"""Letters: each event is written down once for each reader, sent by one at a time, and never lost."""

import asyncio
from typing import Any

import pytest

from telecine.engine.webhooks import delivery_builder
from telecine.engine.webhooks.deliveries import Deliveries, DueDelivery
from telecine.engine.webhooks.subscriptions import CreatedWebhook, WebhookRequest, Webhooks
from telecine.store import Ask, Steps
from telecine.world import World
from tests.contract.test_all_or_nothing import Cut, cut
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed
from tests.support.interleaver import stepper

LEASE = 15_000
HOOK = "https://example.org/hook"


@pytest.fixture
def mail(bed: Bed) -> Deliveries:
    return Deliveries(bed.store, World())


async def hook(bed: Bed, url: str = HOOK, owner: str = "ada", **more: Any) -> CreatedWebhook:
    return await Webhooks(bed.store, World()).add(WebhookRequest(url=url, owner=owner, **more))


async def one_done(bed: Bed, owner: str = "ada", **more: Any) -> int:
    """A job of this owner that was done."""
    if not bed.lanes:
        await bed.enact(a_flow())
    job = await bed.submit(owner=owner, **more)
    await bed.run_all()
    return job


async def collected(mail: Deliveries) -> int:
    """Look until there is nothing more; how many letters that made."""
    letters = 0
    for _ in range(50):
        posted = await mail.collect()
        letters += posted.letters
        if not posted.more:
            return letters
    raise AssertionError("there is more and more")


async def taken(mail: Deliveries, wanted: int = 100, per_host: int = 100, **more: Any) -> list[DueDelivery]:
    return await mail.take(wanted, per_host=per_host, lease=LEASE, **more)


async def told(bed: Bed) -> list[tuple[int | None, str]]:
    rows = await bed.sql("select webhook_id, kind from delivery order by id")
    return [(row["webhook_id"], row["kind"]) for row in rows]


# -- events into letters -------------------------------------------------------------------------------


async def test_each_reader_gets_one_letter_for_each_event_that_it_wants(bed: Bed, mail: Deliveries) -> None:
    ends, all_of_it = await hook(bed), await hook(bed, kinds=("job.created", "job.completed"))
    await hook(bed, owner="bob")

    await one_done(bed)
    assert await collected(mail) == 3

    ids = (ends.webhook.id, all_of_it.webhook.id)
    assert sorted(await told(bed)) == [(ids[0], "job.completed"), (ids[1], "job.completed"), (ids[1], "job.created")]
    assert await collected(mail) == 0


async def test_a_webhook_of_one_job_hears_of_no_other(bed: Bed, mail: Deliveries) -> None:
    await bed.enact(a_flow())
    mine, other = [await bed.submit(owner="ada") for _ in range(2)]
    await hook(bed, job_id=mine)

    await bed.run_all()
    await collected(mail)

    [letter] = await taken(mail)
    assert letter.facts["job"]["id"] == mine != other


async def test_what_was_before_a_webhook_is_not_told(bed: Bed, mail: Deliveries) -> None:
    await mail.collect()
    await one_done(bed)
    bed.pass_time(1)

    await hook(bed)

    assert await collected(mail) == 0


async def let_go(bed: Bed) -> None:
    """Until nobody holds the postman's row: PostgreSQL hears a moment later that somebody has died."""

    def hold() -> Steps[bool]:
        return bool((yield Ask("postman_hold", {})))

    async with asyncio.timeout(10):
        while not await bed.store.run(hold):
            await asyncio.sleep(0.01)


async def test_who_dies_in_the_middle_has_told_nobody_and_the_next_tells_all(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await one_done(bed)
    await bed.engine.events.number()

    for after in range(1, 20):
        try:
            await bed.store.run(cut(lambda: delivery_builder.post(None), after))
        except Cut:
            await let_go(bed)
            assert await told(bed) == []
        else:
            break

    assert after > 3
    assert [kind for _, kind in await told(bed)] == ["job.completed"]


async def test_two_postmen_at_once_write_each_letter_once(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await one_done(bed)
    await bed.engine.events.number()
    if not bed.is_postgres:
        await asyncio.gather(*(mail.collect() for _ in range(5)))
        assert len(await told(bed)) == 1
        return

    async with stepper(bed) as steps:
        [place] = await bed.sql("select seq from postman")
        schedules, orders = [""], 0
        while schedules and orders < 200:
            await bed.sql("delete from delivery")
            await bed.sql(f"update postman set seq = {place['seq']}")
            _, others = await steps.run(
                lambda: delivery_builder.post(None), lambda: delivery_builder.post(None), schedules.pop()
            )
            assert len(await told(bed)) == 1
            schedules += others
            orders += 1

    assert orders > 3
    assert not schedules


async def test_events_that_nobody_wants_are_passed_in_large_steps(
    bed: Bed, mail: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hook(bed)
    monkeypatch.setattr(delivery_builder, "SPAN", 2)
    monkeypatch.setattr(delivery_builder, "AT_ONCE", 1)

    for _ in range(3):
        await one_done(bed)

    assert await collected(mail) == 3
    assert await collected(mail) == 0


async def test_who_was_away_for_too_long_says_how_much_was_missed_and_goes_on(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await one_done(bed)
    await bed.engine.events.number()
    [place] = await bed.sql("select seq from postman")
    await bed.sql(f"update event_counter set pruned = {place['seq'] + 2}")
    await bed.sql(f"delete from event where seq <= {place['seq'] + 2}")

    posted = await mail.collect()

    assert (posted.missed, posted.letters) == (2, 1)


async def test_after_a_restored_backup_the_postman_goes_on_with_what_is_new(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await bed.sql("update postman set seq = 1000000")

    await collected(mail)
    await one_done(bed)

    assert await collected(mail) == 1
