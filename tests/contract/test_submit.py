"""Submit: one or thousands, with what is asked, parked until their time, after one another."""

from typing import Any

import pytest

from telecine.engine import Submission
from telecine.errors import BadSpec, NotFound
from telecine.facts import HOUR, MINUTE
from tests.support.builders import a_flow
from tests.support.engine_fixture import Bed

LINE = a_flow("cut", "join")


async def test_a_job_has_its_stages_and_its_first_task_is_ready(bed: Bed) -> None:
    await bed.enact(LINE)

    job_id = await bed.submit(spec={"film": "a"}, owner="ann")

    job = await bed.job(job_id)
    assert (job["status"], job["phase"], job["owner"], job["outcome"]) == ("pending", "processing", "ann", None)
    assert await bed.stages(job_id) == {"cut": "ready", "join": "new"}
    assert await bed.states(job_id) == ["ready", "new"]
    assert await bed.events(job_id) == ["job.created"]
    await bed.audited()


async def test_an_unknown_flow_is_refused_with_the_known_ones(bed: Bed) -> None:
    await bed.enact(LINE)

    with pytest.raises(NotFound, match="there is no flow 'opera'; known flows: film"):
        await bed.submit("opera")


async def test_five_thousand_jobs_are_one_call(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))

    answers = await bed.engine.jobs.submit_many([Submission(flow="film", spec=n) for n in range(5_000)])

    assert len({answer.job_id for answer in answers}) == 5_000
    assert await bed.count("task", "state = 'ready'") == 5_000
    assert [lease.spec for lease in await bed.claim(10)] == list(range(10))


async def test_a_call_with_one_bad_job_creates_none(bed: Bed) -> None:
    await bed.enact(LINE)

    with pytest.raises(BadSpec):
        await bed.engine.jobs.submit_many([Submission(flow="film"), Submission(flow="film", priority=11)])

    assert await bed.count("job") == 0


# -- When ------------------------------------------------------------------------------------------


async def test_a_job_for_later_is_parked_until_its_time(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit(run_at=bed.now + MINUTE)
    another = await bed.submit(run_at=bed.now + 2 * MINUTE)

    early = await bed.claim()
    bed.pass_time(MINUTE - 1)
    still = await bed.claim()
    parked = [task["parked"] for task in await bed.tasks(job_id)]
    bed.pass_time(1)
    due = await bed.claim(2)
    parked += [task["parked"] for task in await bed.tasks(another)]

    assert (early, still, [lease.job_id for lease in due]) == ([], [], [job_id])
    assert [bool(value) for value in parked] == [True, False] * 2


async def test_a_time_that_has_passed_means_now(bed: Bed) -> None:
    await bed.enact(LINE)

    await bed.submit(run_at=bed.now - HOUR)

    assert len(await bed.claim()) == 1


async def test_a_job_comes_after_another_that_completes(bed: Bed) -> None:
    await bed.enact(LINE)
    first = await bed.submit()
    second = await bed.submit(after=(first,))
    waiting = await bed.states(second)

    await bed.done(await bed.take())
    await bed.done(await bed.take())

    assert waiting == ["new", "new"]
    assert await bed.status(first) == "completed"
    assert await bed.states(second) == ["ready", "new"]
    await bed.audited()


async def test_a_job_waits_for_all_that_it_comes_after(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    before = [await bed.submit(), await bed.submit()]
    last = await bed.submit(after=tuple(before))

    await bed.done(await bed.take())
    half = await bed.states(last)
    await bed.done(await bed.take())

    assert (half, await bed.states(last)) == (["new"], ["ready"])


async def test_a_job_that_is_named_twice_is_waited_for_once(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    second = await bed.submit(after=(first, first))

    await bed.done(await bed.take())

    assert await bed.states(second) == ["ready"]


@pytest.mark.parametrize("ending", ["failed", "cancelled"])
async def test_a_job_after_one_that_does_not_complete_is_cancelled_with_that_reason(bed: Bed, ending: str) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    second = await bed.submit(after=(first,))
    third = await bed.submit(after=(second,))

    if ending == "failed":
        await bed.fail(await bed.take(), permanent=True)
    else:
        await bed.engine.jobs.cancel(first)
    bed.pass_time(2_000)
    await bed.engine.sweep()

    assert [await bed.status(job) for job in (second, third)] == ["cancelled", "cancelled"]
    assert f"job {first}, which it comes after, is {ending}" in str((await bed.job(second))["error"])
    await bed.audited()


async def test_a_job_after_one_that_has_already_completed_starts_at_once(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    await bed.run_all()

    assert await bed.states(await bed.submit(after=(first,))) == ["ready"]


async def test_a_job_after_one_that_had_already_failed_is_cancelled_by_the_sweep(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    await bed.fail(await bed.take(), permanent=True)
    second = await bed.submit(after=(first,))

    bed.pass_time(2_000)
    await bed.engine.sweep()

    assert await bed.status(second) == "cancelled"


async def test_waiting_for_a_job_that_does_not_exist_is_refused(bed: Bed) -> None:
    await bed.enact(LINE)

    with pytest.raises(NotFound, match="cannot wait for job 999999: there is no such job"):
        await bed.submit(after=(999_999,))


async def test_a_job_after_another_also_waits_for_its_own_time(bed: Bed) -> None:
    await bed.enact(a_flow("cut"))
    first = await bed.submit()
    second = await bed.submit(after=(first,), run_at=bed.now + MINUTE)

    await bed.done(await bed.take())
    early = await bed.claim()
    bed.pass_time(MINUTE)

    assert early == []
    assert (await bed.take()).job_id == second


# -- What is asked ---------------------------------------------------------------------------------


async def test_stages_can_be_skipped_from_the_start(bed: Bed) -> None:
    await bed.enact(LINE)

    job_id = await bed.submit(skip=("cut",))

    assert await bed.stages(job_id) == {"cut": "skipped", "join": "ready"}
    assert await bed.run_all() == 1
    assert await bed.status(job_id) == "completed"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"skip": ("opera",)}, "flow 'film' has no stage 'opera' to skip; it has cut, join"),
        ({"skip": ("cut", "join")}, "nothing would be left to do"),
        ({"priority": 11}, "priority 11 is out of range; use 0 \\(background\\) to 10 \\(critical\\)"),
        ({"priority": -1}, "out of range"),
        ({"priority": True}, "out of range"),
        ({"priority": 2.5}, "out of range"),
        ({"priority": "urgent"}, "priority 'urgent' is unknown; use 0 to 10 or critical, high, normal"),
        ({"key": "k" * 256}, "key is longer than 255 characters"),
        ({"spec": "x" * 1_000_001}, "the spec has 1,000,003 characters; at most 1,000,000 are taken"),
        ({"spec": {"at": object()}}, "the spec is not JSON"),
        ({"spec": float("nan")}, "the spec is not JSON"),
        ({"spec": {"title": "a\x00b"}}, "the spec has a character that cannot be stored"),
        ({"spec": ["\ud800"]}, "the spec has a character that cannot be stored"),
        ({"owner": "an\x00n"}, "owner has a character that cannot be stored"),
    ],
)
async def test_a_bad_submission_is_refused_in_one_sentence(bed: Bed, options: dict[str, Any], sentence: str) -> None:
    await bed.enact(LINE)

    with pytest.raises(BadSpec, match=sentence):
        await bed.submit(**options)

    assert await bed.count("job") == 0


@pytest.mark.parametrize(
    ("given", "stored"), [("critical", 10), ("high", 8), ("normal", 5), ("low", 2), ("background", 0), (7, 7), ("3", 3)]
)
async def test_priority_is_a_number_or_a_name(bed: Bed, given: int | str, stored: int) -> None:
    await bed.enact(LINE)

    assert (await bed.job(await bed.submit(priority=given)))["priority"] == stored


async def test_a_spec_comes_back_as_it_was(bed: Bed) -> None:
    await bed.enact(LINE)
    spec = {"title": "Amélie 🎬", "tabs": "a\tb\\u0000", "n": [1, 2.5, None, True], "nest": {"a": {}}}

    await bed.submit(spec=spec)

    assert (await bed.take()).spec == spec


async def test_jobs_of_every_kind_may_come_in_one_call(bed: Bed) -> None:
    await bed.enact(LINE, a_flow("sing", name="opera"))
    first = await bed.submit("opera")
    wanted = [
        Submission(flow="film", priority=9),
        Submission(flow="opera", run_at=bed.now + HOUR),
        Submission(flow="film", skip=("cut",)),
        Submission(flow="opera", after=(first,)),
        Submission(flow="film", priority=9, owner="ann"),
    ]

    answers = await bed.engine.jobs.submit_many(wanted)

    ids = [answer.job_id for answer in answers]
    assert ids == sorted(ids)
    assert [list((await bed.stages(job_id)).values()) for job_id in ids] == [
        ["ready", "new"],
        ["ready"],
        ["skipped", "ready"],
        ["new"],
        ["ready", "new"],
    ]
    jobs = [await bed.job(job_id) for job_id in ids]
    assert [(job["flow"], job["priority"], job["waits"], job["owner"]) for job in jobs] == [
        ("film", 9, 0, ""),
        ("opera", 5, 0, ""),
        ("film", 5, 0, ""),
        ("opera", 5, 1, ""),
        ("film", 9, 0, "ann"),
    ]
    await bed.audited()
