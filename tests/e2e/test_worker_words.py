"""A worker whose questions or answers get lost on the way still does everything once."""

import asyncio
import random
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from telecine.dispatch.local import LocalBell
from telecine.engine import Engine, Submission
from telecine.errors import Unreachable
from telecine.worker import Worker, WorkerOptions
from telecine.worker.local_engine import LocalEngine
from telecine.world import World
from tests.fault.program import open_engine
from tests.fault.worker_processes import BRISK, ended, rows
from tests.support.flows import fan, quick

LOSSY = ("enlist", "claim", "brief", "beat", "keep", "log", "settle")


class LossyWords:
    """Loses some questions before the engine hears them, and some answers after it has acted."""

    def __init__(self, engine: Engine, dice: random.Random) -> None:
        self._engine = LocalEngine(engine)
        self._dice = dice
        self.lost = 0

    def __getattr__(self, name: str) -> Any:
        word = getattr(self._engine, name)
        if name not in LOSSY:
            return word

        async def say(*arguments: Any, **options: Any) -> Any:
            self._lose()
            answer = await word(*arguments, **options)
            self._lose()
            return answer

        return say

    def _lose(self) -> None:
        if self._dice.random() < 0.2:
            self.lost += 1
            raise Unreachable("lost on the way")


def worker_on(engine: Engine, words: Any, folder: Path, **options: Any) -> Worker:
    @asynccontextmanager
    async def beat_words() -> AsyncIterator[Any]:
        yield words

    given = {**BRISK, "slots": 20, **options}
    made = WorkerOptions(name="ann", scratch=folder / "scratch", **given)
    return Worker(words, LocalBell(), [quick, fan], made, World(), beat_words)


class CountedWords:
    """Notes which words were said."""

    def __init__(self, engine: Engine) -> None:
        self._engine = LocalEngine(engine)
        self.said: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.said.append(name)
        return getattr(self._engine, name)


def test_a_worker_with_nothing_to_do_looks_and_claims_nothing(sqlite_url: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_engine(sqlite_url) as engine:
            await engine.jobs.register(quick)
            words = CountedWords(engine)
            worker = worker_on(engine, words, tmp_path, poll=0.02)
            running = asyncio.ensure_future(worker.run())
            async with asyncio.timeout(10):
                while words.said.count("glance") < 10:
                    await asyncio.sleep(0.01)
            claims = words.said.count("claim")

            # Nobody rings at this worker's bell: its own look must show it.
            [job] = await engine.jobs.submit_many([Submission(flow="quick")])
            assert await ended(engine, job.job_id) == ["completed"]

            worker.stop()
            await running
            assert claims == 1, "once, when it came; then it only looked"

    asyncio.run(scene())


def test_a_worker_leaves_although_the_cancel_of_its_claim_was_lost(sqlite_url: str, tmp_path: Path) -> None:
    """As it is in `asyncio.wait_for` of Python 3.11, by which the client of Redis asks for hints."""
    claiming = asyncio.Event()

    class Lossy(CountedWords):
        async def claim(self, *_: object) -> list[object]:
            claiming.set()
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return []

    async def scene() -> None:
        async with open_engine(sqlite_url) as engine, asyncio.timeout(30):
            await engine.jobs.register(quick)
            worker = worker_on(engine, Lossy(engine), tmp_path, term=0.1)
            running = asyncio.ensure_future(worker.run())
            await claiming.wait()

            worker.stop()
            worker.stop()
            await running

    asyncio.run(scene())


def test_lost_questions_and_answers_cost_time_and_nothing_else(sqlite_url: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_engine(sqlite_url) as engine:
            await engine.jobs.register(quick)
            jobs = await engine.jobs.submit_many([Submission(flow="quick") for _ in range(300)])
            words = LossyWords(engine, random.Random(7))
            worker = worker_on(engine, words, tmp_path, beat=0.1)
            running = asyncio.ensure_future(worker.run())

            assert set(await ended(engine, *(job.job_id for job in jobs))) == {"completed"}

            worker.stop()
            await running
            attempts = await rows(engine, "select outcome, count(*) as n from attempt group by outcome")
            assert attempts == [{"outcome": "done", "n": 300}]
            assert words.lost > 10

    asyncio.run(scene())


def test_a_worker_waits_for_a_database_that_is_not_there_yet_and_may_leave_before(tmp_path: Path) -> None:
    class Away(LocalEngine):
        async def enlist(self, registration: object) -> int:
            asked.set()
            raise Unreachable("nobody is there")

    asked = asyncio.Event()

    async def scene() -> None:
        nothing: Any = None
        worker = worker_on(nothing, Away(nothing), tmp_path)
        running = asyncio.ensure_future(worker.run())
        await asyncio.wait_for(asked.wait(), 5)

        worker.stop()

        await asyncio.wait_for(running, 5)

    asyncio.run(scene())


def test_a_worker_that_was_stopped_before_it_began_claims_nothing(sqlite_url: str, tmp_path: Path) -> None:
    async def scene() -> None:
        async with open_engine(sqlite_url) as engine:
            await engine.jobs.register(quick)
            await engine.jobs.submit("quick")
            worker = worker_on(engine, LocalEngine(engine), tmp_path)

            worker.stop()
            await asyncio.wait_for(worker.run(), 5)

            assert await rows(engine, "select state from task") == [{"state": "ready"}]

    asyncio.run(scene())


def test_a_child_loads_nothing_that_only_the_worker_needs() -> None:
    heavy = {"asyncio", "asyncpg", "logging", "obstore", "pydantic", "rich", "sqlite3", "subprocess", "typer"}
    program = "import sys, telecine.worker.processes.child_main; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert heavy.isdisjoint(loaded.split())


def test_a_remote_worker_loads_no_engine() -> None:
    program = "import sys, telecine.worker.http, telecine.worker.loop; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert [name for name in loaded.split() if name.startswith("telecine.engine")] == []
