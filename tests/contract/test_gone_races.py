"""The duty about deleted subjects: it may die anywhere, be done by two, and meet a submit between its statements."""

import asyncio
from functools import partial
from typing import Any

import pytest

from telecine.engine import Submission
from telecine.engine.jobs import delete_subject
from telecine.engine.jobs.delete_subject import clear_gone, delete
from telecine.engine.jobs.submit import submit
from tests.contract.test_gone_subjects import FILM, WHO, freed, published
from tests.support.engine_fixture import Bed
from tests.support.interleaver import Outcome, sequential, stepper


@pytest.mark.parametrize("step", range(12))
async def test_the_duty_may_die_after_any_of_its_transactions(bed: Bed, step: int) -> None:
    await bed.enact(FILM)
    await published(bed, "k1")
    await published(bed, "k2")
    await bed.submit(subject=WHO)
    await bed.store.run(partial(delete_subject._hide, WHO, ""))
    run, left = bed.store.run, step

    async def until_dead(make: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise asyncio.CancelledError
        return await run(make)

    bed.store.run = until_dead  # type: ignore[method-assign]
    try:
        await clear_gone(bed.engine)
    except asyncio.CancelledError:
        pass
    finally:
        bed.store.run = run  # type: ignore[method-assign]
    await clear_gone(bed.engine)
    await clear_gone(bed.engine)

    assert {"k1", "k2"} <= set(await freed(bed))
    assert [await bed.count(table) for table in ("artifact", "subject", "subject_version", "job")] == [0] * 4
    assert await bed.count("archive") == 3


@pytest.mark.parametrize("step", ["drop", "put_away", "end", "cancel"])
async def test_a_submit_at_the_same_time_comes_before_or_after_each_step(bed: Bed, step: str) -> None:
    """In every order of their statements: the new job has a subject that is shown; nothing that it shows is freed."""
    seen: set[bool] = set()
    if not bed.is_postgres:  # one writes at a time
        for order in ("ab", "ba"):
            seen.add(await looked(bed, await sequential(bed, *await two_words(bed, step), order)))
    else:
        schedules = [""]
        async with stepper(bed) as steps:
            while schedules:
                outcome, others = await steps.run(*await two_words(bed, step), schedules.pop())
                schedules += others
                seen.add(await looked(bed, outcome))

    assert seen == {True, False}


async def two_words(bed: Bed, step: str) -> tuple[Any, Any]:
    """A step of the duty, and a submit."""
    await bed.clean()
    await bed.enact(FILM)
    old = await (bed.submit(subject=WHO) if step == "cancel" else published(bed, "k1"))
    await bed.store.run(partial(delete_subject._hide, WHO, ""))
    duty = await prepared(bed, step, old)
    wanted = [(Submission(flow="film", subject=WHO, owner="ada"), *await bed.engine.jobs.flow_row("film"))]
    return duty, lambda: submit(wanted)


async def looked(bed: Bed, outcome: Outcome) -> bool:
    """Whether the duty came first."""
    assert not isinstance(outcome.second, Exception), outcome
    shown = await bed.engine.subjects.get(*WHO)
    assert shown.job is not None
    assert shown.version is None or await freed(bed) == []
    assert await clear_gone(bed.engine) == 0
    assert (await bed.views.job(shown.job.id)).status == "pending"
    return bool(outcome.first)


async def prepared(bed: Bed, step: str, old: int) -> Any:
    """One transaction of the duty, with all before it done."""
    if step == "cancel":
        return partial(delete_subject._cancel_if_gone, WHO, old, bed.engine)
    if step == "drop":
        return partial(delete_subject._drop_versions, WHO)
    await bed.store.run(partial(delete_subject._drop_versions, WHO))
    rows = delete_subject.upto(await bed.store.read(partial(delete_subject._ended, WHO)))
    documents = await bed.store.read(partial(delete_subject.documents_of, [old], bed.engine.graph_cache))
    put_away = partial(delete_subject._put_away, WHO, rows, documents)
    if step == "put_away":
        return put_away
    await bed.store.run(put_away)
    return partial(delete_subject._end, WHO)


async def test_two_duties_at_once_do_each_other_no_harm(bed: Bed) -> None:
    await bed.enact(FILM)
    for number in range(6):
        await published(bed, f"k{number}", ("video", f"f{number}"))
        await delete(bed.engine, ("video", f"f{number}"))
    another = await bed.another_engine()

    ended = await asyncio.gather(clear_gone(bed.engine), clear_gone(another))

    assert sum(ended) == 6
    assert await bed.count("archive") == 6
    assert {f"k{number}" for number in range(6)} <= set(await freed(bed))


async def test_a_submit_just_before_a_deletion_is_never_left_without_its_subject(bed: Bed) -> None:
    """Deleted and cleared by one transaction, as quickly as can be; in every order of its statements and a submit's."""

    def at_once() -> Any:
        yield from delete_subject._hide(WHO, "")
        return (yield from delete_subject._end(WHO))

    async def words() -> tuple[Any, Any]:
        await bed.clean()
        await bed.enact(FILM)
        await bed.engine.subjects.learn(WHO, "ada", {"length": 3})
        wanted = [(Submission(flow="film", subject=WHO, owner="ada"), *await bed.engine.jobs.flow_row("film"))]
        return at_once, lambda: submit(wanted)

    async def whole(outcome: Outcome) -> bool:
        assert not isinstance(outcome.second, Exception), outcome
        assert (await bed.count("subject"), await bed.count("job")) == (1, 1)
        await clear_gone(bed.engine)
        left = (await bed.count("subject"), await bed.count("job"))
        assert left == (1, 1) if outcome.first is True else left in ((0, 0), (1, 1))
        return bool(outcome.first)

    seen: set[bool] = set()
    if not bed.is_postgres:
        for order in ("ab", "ba"):
            seen.add(await whole(await sequential(bed, *await words(), order)))
    else:
        schedules = [""]
        async with stepper(bed) as steps:
            while schedules:
                outcome, others = await steps.run(*await words(), schedules.pop())
                schedules += others
                seen.add(await whole(outcome))

    assert seen == {True, False}
