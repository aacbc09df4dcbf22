"""Procrastinate on PostgreSQL: two processes, twenty jobs at once in each."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Any

from procrastinate import App, PsycopgConnector

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import PostgresOutsider, postgres_outsider
from benchmarks.engine.peers.pacing import singly_awaited

HAS_BULK = True
CONCURRENCY = 20
DONE_JOBS = "select id as job from procrastinate_jobs where status = 'succeeded'"


def _app(url: str, post: Post | None = None) -> tuple[App, Any]:
    app = App(connector=PsycopgConnector(conninfo=url))

    @app.task(name="noop")
    async def noop(text: str) -> None:
        if post:
            post.started(index_of(text))

    return app, noop


def install(place: str) -> None:
    async def run() -> None:
        app, _ = _app(place)
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    asyncio.run(run())


def enqueue_bulk(place: str, calls: Calls) -> None:
    async def run() -> None:
        app, noop = _app(place)
        async with app.open_async():
            for call in calls:
                await noop.batch_defer_async(*({"text": payload(index)} for index in call))

    asyncio.run(run())


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    async def run() -> tuple[int, float]:
        app, noop = _app(place)
        async with app.open_async():
            return await singly_awaited(seconds, lambda text: noop.defer_async(text=text))

    return asyncio.run(run())


def outsider(place: str, jobs: int) -> AbstractContextManager[PostgresOutsider]:
    return postgres_outsider(place, DONE_JOBS)


def work(place: str, post: Post) -> None:
    async def run() -> None:
        app, _ = _app(place, post)
        async with app.open_async():
            post.ready()
            await app.run_worker_async(concurrency=CONCURRENCY)

    asyncio.run(run())
