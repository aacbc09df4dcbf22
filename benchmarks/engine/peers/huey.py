"""Huey on SQLite (WAL, synchronous FULL): one process with two worker threads.

Huey deletes a job when it takes it, so a job that its worker dies with is lost: "done" is "gone".
The handler returns nothing, so no result is stored: the cheapest job that Huey knows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

from huey import SqliteHuey

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import RemainderOutsider
from benchmarks.engine.peers.pacing import singly

HAS_BULK = False
THREADS = 2


def _huey(path: str, post: Post | None = None) -> tuple[SqliteHuey, Callable[[str], object]]:
    huey = SqliteHuey("noop", filename=path, journal_mode="wal", fsync=True)

    @huey.task(name="noop")
    def noop(text: str) -> None:
        if post:
            post.started(index_of(text))

    return huey, noop


def install(place: str) -> None:
    huey, _ = _huey(place)
    huey.storage.close()


def enqueue_bulk(place: str, calls: Calls) -> None:
    _, noop = _huey(place)
    for index in chain.from_iterable(calls):
        noop(payload(index))


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    _, noop = _huey(place)
    return singly(seconds, noop)


@contextmanager
def outsider(place: str, jobs: int) -> Iterator[RemainderOutsider]:
    huey, _ = _huey(place)
    yield RemainderOutsider(jobs=jobs, remaining=huey.pending_count)
    huey.storage.close()


def work(place: str, post: Post) -> None:
    huey, _ = _huey(place, post)
    consumer = huey.create_consumer(workers=THREADS, worker_type="thread")
    post.ready()
    consumer.start()
    threading.Event().wait()
