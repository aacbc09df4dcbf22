"""PgQueuer on PostgreSQL: two processes, batches of 200, on uvloop as its own program runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager

import asyncpg
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import PostgresOutsider, postgres_outsider
from benchmarks.engine.peers.pacing import singly_awaited

HAS_BULK = True
ENTRYPOINT = "noop"
BATCH = 200
DONE_JOBS = "select job_id as job from pgqueuer_log where status = 'successful'"


@asynccontextmanager
async def _queries(url: str) -> AsyncIterator[Queries]:
    connection = await asyncpg.connect(url)
    try:
        yield Queries.from_asyncpg_connection(connection)
    finally:
        await connection.close()


def install(place: str) -> None:
    async def run() -> None:
        async with _queries(place) as queries:
            await queries.install()

    uvloop.run(run())


def enqueue_bulk(place: str, calls: Calls) -> None:
    async def run() -> None:
        async with _queries(place) as queries:
            for call in calls:
                payloads: list[bytes | None] = [payload(index).encode() for index in call]
                await queries.enqueue([ENTRYPOINT] * len(call), payloads, [0] * len(call))

    uvloop.run(run())


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    async def run() -> tuple[int, float]:
        async with _queries(place) as queries:
            return await singly_awaited(seconds, lambda text: queries.enqueue(ENTRYPOINT, text.encode()))

    return uvloop.run(run())


def outsider(place: str, jobs: int) -> AbstractContextManager[PostgresOutsider]:
    return postgres_outsider(place, DONE_JOBS)


def work(place: str, post: Post) -> None:
    async def run() -> None:
        connection = await asyncpg.connect(place)
        queuer = PgQueuer.from_asyncpg_connection(connection)

        @queuer.entrypoint(ENTRYPOINT)
        async def noop(job: Job) -> None:
            post.started(index_of(job.payload or b""))

        post.ready()
        await queuer.run(batch_size=BATCH)

    uvloop.run(run())
