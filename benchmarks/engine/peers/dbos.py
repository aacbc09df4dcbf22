"""DBOS on PostgreSQL: two processes, a hundred workflows at once in each, polling every 50 ms.

A launched DBOS takes work at once, so launching comes after the word "go"; the clock starts with
the first handler all the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import sqlalchemy
from dbos import DBOS, DBOSClient, DBOSConfig, EnqueueOptions

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import PostgresOutsider, postgres_outsider
from benchmarks.engine.peers.pacing import singly

HAS_BULK = False
CONCURRENCY = 100
POLLING_S = 0.05
APPLICATION = "bench"
VERSION = "1"
OPTIONS: EnqueueOptions = {"queue_name": "noop", "workflow_name": "noop", "app_version": VERSION}
DONE_JOBS = "select workflow_uuid as job from dbos.workflow_status where status = 'SUCCESS'"


def _config(url: str) -> DBOSConfig:
    return {
        "name": APPLICATION,
        "system_database_url": url,
        "application_version": VERSION,
        # Two executors of one name would take each other for a restart and recover their work.
        "executor_id": str(os.getpid()),
        "log_level": "ERROR",
    }


@contextmanager
def _client(url: str) -> Iterator[DBOSClient]:
    client = DBOSClient(system_database_url=url)
    try:
        yield client
    finally:
        client.destroy()


def install(place: str) -> None:
    DBOS(config=_config(place))
    DBOS.launch()
    DBOS.register_queue("noop", worker_concurrency=CONCURRENCY, polling_interval_sec=POLLING_S)
    DBOS.destroy()


def enqueue_bulk(place: str, calls: Calls) -> None:
    """There is no bulk call; many calls in one transaction are the next best."""
    engine = sqlalchemy.create_engine(place.replace("postgresql:", "postgresql+psycopg:", 1))
    with _client(place) as client:
        for call in calls:
            with engine.begin() as connection:
                for index in call:
                    client.enqueue_in_transaction(connection, OPTIONS, payload(index))
    engine.dispose()


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    with _client(place) as client:
        return singly(seconds, lambda text: client.enqueue(OPTIONS, text))


def outsider(place: str, jobs: int) -> AbstractContextManager[PostgresOutsider]:
    return postgres_outsider(place, DONE_JOBS)


def work(place: str, post: Post) -> None:
    DBOS(config=_config(place))

    @DBOS.workflow(name="noop")
    def noop(text: str) -> None:
        post.started(index_of(text))

    post.ready()
    DBOS.launch()
    threading.Event().wait()
