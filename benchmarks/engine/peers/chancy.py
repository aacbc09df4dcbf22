"""Chancy on PostgreSQL: two processes, two thousand jobs at once, polling eagerly.

Chancy writes results once per second, so its durable end comes well after its last handler. Its
default log paints three lines per job, which would cost more than the job: it is told to be quiet.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager

from chancy import Chancy, Queue, Worker, job

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import PostgresOutsider, postgres_outsider
from benchmarks.engine.peers.pacing import singly_awaited

HAS_BULK = True
CONCURRENCY = 2_000
DONE_JOBS = "select id as job from chancy_jobs where state = 'succeeded'"

# Chancy finds a handler by the name of its module, so the worker's post has to be found there too.
_posts: list[Post] = []


def _chancy(url: str) -> Chancy:
    log = logging.getLogger("chancy-peer")
    log.setLevel(logging.WARNING)
    return Chancy(url, log=log)


@job()
async def noop(*, text: str) -> None:
    _posts[0].started(index_of(text))


def install(place: str) -> None:
    async def run() -> None:
        async with _chancy(place) as chancy:
            await chancy.migrate()
            # A worker opens this queue anyway, with a pool of processes unless it is declared before.
            await chancy.declare(
                Queue(
                    name="default",
                    concurrency=CONCURRENCY,
                    executor=Chancy.Executor.Async,
                    eager_polling=True,
                    polling_interval=1,
                )
            )

    asyncio.run(run())


def enqueue_bulk(place: str, calls: Calls) -> None:
    async def run() -> None:
        async with _chancy(place) as chancy:
            for call in calls:
                batch = [noop.job.with_kwargs(text=payload(index)) for index in call]
                async for _ in chancy.push_many(batch):
                    pass

    asyncio.run(run())


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    async def run() -> tuple[int, float]:
        async with _chancy(place) as chancy:
            return await singly_awaited(seconds, lambda text: chancy.push(noop.job.with_kwargs(text=text)))

    return asyncio.run(run())


def outsider(place: str, jobs: int) -> AbstractContextManager[PostgresOutsider]:
    return postgres_outsider(place, DONE_JOBS)


def work(place: str, post: Post) -> None:
    async def run() -> None:
        async with _chancy(place) as chancy:
            post.ready()
            async with Worker(chancy) as worker:
                await worker.wait_for_shutdown()

    _posts.append(post)
    asyncio.run(run())
