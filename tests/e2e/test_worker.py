"""A worker runs handlers wherever they live, and what they say arrives."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from telecine.engine import Engine
from telecine.errors import BadFlow
from telecine.worker import FlowSource, load_flows
from tests.fault.program import open_engine, open_worker
from tests.fault.worker_processes import BRISK, ended, outcomes, result, rows, until
from tests.support.postgres import fresh_schema


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
        return
    with fresh_schema(request.getfixturevalue("postgres_url")) as url:
        yield url


@asynccontextmanager
async def working(url: str, folder: Path, **options: Any) -> AsyncIterator[Engine]:
    """An engine whose jobs are done by a worker in this very process."""
    async with open_engine(url) as engine, open_worker(url, folder, {**BRISK, "slots": 4, **options}) as worker:
        running = asyncio.ensure_future(worker.run())
        try:
            yield engine
        finally:
            worker.stop()
            await asyncio.wait_for(running, 20)


def scene(url: str, folder: Path, play: Callable[[Engine], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        async with working(url, folder, **options) as engine:
            await play(engine)

    asyncio.run(run())


def test_a_handler_may_be_sync_or_async_in_a_process_or_a_thread_and_inline(url: str, tmp_path: Path) -> None:
    async def play(engine: Engine) -> None:
        job = await engine.jobs.submit("everywhere")

        [outcome] = await ended(engine, job.job_id)

        found = await rows(engine, f"select result, stage from task where job_id = {job.job_id} order by stage")
        pids = [json.loads(row["result"]) for row in found]
        assert outcome == "completed"
        assert all(saved == own for saved, own in pids)
        assert [own == os.getpid() for _, own in pids] == [False, False, True, True, True]

    scene(url, tmp_path, play)


def test_pieces_fan_out_and_their_results_come_together(url: str, tmp_path: Path) -> None:
    async def play(engine: Engine) -> None:
        job = await engine.jobs.submit("fan", {"pieces": 50})

        assert await ended(engine, job.job_id) == ["completed"]

        assert await result(engine, job.job_id) == 2 * sum(range(50))

    scene(url, tmp_path, play, slots=16)


def test_the_next_attempt_begins_where_the_last_checkpoint_was(url: str, tmp_path: Path) -> None:
    async def play(engine: Engine) -> None:
        job = await engine.jobs.submit("steps")

        assert await ended(engine, job.job_id) == ["completed"]

        assert await outcomes(engine, job.job_id) == ["failed", "done"]
        assert await result(engine, job.job_id) == {"begun": 2, "reached": 3}

    scene(url, tmp_path, play)


def test_what_a_handler_keeps_logs_and_prints_is_found_afterwards(url: str, tmp_path: Path) -> None:
    async def play(engine: Engine) -> None:
        job = await engine.jobs.submit("goods")

        assert await ended(engine, job.job_id) == ["completed"]

        [artifact] = await rows(engine, f"select key, size, sha256 from artifact where job_id = {job.job_id}")
        logged = await rows(engine, f"select kind, message from job_log where job_id = {job.job_id} order by id")
        said = await result(engine, job.job_id)
        assert artifact["key"] == f"{job.job_id}/goods@1/0/1/out/made.txt"
        assert (tmp_path / "artifacts" / artifact["key"]).read_text() == "made here"
        assert artifact["size"] == len("made here")
        assert {row["message"] for row in logged} == {"kept it", "make --all", "printed by the handler"}
        assert {row["kind"] for row in logged} == {"log", "step"}
        assert said["awaitable"]
        await until(lambda: not Path(said["scratch"]).exists())

    scene(url, tmp_path, play)


@pytest.mark.parametrize(
    ("how", "code", "says"),
    [
        ("exit", "child_died", "exited with code 3 and left no outcome; its last output: a word before the end"),
        ("signal", "child_died", "was killed by SIGSEGV"),
        ("raise", "failed", "KeyError: 'no such thing'"),
        ("return", "bad_return", "the handler returned str"),
        ("not json", "bad_return", "is not JSON"),
        ("fail", "failed", "could not"),
    ],
)
def test_however_a_handler_ends_the_job_says_so_in_one_sentence(
    sqlite_url: str, tmp_path: Path, how: str, code: str, says: str
) -> None:
    async def play(engine: Engine) -> None:
        job = await engine.jobs.submit("crash", {"how": how})

        assert await ended(engine, job.job_id) == ["failed"]

        [row] = await rows(engine, f"select error from job where id = {job.job_id}")
        assert f'"code": "{code}"' in row["error"]
        assert says in row["error"]
        assert "\\n" not in row["error"]

    scene(sqlite_url, tmp_path, play)


def test_the_traceback_of_a_handler_is_in_its_log(sqlite_url: str, tmp_path: Path) -> None:
    async def play(engine: Engine) -> None:
        job = await engine.jobs.submit("crash", {"how": "raise"})
        await ended(engine, job.job_id)

        logged = await rows(engine, "select level, data from job_log where level = 'error'")

        assert len(logged) == 1
        assert "in end_badly" in logged[0]["data"]

    scene(sqlite_url, tmp_path, play)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (
            FlowSource(module="no.such.module"),
            "there is no module 'no.such.module' here: check the name and the folder",
        ),
        (FlowSource(module="tests.support.postgres"), "tests.support.postgres has no flow: write `flow = Flow(...)`"),
        (FlowSource(path="nowhere.py"), "there is no file"),
    ],
)
def test_a_source_without_flows_is_refused_with_one_sentence(source: FlowSource, says: str) -> None:
    with pytest.raises(BadFlow) as refusal:
        load_flows(source)

    assert says in str(refusal.value)
    assert "\n" not in str(refusal.value)
