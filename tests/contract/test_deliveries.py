"""Letters: each event is written down once for each reader, sent by one at a time, and never lost."""

import asyncio
from typing import Any

import pytest

from telecine.engine import news
from telecine.engine.deliveries import DEAD_KEPT, DONE_KEPT, Deliveries, Letter
from telecine.engine.webhooks import OF_JOB_KEPT, Made, Webhooks, Wish
from telecine.errors import NotFound, WrongState
from telecine.world import World
from tests.bed import Bed
from tests.contract.test_all_or_nothing import Cut, cut
from tests.make import a_flow
from tests.stepper import stepper

LEASE = 15_000
HOOK = "https://example.org/hook"


@pytest.fixture
def mail(bed: Bed) -> Deliveries:
    return Deliveries(bed.store, World())


async def hook(bed: Bed, url: str = HOOK, owner: str = "ada", **more: Any) -> Made:
    return await Webhooks(bed.store, World()).add(Wish(url=url, owner=owner, **more))


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


async def taken(mail: Deliveries, wanted: int = 100, per_host: int = 100, **more: Any) -> list[Letter]:
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


async def test_who_dies_in_the_middle_has_told_nobody_and_the_next_tells_all(bed: Bed, mail: Deliveries) -> None:
    await hook(bed)
    await one_done(bed)
    await bed.engine.events.number()

    for after in range(1, 20):
        try:
            await bed.store.run(cut(lambda: news.post(None), after))
        except Cut:
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
            _, others = await steps.run(lambda: news.post(None), lambda: news.post(None), schedules.pop())
            assert len(await told(bed)) == 1
            schedules += others
            orders += 1

    assert orders > 3
    assert not schedules


async def test_events_that_nobody_wants_are_passed_in_large_steps(
    bed: Bed, mail: Deliveries, monkeypatch: pytest.MonkeyPatch
) -> None:
    await hook(bed)
    monkeypatch.setattr(news, "SPAN", 2)
    monkeypatch.setattr(news, "AT_ONCE", 1)

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


# -- sending -------------------------------------------------------------------------------------------


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
