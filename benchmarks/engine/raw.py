"""The limit: what PostgreSQL and asyncpg can do when nobody keeps a contract.

A table with a primary key, a partial ready index and a lease index (without it nobody could find what
a dead worker held), one claim statement, one completion statement, nothing else: no fence, no
attempts, no events, no fairness. On uvloop, because others are, and with the server's default
durability. It has the shape of a peer, so it is measured like one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Any

import asyncpg
import uvloop

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import PostgresOutsider, postgres_outsider
from benchmarks.engine.peers.pacing import singly_awaited

HAS_BULK = True
BATCH = 200
DONE_JOBS = "select id as job from job where state = 'done'"

SCHEMA = """
create table job (
    id bigint generated always as identity primary key,
    state text not null default 'ready',
    worker int,
    lease_until timestamptz,
    payload jsonb not null
);
create index job_ready on job (id) where state = 'ready';
create index job_lease on job (lease_until) where state = 'running';
"""
ENQUEUE = "insert into job (payload) select * from unnest($1::jsonb[])"
CLAIM = """
update job set state = 'running', worker = $1, lease_until = now() + interval '30 s'
where id = any (array(
    select id from job where state = 'ready' order by id for update skip locked limit $2
))
returning id, payload ->> 'text' as text
"""
COMPLETE = """
update job set state = 'done'
from unnest($1::bigint[]) as finished (id)
where job.id = finished.id and job.state = 'running'
"""


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


def install(place: str) -> None:
    async def run() -> None:
        async with connected(place) as connection:
            await connection.execute(SCHEMA)

    uvloop.run(run())


def _document(text: str) -> str:
    return json.dumps({"text": text})


def enqueue_bulk(place: str, calls: Calls) -> None:
    async def run() -> None:
        async with connected(place) as connection:
            for call in calls:
                await connection.execute(ENQUEUE, [_document(payload(index)) for index in call])

    uvloop.run(run())


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    async def run() -> tuple[int, float]:
        async with connected(place) as connection:
            return await singly_awaited(seconds, lambda text: connection.execute(ENQUEUE, [_document(text)]))

    return uvloop.run(run())


def outsider(place: str, jobs: int) -> AbstractContextManager[PostgresOutsider]:
    return postgres_outsider(place, DONE_JOBS)


def work(place: str, post: Post) -> None:
    async def run() -> None:
        async with connected(place) as connection:
            post.ready()
            while rows := await connection.fetch(CLAIM, 1, BATCH):
                for row in rows:
                    post.started(index_of(row["text"]))
                await connection.execute(COMPLETE, [row["id"] for row in rows])
            # The crew takes a worker that goes away for a worker that died.
            await asyncio.Event().wait()

    uvloop.run(run())
