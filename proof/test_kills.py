"""kill -9 of the database, again and again: nothing that was acknowledged is ever missing."""

import asyncio
import contextlib
import random
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from telecine.engine import Engine, Registration, Submission
from telecine.errors import StoreError, TelecineError
from telecine.facts import Done, LeaseOutcome, WorkerId
from telecine.store.open import bring_up_to_date, open_store
from tests.support.audit import audit
from tests.support.builders import a_flow
from tests.support.postgres import PrivatePostgres
from tests.support.scene import execute

KILLS = 50
WANTED = 10_000
FLOW = a_flow("cut")
LANES = {FLOW.graph.lane(0): "film"}


class Client:
    """Submits, claims and settles without end, and remembers what was acknowledged."""

    def __init__(self, url: str, seed: int) -> None:
        self.url, self.dice = url, random.Random(seed)
        self.jobs: set[int] = set()
        self.done: set[int] = set()
        self.refused = 0

    async def live(self, worker: WorkerId, name: str) -> None:
        store = open_store(self.url, dice=self.dice)
        engine = Engine(store)
        turn = 0
        try:
            while True:
                turn += 1
                with contextlib.suppress(TelecineError):
                    await engine.jobs.register(FLOW)
                    await self.work(engine, worker, f"{name} {turn}")
                self.refused += 1
                await asyncio.sleep(0.01)
        finally:
            with contextlib.suppress(TelecineError, OSError):
                await store.close()

    async def work(self, engine: Engine, worker: WorkerId, name: str) -> None:
        """Until the database goes away."""
        for n in range(1_000_000):
            answers = await engine.jobs.submit_many([Submission(flow="film")] * self.dice.randint(1, 20))
            self.jobs |= {answer.job_id for answer in answers}
            leases = await engine.claim(worker, f"{name} {n}", LANES, 10)
            words = [LeaseOutcome(lease.task_id, lease.token, Done()) for lease in leases]
            self.done |= {answer.task_id for answer in await engine.settle(words) if answer.accepted}


@asynccontextmanager
async def clients(url: str, worker: WorkerId, count: int = 4) -> AsyncIterator[list[Client]]:
    """They live through every kill, and find their way back each time."""
    some = [Client(url, seed=n) for n in range(count)]
    tasks = [asyncio.create_task(client.live(worker, f"client {n}")) for n, client in enumerate(some)]
    try:
        yield some
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def enlist(url: str, dice: random.Random) -> WorkerId:
    store = open_store(url, dice=dice)
    await bring_up_to_date(store, url)
    worker = await Engine(store).enlist(Registration(name="ann", hostname="here", lanes=tuple(LANES)))
    await store.close()
    return worker


async def check(url: str, some: list[Client]) -> None:
    """Whatever was acknowledged up to now is there."""
    jobs = set().union(*(client.jobs for client in some))
    done = set().union(*(client.done for client in some))
    store = open_store(url, dice=random.Random(1))
    try:
        there = {row["id"] for row in await execute(store, "select id from job")}
        ended = {row["id"] for row in await execute(store, "select id from task where state = 'done'")}
    finally:
        await store.close()
    assert jobs - there == set(), f"{len(jobs - there)} acknowledged jobs are missing"
    assert done - ended == set(), f"{len(done - ended)} acknowledged outcomes are missing"


async def killed_again_and_again(server: PrivatePostgres, dice: random.Random) -> list[Client]:
    worker = await enlist(server.url, dice)
    async with clients(server.url, worker) as some:
        for kill in range(KILLS):
            enough = WANTED * (kill + 1) / KILLS
            async with asyncio.timeout(60):
                while sum(len(client.jobs) for client in some) < enough:
                    await asyncio.sleep(0.01)
            await asyncio.sleep(dice.random() * 0.05)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            await check(server.url, some)
    return some


def test_postgres_that_is_killed_fifty_times_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async def done_twice(url: str) -> list[dict[str, object]]:
        store = open_store(url, dice=random.Random(1))
        try:
            return await execute(
                store, "select task_id from attempt where state = 'done' group by task_id having count(*) > 1"
            )
        finally:
            await store.close()

    with PrivatePostgres(tmp_path) as server:
        some = asyncio.run(killed_again_and_again(server, random.Random(7)))
        assert asyncio.run(done_twice(server.url)) == []

    jobs, done = (sum(map(len, sets)) for sets in zip(*((c.jobs, c.done) for c in some), strict=True))
    print(f"{KILLS} kills, {jobs:,} acknowledged submits, {done:,} acknowledged outcomes, 0 lost")
    assert jobs >= WANTED


def test_sqlite_whose_process_is_killed_fifty_times_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    dice = random.Random(8)
    path = tmp_path / "telecine.db"
    url = f"sqlite:///{path}"
    said: dict[str, set[int]] = {"job": set(), "done": set()}

    worker = asyncio.run(enlist(url, dice))
    for kill in range(KILLS):
        enough = WANTED * (kill + 1) // KILLS + dice.randint(0, 50)
        with subprocess.Popen(
            [sys.executable, "-m", "proof.submitter", url, str(worker)], stdout=subprocess.PIPE, text=True
        ) as child:
            assert child.stdout is not None
            for line in child.stdout:
                kind, number = line.split()
                said[kind].add(int(number))
                if len(said["job"]) >= enough:
                    child.kill()
                    break
            # What it had said before it died was acknowledged too.
            for line in child.stdout:
                if line.endswith("\n"):
                    kind, number = line.split()
                    said[kind].add(int(number))
        with contextlib.closing(sqlite3.connect(path)) as database:
            assert database.execute("pragma integrity_check").fetchone()[0] == "ok"
            there = {row[0] for row in database.execute("select id from job")}
            ended = {row[0] for row in database.execute("select id from task where state = 'done'")}
        assert said["job"] - there == set()
        assert said["done"] - ended == set()

    async def audited() -> list[str]:
        store = open_store(url, dice=dice)
        try:
            return await audit(lambda text: execute(store, text))
        finally:
            with contextlib.suppress(StoreError):
                await store.close()

    print(f"{KILLS} kills, {len(said['job']):,} acknowledged submits, {len(said['done']):,} outcomes, 0 lost")
    assert len(said["job"]) >= WANTED
    assert asyncio.run(audited()) == []
