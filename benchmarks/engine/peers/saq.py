"""SAQ on PostgreSQL: one process, fifty jobs at once, a pool of twenty connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from itertools import chain
from typing import Any

from saq import Worker
from saq.queue.postgres import PostgresQueue

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import PostgresOutsider, postgres_outsider
from benchmarks.engine.peers.pacing import singly_awaited

HAS_BULK = False
CONCURRENCY = 50
CONNECTIONS = 20
DONE_JOBS = "select key as job from saq_jobs where status = 'complete'"


@asynccontextmanager
async def _queue(url: str) -> AsyncIterator[PostgresQueue]:
    queue = PostgresQueue.from_url(url, max_size=CONNECTIONS)
    await queue.connect()
    try:
        yield queue
    finally:
        await queue.disconnect()


def install(place: str) -> None:
    async def run() -> None:
        async with _queue(place):
            pass

    asyncio.run(run())


def enqueue_bulk(place: str, calls: Calls) -> None:
    async def run() -> None:
        async with _queue(place) as queue:
            for index in chain.from_iterable(calls):
                await queue.enqueue("noop", text=payload(index))

    asyncio.run(run())


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    async def run() -> tuple[int, float]:
        async with _queue(place) as queue:
            return await singly_awaited(seconds, lambda text: queue.enqueue("noop", text=text))

    return asyncio.run(run())


def outsider(place: str, jobs: int) -> AbstractContextManager[PostgresOutsider]:
    return postgres_outsider(place, DONE_JOBS)


def work(place: str, post: Post) -> None:
    async def noop(context: Any, *, text: str) -> None:
        post.started(index_of(text))

    async def run() -> None:
        async with _queue(place) as queue:
            functions: list[Any] = [("noop", noop)]
            worker = Worker(queue, functions=functions, concurrency=CONCURRENCY)
            post.ready()
            await worker.start()

    asyncio.run(run())
