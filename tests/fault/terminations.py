"""Many small jobs while PostgreSQL ends connections or restarts: what became of the jobs, and of the workers.

report = disturbed(server, folder, jobs=2_000, disturb=terminate_every(0.03), delay=0.05)
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg

from telecine.engine import Submission
from tests.fault.drip import drip
from tests.fault.program import open_engine
from tests.fault.worker_processes import Crew, crew, enlisted
from tests.support.audit import audit
from tests.support.delayed_close import delayed_close
from tests.support.postgres import PrivatePostgres, fresh_schema

OBSERVER = "observer"
NAMES = ("ann", "bob")
# Any backend of a client, but those that belong to the test.
END_ONE = f"""
select pg_terminate_backend(pid) from pg_stat_activity
where backend_type = 'client backend' and application_name <> '{OBSERVER}' order by random() limit 1
"""
BROKEN = (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


@dataclass
class Report:
    """What became of it all."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)  # of failed attempts
    done_twice: int = 0
    findings: list[str] = field(default_factory=list)
    dead_workers: list[str] = field(default_factory=list)
    disturbances: int = 0
    seconds: float = 0.0
    tracebacks: int = 0
    lines: int = 0

    def __str__(self) -> str:
        return (
            f"{dict(self.outcomes)}, failed attempts {dict(self.codes)}, {self.disturbances} disturbances in "
            f"{self.seconds:.1f} s, dead workers {self.dead_workers}, done twice {self.done_twice}, "
            f"{len(self.findings)} findings of the audit, {self.tracebacks} tracebacks in {self.lines} log lines"
        )


@dataclass
class Work:
    """How many jobs, how long they may take, and the options of the workers."""

    jobs: int
    within: float
    options: dict[str, Any]


@asynccontextmanager
async def observing(url: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(url, server_settings={"application_name": OBSERVER, "idle_session_timeout": "0"})
    try:
        yield connection
    finally:
        connection.terminate()


class Terminator:
    """Ends a connection every so many seconds; on a machine that is so busy that to connect takes longer, fewer.

    Else hardly any connection would live long enough there to be used, and the test would last as long as it may.
    """

    def __init__(self, every: float) -> None:
        self.every = every
        self.count = 0

    async def run(self, server: PrivatePostgres) -> None:
        async with observing(server.url) as connection:
            while True:
                self.count += len(await connection.fetch(END_ONE))
                began = time.monotonic()
                async with observing(server.url):
                    took = time.monotonic() - began
                await asyncio.sleep(max(self.every, 4 * took))


class Restarter:
    """Stops the server fast and starts it again, every so many seconds; it is up at least as long as it was away."""

    def __init__(self, every: float) -> None:
        self.every = every
        self.count = 0

    async def run(self, server: PrivatePostgres) -> None:
        took = 0.0
        while True:
            await asyncio.sleep(max(self.every, took))
            began = time.monotonic()
            restarting = asyncio.ensure_future(asyncio.to_thread(self._restart, server))
            try:
                await asyncio.shield(restarting)
            finally:  # whoever comes next finds the server running
                await restarting
            took = time.monotonic() - began

    def _restart(self, server: PrivatePostgres) -> None:
        server.stop()
        server.start()
        self.count += 1


class IdleTimeout:
    """Lets the server end every session that is idle for so long."""

    def __init__(self, milliseconds: int) -> None:
        self.milliseconds = milliseconds
        self.count = 0

    async def run(self, server: PrivatePostgres) -> None:
        async with observing(server.url) as connection:
            await connection.execute(f"alter system set idle_session_timeout = {self.milliseconds}")
            await connection.execute("select pg_reload_conf()")
            try:
                await asyncio.Event().wait()
            finally:
                await connection.execute("alter system reset idle_session_timeout")
                await connection.execute("select pg_reload_conf()")


Disturbance = Terminator | Restarter | IdleTimeout


def disturbed(
    server: PrivatePostgres,
    folder: Path,
    disturbance: Disturbance,
    *,
    jobs: int,
    delay: float | None = None,
    within: float = 180.0,
    **options: Any,
) -> Report:
    """Let two workers do `jobs` jobs meanwhile; `delay` holds back the end of each connection, in seconds."""
    with fresh_schema(server.url) as url:
        report = asyncio.run(_proxied(server, folder, disturbance, (url, delay), Work(jobs, within, options)))
    logs = [path.read_text() for path in folder.glob("*.log")]
    report.tracebacks = sum(text.count("Traceback") for text in logs)
    report.lines = sum(len(text.splitlines()) for text in logs)
    return report


async def _submit(url: str, jobs: int) -> None:
    """Once both workers are there: how a worker starts is another matter."""
    async with open_engine(url) as engine:
        await engine.jobs.register(drip)
        await enlisted(engine, *NAMES)
        asked = [Submission(flow="drip", spec={"number": number}) for number in range(jobs)]
        for start in range(0, jobs, 500):
            await engine.jobs.submit_many(asked[start : start + 500])


async def _proxied(
    server: PrivatePostgres, folder: Path, disturbance: Disturbance, place: tuple[str, float | None], work: Work
) -> Report:
    url, delay = place
    if delay is None:
        with crew(url, folder) as workers:
            return await _worked(server, url, workers, disturbance, work)
    async with delayed_close(url, delay) as proxy:
        with crew(proxy.url, folder) as workers:
            return await _worked(server, url, workers, disturbance, work)


async def _worked(server: PrivatePostgres, url: str, workers: Crew, disturbance: Disturbance, work: Work) -> Report:
    for name in NAMES:
        workers.start(name, **{"module": "tests.fault.drip", "slots": 4, "lease": 20_000, **work.options})
    await _submit(url, work.jobs)
    began = time.monotonic()
    disturbing = asyncio.create_task(disturbance.run(server))
    try:
        await _all_ended(url, workers, began + work.within)
    finally:
        disturbing.cancel()
        with suppress(asyncio.CancelledError):
            await disturbing
    report = await _told(url)
    report.seconds = time.monotonic() - began
    report.disturbances = disturbance.count
    report.dead_workers = [name for name, worker in workers.workers.items() if worker.poll() is not None]
    return report


async def _all_ended(url: str, workers: Crew, deadline: float) -> None:
    """Until no job is left, no worker is left, or the time is up."""
    while time.monotonic() < deadline and any(worker.poll() is None for worker in workers.workers.values()):
        with suppress(*BROKEN):
            async with observing(url) as connection:
                while time.monotonic() < deadline and any(w.poll() is None for w in workers.workers.values()):
                    if not await connection.fetchval("select count(*) from job where outcome is null"):
                        return
                    await asyncio.sleep(0.1)
        await asyncio.sleep(0.1)


async def _told(url: str) -> Report:
    report = Report()
    async with observing(url) as connection, connection.transaction(isolation="repeatable_read"):
        for row in await connection.fetch("select coalesce(outcome, status) as word from job"):
            report.outcomes[row["word"]] += 1
        for row in await connection.fetch(
            "select coalesce(error ->> 'code', outcome) as code from attempt where state <> 'done'"
        ):
            report.codes[row["code"]] += 1
        twice = "select count(*) from (select from attempt where state = 'done' group by task_id having count(*) > 1) x"
        report.done_twice = await connection.fetchval(twice)

        async def sql(text: str) -> list[dict[str, Any]]:
            return [dict(row) for row in await connection.fetch(text)]

        report.findings = await audit(sql)
    return report
