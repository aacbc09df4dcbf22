"""Submit once for each key; facts about subjects."""

import asyncio

import pytest

from telecine.engine import Submission
from telecine.errors import KeyReused
from telecine.facts import Done
from tests.support.builders import a_flow, a_stage
from tests.support.engine_fixture import Bed

LINE = a_flow("cut", "join")


# -- Idempotency keys ------------------------------------------------------------------------------


async def test_a_repeated_key_returns_the_first_job(bed: Bed) -> None:
    await bed.enact(LINE)

    first = await bed.engine.jobs.submit("film", {"film": "a"}, key="k")
    again = await bed.engine.jobs.submit("film", {"film": "a"}, key="k")

    assert (again.job_id, first.created, again.created) == (first.job_id, True, False)
    assert await bed.count("job") == 1


async def test_a_key_with_another_body_is_a_conflict_that_changes_nothing(bed: Bed) -> None:
    await bed.enact(LINE)
    first = await bed.submit(spec={"film": "a"}, key="k")

    with pytest.raises(KeyReused, match=f"'k' was used for job {first} with another body"):
        await bed.submit(spec={"film": "b"}, key="k")

    assert await bed.count("job") == 1


async def test_keys_of_different_owners_are_different_keys(bed: Bed) -> None:
    await bed.enact(LINE)

    jobs = {await bed.submit(key="k", owner="ann"), await bed.submit(key="k", owner="bob", spec=1)}

    assert len(jobs) == 2


async def test_of_many_who_race_with_one_key_all_get_the_same_job(bed: Bed) -> None:
    await bed.enact(LINE)
    other = await bed.another_engine()
    engines = [bed.engine, other] * 10

    answers = await asyncio.gather(*(engine.jobs.submit("film", {"film": "a"}, key="k") for engine in engines))

    assert len({answer.job_id for answer in answers}) == 1
    assert sum(answer.created for answer in answers) == 1
    assert await bed.count("job") == 1
    assert await bed.count("task") == 2


async def test_of_two_who_race_with_one_key_and_different_bodies_one_is_refused(bed: Bed) -> None:
    await bed.enact(LINE)
    other = await bed.another_engine()

    answers = await asyncio.gather(
        bed.engine.jobs.submit("film", 1, key="k"), other.jobs.submit("film", 2, key="k"), return_exceptions=True
    )

    assert sorted(type(answer).__name__ for answer in answers) == ["KeyReused", "Submitted"]
    assert await bed.count("job") == 1


async def test_a_key_within_one_call_names_one_job(bed: Bed) -> None:
    await bed.enact(LINE)

    first, second = await bed.engine.jobs.submit_many([Submission(flow="film", key="k")] * 2)

    assert first.job_id == second.job_id
    assert await bed.count("job") == 1


async def test_a_key_still_answers_after_the_job_has_ended(bed: Bed) -> None:
    await bed.enact(LINE)
    job_id = await bed.submit(key="k")
    await bed.run_all()

    assert await bed.submit(key="k") == job_id


# -- Dedupe keys -----------------------------------------------------------------------------------


async def test_a_dedupe_key_joins_the_twin_that_has_not_finished(bed: Bed) -> None:
    await bed.enact(LINE)

    first = await bed.engine.jobs.submit("film", 1, dedupe_key="d")
    twin = await bed.engine.jobs.submit("film", 2, dedupe_key="d")

    assert (twin.job_id, twin.created) == (first.job_id, False)


async def test_a_dedupe_key_is_free_again_once_its_job_has_ended(bed: Bed) -> None:
    await bed.enact(LINE)
    first = await bed.submit(dedupe_key="d")
    await bed.run_all()

    second = await bed.engine.jobs.submit("film", dedupe_key="d")

    assert second.created
    assert second.job_id != first


async def test_of_many_who_race_with_one_dedupe_key_all_get_the_same_job(bed: Bed) -> None:
    await bed.enact(LINE)
    other = await bed.another_engine()

    answers = await asyncio.gather(*(engine.jobs.submit("film", dedupe_key="d") for engine in [bed.engine, other] * 5))

    assert len({answer.job_id for answer in answers}) == 1
    assert await bed.count("job") == 1


async def test_a_key_that_was_answered_with_a_twin_gives_the_same_answer_for_ever(bed: Bed) -> None:
    await bed.enact(LINE)
    first = await bed.submit(dedupe_key="d")
    twin = await bed.submit(dedupe_key="d", key="k")
    await bed.run_all()

    again = await bed.submit(dedupe_key="d", key="k")

    assert [twin, again] == [first, first]


async def test_a_key_with_another_body_is_a_conflict_also_beside_a_twin(bed: Bed) -> None:
    await bed.enact(LINE)
    await bed.submit(spec=1, dedupe_key="d", key="k")

    with pytest.raises(KeyReused):
        await bed.submit(spec=2, dedupe_key="d", key="k")


# -- Subjects --------------------------------------------------------------------------------------


async def test_facts_of_a_done_task_are_merged_into_the_subject(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("look"), a_stage("cut", "look")))
    await bed.submit(subject=("movie", "7"), owner="ann")

    await bed.done(await bed.take(), facts={"width": 1920, "tags": ["a"], "note": {"a": 1}, "seen": None})
    lease = await bed.take()
    await bed.done(lease, facts={"height": 1080, "tags": ["b"], "note": {"b": 2}, "ok": True, "rate": 23.5})

    assert lease.subject == ("movie", "7")
    merged = {"width": 1920, "height": 1080, "tags": ["b"], "note": {"b": 2}, "seen": None, "ok": True, "rate": 23.5}
    assert (await bed.engine.brief(lease)).facts == merged


async def test_a_batch_may_bring_facts_about_one_subject_twice(bed: Bed) -> None:
    await bed.enact(a_flow(a_stage("look"), a_stage("listen")))
    await bed.submit(subject=("movie", "7"))
    leases = await bed.claim(2)

    await bed.settle(leases[:1] + leases[1:], Done(facts={"a": 1}))
    brief = await bed.engine.brief(leases[0])

    assert brief.facts == {"a": 1}


async def test_a_refused_word_brings_no_facts(bed: Bed) -> None:
    await bed.enact(a_flow("look"))
    job_id = await bed.submit(subject=("movie", "7"))
    lease = await bed.take()
    await bed.engine.jobs.cancel(job_id)

    answer = await bed.done(lease, facts={"a": 1})

    assert not answer.accepted
    assert [row["facts"] for row in await bed.sql("select facts from subject")] == ["{}"]
