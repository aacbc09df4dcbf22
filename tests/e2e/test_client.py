"""The public Python interface, on both databases."""

import asyncio
from datetime import UTC, datetime

import pytest

import telecine
from telecine import Done, Flow, Submission
from telecine.errors import BadSpec, Conflict, KeyReused, SchemaMissing
from telecine.settings import Settings
from tests.postgres import fresh_schema

greet = Flow("greet")


@greet.stage(phase="planning")
def plan(bench: object) -> Done:
    return Done()


@greet.stage(needs=["plan"])
def speak(bench: object) -> Done:
    return Done()


def test_a_flow_is_registered_by_its_first_submit(url: str) -> None:
    async def story() -> tuple[bool, bool]:
        async with telecine.connect(url) as t:
            first = await t.submit(greet, {"name": "Ada"})
            second = await t.submit("greet")
            return first.created, second.created

    assert asyncio.run(story()) == (True, True)


def test_many_jobs_are_submitted_at_once_or_not_at_all(url: str) -> None:
    async def story() -> int:
        async with telecine.connect(url) as t:
            await t.register(greet)
            good = await t.submit_many([Submission(flow="greet") for _ in range(500)])
            with pytest.raises(BadSpec):
                await t.submit_many([Submission(flow="greet"), Submission(flow="greet", priority=99)])
            return len({one.job_id for one in good})

    assert asyncio.run(story()) == 500


def test_a_key_returns_the_first_job_and_refuses_another_body(url: str) -> None:
    async def story() -> None:
        async with telecine.connect(url) as t:
            first = await t.submit(greet, {"n": 1}, key="k")

            again = await t.submit(greet, {"n": 1}, key="k")

            assert (again.job_id, again.created) == (first.job_id, False)
            with pytest.raises(KeyReused):
                await t.submit(greet, {"n": 2}, key="k")

    asyncio.run(story())


def test_a_moment_without_a_time_zone_is_refused(sqlite_url: str) -> None:
    async def story() -> None:
        async with telecine.connect(sqlite_url) as t:
            with pytest.raises(BadSpec, match="no time zone"):
                await t.submit(greet, run_at=datetime(2030, 1, 1))
            await t.submit(greet, run_at=datetime(2030, 1, 1, tzinfo=UTC))

    asyncio.run(story())


def test_an_unprepared_postgresql_is_refused_with_the_way_out(postgres_url: str) -> None:
    async def story(empty: str) -> None:
        with pytest.raises(SchemaMissing, match="run `telecine migrate`"):
            async with telecine.connect(empty):
                pass

    with fresh_schema(postgres_url) as empty:
        asyncio.run(story(empty))


def test_an_address_and_settings_together_are_refused() -> None:
    async def story() -> None:
        with pytest.raises(BadSpec):
            async with telecine.connect("sqlite:///x.db", settings=Settings()):
                pass

    asyncio.run(story())


def test_a_job_that_is_pending_can_be_edited_and_cancelled(url: str) -> None:
    async def story() -> str:
        async with telecine.connect(url) as t:
            submitted = await t.submit(greet)
            await t.edit(submitted.job_id, version=1, priority="high")
            with pytest.raises(Conflict):
                await t.edit(submitted.job_id, version=1, priority="low")
            return await t.cancel(submitted.job_id, reason="changed my mind")

    assert asyncio.run(story()) == "cancelled"
