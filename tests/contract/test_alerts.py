"""What operators are alerted to, how often, and by which events; on each database."""

import asyncio
import json
from typing import Any, get_args

import pytest

from telecine.engine.webhooks.deliveries import Deliveries
from telecine.facts import Failed
from telecine.observe.alerts import ALERTS, rules_for
from telecine.settings.server import AlertKind
from telecine.world import World
from tests.support.builders import a_flow, a_policy, a_stage
from tests.support.engine_fixture import Bed

COOLDOWN = 300_000
RULES = rules_for("ops.example", kinds=ALERTS, cooldown=COOLDOWN, pattern=3)


@pytest.fixture
def mail(bed: Bed) -> Deliveries:
    return Deliveries(bed.store, World())


async def told(bed: Bed, mail: Deliveries) -> list[tuple[str, dict[str, Any]]]:
    """Look; the alerts that were written since the last time."""
    while (await mail.collect(RULES)).more:
        pass
    rows = await bed.sql("select kind, body, webhook_id, host from delivery order by id")
    await bed.sql("delete from delivery")
    assert {(row["webhook_id"], row["host"]) for row in rows} <= {(None, "ops.example")}
    return [(row["kind"], json.loads(row["body"])) for row in rows]


async def quiet(bed: Bed, mail: Deliveries, **flow: Any) -> None:
    """A flow and a worker, whose coming is not news any more."""
    await bed.enact(a_flow(a_stage("cut", policy=a_policy(base=0, **flow))))
    await told(bed, mail)
    await bed.sql("delete from alert")


def test_the_settings_know_the_same_alerts() -> None:
    assert set(get_args(AlertKind)) == set(ALERTS)


async def test_nobody_is_alerted_without_an_address(bed: Bed, mail: Deliveries) -> None:
    await bed.enact(a_flow())

    while (await mail.collect(None)).more:
        pass

    assert await bed.count("delivery") == 0


async def test_a_lost_lease_that_came_back_is_stale_job_recovered(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    job = await bed.submit(owner="ada", subject=("video", "v-1"))

    await bed.lose(await bed.take())

    [(kind, facts)] = await told(bed, mail)
    assert kind == "stale_job_recovered"
    assert (facts["job"]["id"], facts["job"]["subject"]["id"], facts["worker"]["name"]) == (job, "v-1", "ann")


async def test_a_job_out_of_attempts_is_job_max_retries_exceeded(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail, max_attempts=2)
    job = await bed.submit()

    for _ in range(2):
        await bed.fail(await bed.take(), "the disk is full")

    [(kind, facts)] = await told(bed, mail)
    assert (kind, facts["job"]["id"], facts["data"]["message"]) == ("job_max_retries_exceeded", job, "the disk is full")


async def test_a_job_that_lost_three_workers_in_a_row_is_out_of_attempts_too(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    await bed.submit()

    for _ in range(3):
        await bed.lose(await bed.take())
        await bed.sql("update worker set gone_at = null, beat_at = " + str(bed.now))

    assert [kind for kind, _ in await told(bed, mail)] == ["stale_job_recovered", "job_max_retries_exceeded"]


async def test_a_job_that_cannot_be_done_at_all_has_not_run_out_of_attempts(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    await bed.submit()

    await bed.say(await bed.take(), Failed("this is no film", permanent=True))

    assert await told(bed, mail) == []


async def test_failed_attempts_of_one_subject_are_a_pattern_whichever_jobs_they_were_of(
    bed: Bed, mail: Deliveries
) -> None:
    await quiet(bed, mail)
    for subject in ("v-1", "v-1", "v-2", "v-1"):
        before = await told(bed, mail)
        assert before == []
        await bed.submit(subject=("video", subject))
        await bed.say(await bed.take(), Failed("no", permanent=True))

    [(kind, facts)] = await told(bed, mail)

    assert (kind, facts["job"]["subject"]["id"], facts["failures"]) == ("job_failed_pattern", "v-1", 3)


async def test_a_completed_job_ends_the_pattern(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    for works in (False, False, True, False, False):
        await bed.submit(subject=("video", "v-1"))
        lease = await bed.take()
        await (bed.done(lease) if works else bed.say(lease, Failed("no", permanent=True)))

    assert await told(bed, mail) == []


async def test_workers_that_come_and_go_are_told(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)

    bob = await bed.enlist("bob")
    up = await told(bed, mail)
    await bed.engine.retire(bob)
    down = await told(bed, mail)

    assert [(kind, facts["worker"]["name"]) for kind, facts in up + down] == [
        ("worker_startup", "bob"),
        ("worker_shutdown", "bob"),
    ]


async def test_what_the_cooldown_holds_back_is_counted_and_told_with_the_next(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    for name in ("bob", "cleo", "dora"):
        await bed.enlist(name)
    first = await told(bed, mail)
    bed.pass_time(COOLDOWN - 1)
    await bed.enlist("emma")
    assert await told(bed, mail) == []

    bed.pass_time(1)
    await bed.enlist("fay")
    second = await told(bed, mail)
    bed.pass_time(COOLDOWN)
    await bed.enlist("gwen")
    third = await told(bed, mail)

    assert [(facts["worker"]["name"], facts["held_back"]) for _, facts in first + second + third] == [
        ("bob", 0),
        ("fay", 3),
        ("gwen", 0),
    ]


async def test_the_cooldown_is_of_one_kind(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    await bed.submit()
    bob = await bed.enlist("bob")

    await bed.lose(await bed.take())
    await bed.engine.retire(bob)

    kinds = [kind for kind, _ in await told(bed, mail)]
    assert sorted(kinds) == ["stale_job_recovered", "worker_shutdown", "worker_startup"]


async def test_several_servers_do_not_double_an_alert(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    others = [Deliveries((await bed.another_engine())._store, World()) for _ in range(2)]
    await bed.enlist("bob")
    await bed.enlist("cleo")

    await asyncio.gather(*(one.collect(RULES) for one in (mail, *others) for _ in range(3)))

    assert [(kind, facts["worker"]["name"]) for kind, facts in await told(bed, mail)] == [("worker_startup", "bob")]


async def test_only_the_kinds_that_are_wanted_are_sent(bed: Bed, mail: Deliveries) -> None:
    await quiet(bed, mail)
    few = rules_for("ops.example", kinds=["worker_shutdown"], cooldown=COOLDOWN, pattern=3)
    bob = await bed.enlist("bob")
    await bed.engine.retire(bob)

    await mail.collect(few)

    assert [row["kind"] for row in await bed.sql("select kind from delivery")] == ["worker_shutdown"]
