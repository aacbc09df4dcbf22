"""Letters on their way: sent by one at a time, tried again, dead, forgotten."""

import asyncio

import pytest

from telecine.engine.webhooks import deliveries
from telecine.engine.webhooks.deliveries import DEAD_KEPT, DONE_KEPT, Deliveries
from telecine.engine.webhooks.subscriptions import OF_JOB_KEPT, Webhooks
from telecine.errors import NotFound, WrongState
from telecine.world import World
from tests.contract.test_deliveries import HOOK, LEASE, collected, hook, mail, one_done, taken
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

__all__ = ["mail"]


async def test_a_letter_is_sent_by_one_at_a_time_and_by_another_if_he_dies(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await one_done(bed)
    await collected(mail)

    [first] = await taken(mail)
    assert await taken(mail) == []
    bed.pass_time(LEASE)
    [second] = await taken(mail)

    assert (first.id, first.name, first.key) == (second.id, second.name, second.key)
    assert (second.tries, second.token) == (2, first.token + 1)
    assert not await mail.taken(first, 200)
    assert await mail.taken(second, 200)
    assert not await mail.give_up(second, None, "late")


async def test_many_takers_at_once_take_each_letter_once(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await bed.enact(a_flow())
    for _ in range(20):
        await bed.submit(owner="ada")
    await bed.run_all()
    await collected(mail)

    found = [letter.id for some in await asyncio.gather(*(taken(mail, 5) for _ in range(8))) for letter in some]

    rest = [letter.id for letter in await taken(mail)]

    assert found
    assert len({*found, *rest}) == len(found) + len(rest) == 20


async def test_a_host_gets_so_many_at_once_and_holds_up_no_other(bed: Bed, mail: Deliveries) -> None:
    for url in (HOOK, "https://slow.example/a", "https://slow.example/b"):
        await hook(bed, url)
    for _ in range(3):
        await one_done(bed)
    await collected(mail)

    first = await taken(mail, per_host=2)
    again = await taken(mail, per_host=2)
    slowly = await taken(mail, per_host=4, limits={"slow.example": 3})

    assert sorted(letter.host for letter in first) == ["example.org"] * 2 + ["slow.example"] * 2
    assert again == []
    assert sorted(letter.host for letter in slowly) == ["example.org", "slow.example"]


async def test_a_letter_that_failed_waits_and_a_dead_one_stays_until_it_is_asked_for(
    bed: Bed, mail: Deliveries
) -> None:
    await hook(bed)
    await one_done(bed)
    await collected(mail)
    [letter] = await taken(mail)

    assert await mail.later(letter, 500, "it answered 500", 60_000)
    bed.pass_time(59_999)
    assert await taken(mail) == []
    bed.pass_time(1)
    [again] = await taken(mail)
    assert await mail.give_up(again, 500, "it answered 500")
    bed.pass_time(10 * LEASE)
    assert await taken(mail) == []

    [dead] = (await mail.list(state="dead")).items
    assert (dead.id, dead.tries, dead.last_status, dead.last_error) == (letter.id, 2, 500, "it answered 500")
    await mail.retry(dead.id, owner="ada")
    [third] = await taken(mail)
    assert (third.name, third.tries) == (letter.name, 1)


async def test_only_a_dead_letter_of_ones_own_can_be_tried_again(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await one_done(bed)
    await collected(mail)
    [letter] = await taken(mail)

    with pytest.raises(WrongState, match="waiting"):
        await mail.retry(letter.id, owner="ada")
    await mail.give_up(letter, None, "no")
    for owner, number in (("bob", letter.id), ("ada", 10**6)):
        with pytest.raises(NotFound, match=f"there is no delivery {number}"):
            await mail.retry(number, owner=owner)


async def test_what_waits_for_a_deleted_webhook_goes_with_it(bed: Bed, mail: Deliveries) -> None:
    made = await hook(bed)
    await one_done(bed)
    await collected(mail)
    [letter] = await taken(mail)

    await Webhooks(bed.store, World()).drop(made.webhook.id)

    assert not await mail.taken(letter, 200)
    assert await bed.count("delivery") == 0


async def test_a_letter_of_a_webhook_that_was_deleted_at_that_moment_has_no_address(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await one_done(bed)
    await collected(mail)
    await bed.sql("delete from webhook")

    [letter] = await taken(mail)

    assert letter.url is None
    assert await mail.give_up(letter, None, "gone")


async def test_a_webhook_that_is_off_is_told_nothing_more(bed: Bed, mail: Deliveries) -> None:
    made = await hook(bed)
    await mail.switch_off(made.webhook.id)

    await one_done(bed)

    assert await collected(mail) == 0


async def test_a_webhook_that_takes_nothing_for_too_long_is_switched_off_and_no_other(
    bed: Bed, mail: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "MAX_WAITING", 2)
    heap = await hook(bed)
    await one_done(bed)
    bed.pass_time(1)
    fine = await hook(bed, "https://fine.example/")
    for _ in range(2):
        await one_done(bed)
    await collected(mail)
    [sent, *_] = await taken(mail)

    await mail.prune()

    known = {one.id: one.disabled_at for one in (await Webhooks(bed.store, World()).list()).items}
    assert (known[heap.webhook.id] is None, known[fine.webhook.id]) == (False, None)
    assert [one.state for one in (await mail.list(webhook_id=heap.webhook.id)).items] == ["dead"] * 3
    assert [one.state for one in (await mail.list(webhook_id=fine.webhook.id)).items] == ["waiting"] * 2
    assert sent.host == "example.org"
    assert not await mail.taken(sent, 200)


async def test_what_ended_is_forgotten_by_age_and_what_waits_never(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    for _ in range(3):
        await one_done(bed)
    await collected(mail)
    done, dead, _ = await taken(mail)
    await mail.taken(done, 200)
    await mail.give_up(dead, None, "no")

    bed.pass_time(DONE_KEPT + 1)
    assert await mail.prune() == 1
    bed.pass_time(DEAD_KEPT)
    assert await mail.prune() == 1
    bed.pass_time(10 * DEAD_KEPT)

    assert await mail.prune() == 0
    assert [one.state for one in (await mail.list()).items] == ["waiting"]


async def test_a_webhook_of_one_job_is_forgotten_long_after_the_job(bed: Bed, mail: Deliveries) -> None:
    await bed.enact(a_flow())
    ended, running = [await bed.submit(owner="ada") for _ in range(2)]
    for job in (ended, running):
        await hook(bed, job_id=job)
    await bed.done(await bed.take())
    await collected(mail)
    [letter] = await taken(mail)
    await mail.taken(letter, 200)

    bed.pass_time(OF_JOB_KEPT + 1)
    await mail.prune()

    assert [row["job_id"] for row in await bed.sql("select job_id from webhook")] == [running]
