"""The public Python interface, on both databases."""

import asyncio
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import telecine
from telecine import Done, Flow, Submission
from telecine.engine.events.stream import Event
from telecine.errors import BadSpec, Conflict, KeyReused, LockHeld, NotFound, SchemaMissing
from telecine.settings import Settings
from telecine.wiring import make_worker, open_engine
from tests.e2e import client_flows
from tests.support.postgres import fresh_schema

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


# -- with a worker beside it ---------------------------------------------------------------------------------------


@asynccontextmanager
async def at_work(url: str, folder: Path) -> AsyncIterator[telecine.Client]:
    """A client and a worker in this process, on the same database."""
    settings = Settings(
        database_url=url, scratch=folder / "scratch", artifacts_url=str(folder / "artifacts"), slots=2, poll_seconds=0.2
    )
    async with open_engine(settings) as parts, asyncio.timeout(30):
        for flow in client_flows.ALL:
            await parts.engine.jobs.register(flow)
        worker = make_worker(parts, client_flows.ALL)
        working = asyncio.create_task(worker.run())
        try:
            yield telecine.Client(parts)
        finally:
            worker.stop()
            await working


def test_a_watch_shows_every_change_until_the_end(url: str, tmp_path: Path) -> None:
    async def story() -> tuple[list[str], float]:
        async with at_work(url, tmp_path) as t:
            submitted = await t.submit("greet", {"names": ["Ada", "Grace"]})
            seen = [view async for view in t.watch(submitted.job_id)]
            return [view.status for view in seen], seen[-1].progress

    statuses, progress = asyncio.run(story())

    assert statuses[-1] == "completed"
    assert statuses.count("completed") == 1
    assert progress == 1.0


def test_wait_returns_the_ended_job_however_it_ended(url: str, tmp_path: Path) -> None:
    async def story() -> tuple[str, str | None]:
        async with at_work(url, tmp_path) as t:
            submitted = await t.submit("broken")
            job = await t.wait(submitted.job_id, timeout=20)
            return job.status, job.error and job.error["message"]

    assert asyncio.run(story()) == ("failed", "it is broken")


def test_wait_without_time_returns_a_job_that_has_ended(url: str) -> None:
    async def story() -> tuple[str, str]:
        async with telecine.connect(url) as t:
            ended, pending = await t.submit(greet), await t.submit(greet)
            await t.cancel(ended.job_id)
            with pytest.raises(TimeoutError):
                await t.wait(pending.job_id, timeout=0)
            looks = [await t.wait(ended.job_id, timeout=seconds) for seconds in (0, -1)]
            return looks[0].status, looks[1].status

    assert asyncio.run(story()) == ("cancelled", "cancelled")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"owner": 5}, "owner must be a string, not 5"),
        ({"key": 5}, "key must be a string, not 5"),
        ({"dedupe_key": b"x"}, "dedupe_key must be a string, not b'x'"),
        ({"subject": "movie"}, "subject must be two strings, its kind and its id, not 'movie'"),
        ({"subject": ("movie", 7)}, "subject must be two strings"),
        ({"subject": ("movie",)}, "subject must be two strings"),
    ],
)
def test_names_that_are_no_strings_are_refused_in_a_sentence(
    sqlite_url: str, options: dict[str, Any], sentence: str
) -> None:
    async def story() -> None:
        async with telecine.connect(sqlite_url) as t:
            await t.register(greet)
            with pytest.raises(BadSpec, match=re.escape(sentence)):
                await t.submit("greet", **options)
            assert (await t.jobs()).items == ()

    asyncio.run(story())


def test_wait_gives_up_after_its_time(sqlite_url: str) -> None:
    async def story() -> None:
        async with telecine.connect(sqlite_url) as t:
            submitted = await t.submit(greet)
            with pytest.raises(TimeoutError):
                await t.wait(submitted.job_id, timeout=0.2)

    asyncio.run(story())


def test_wait_gives_up_after_its_time_although_the_database_does_not_answer(postgres: str) -> None:
    async def story() -> None:
        async with telecine.connect(postgres) as t:
            submitted = await t.submit(greet)
            other = await asyncpg.connect(postgres)
            try:
                async with other.transaction():
                    await other.execute("lock table job_row, stage_row, task in access exclusive mode")
                    async with asyncio.timeout(20):  # the lock is held until wait gives up
                        with pytest.raises(TimeoutError):
                            await t.wait(submitted.job_id, timeout=0.3)
            finally:
                await other.close()

    asyncio.run(story())


def test_what_is_submitted_in_a_foreign_transaction_is_found_by_the_next_look(url: str, tmp_path: Path) -> None:
    async def story() -> str:
        async with at_work(url, tmp_path) as t:
            if url.startswith("sqlite"):
                with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
                    submitted = await t.submit("greet", {"names": ["Ada"]}, transaction=connection)
            else:
                server = await asyncpg.connect(url)
                async with server.transaction():
                    submitted = await t.submit("greet", {"names": ["Ada"]}, transaction=server)
                await server.close()
            return (await t.wait(submitted.job_id)).status

    assert asyncio.run(story()) == "completed"


def test_events_come_in_order_and_resume_after_any_of_them(url: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with at_work(url, tmp_path) as t:
            submitted = await t.submit("greet", {"names": ["Ada"]})
            live = []
            async for event in t.events(0, job_id=submitted.job_id):
                live.append(event)
                if isinstance(event, Event) and event.kind == "job.completed":
                    break
            again = [event async for event in t.events(live[2].seq, job_id=submitted.job_id, follow=False)]

            assert live[0].kind == "job.created"
            assert [event.seq for event in live] == sorted({event.seq for event in live})
            assert again[: len(live) - 3] == live[3:]

    asyncio.run(story())


def test_a_lock_has_one_holder_at_a_time(url: str) -> None:
    async def story() -> None:
        async with telecine.connect(url) as t, t.lock("project/42", ttl=10, worker="ann") as held:
            [listed] = await t.locks()
            with pytest.raises(LockHeld, match="ann"):
                async with t.lock("project/42"):
                    pass

            assert (held.token, listed.name, listed.worker) == (1, "project/42", "ann")

    asyncio.run(story())


def test_videos_are_listed_shown_and_deleted(url: str) -> None:
    async def story() -> None:
        async with telecine.connect(url) as t:
            await t.register(greet)
            for number in range(3):
                await t.submit(greet, subject=("video", f"film-{number}"), owner="ada")

            first = await t.videos(owner="ada", status="pending", limit=2)
            rest = await t.videos(owner="ada", status="pending", limit=2, cursor=first.next)
            await t.delete_video("film-1")

            assert [one.id for one in (*first.items, *rest.items)] == ["film-2", "film-1", "film-0"]
            assert (await t.video("film-2")).status == "pending"
            assert [one.id for one in (await t.videos()).items] == ["film-2", "film-0"]
            with pytest.raises(NotFound):
                await t.video("film-1")

    asyncio.run(story())
