"""RQ on Redis: two SimpleWorker processes (the default worker forks for every job)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from redis import Redis
from rq import Queue, SimpleWorker

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import RemainderOutsider
from benchmarks.engine.peers.pacing import singly

HAS_BULK = True

# RQ finds a handler by the name of its module, so the worker's post has to be found there too.
_posts: list[Post] = []


def noop(text: str) -> None:
    _posts[0].started(index_of(text))


def _queue(url: str) -> Queue:
    return Queue(connection=Redis.from_url(url))


def install(place: str) -> None:
    """Redis needs no tables."""


def enqueue_bulk(place: str, calls: Calls) -> None:
    queue = _queue(place)
    for call in calls:
        queue.enqueue_many([Queue.prepare_data(noop, (payload(index),)) for index in call])


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    queue = _queue(place)
    return singly(seconds, lambda text: queue.enqueue(noop, text))


@contextmanager
def outsider(place: str, jobs: int) -> Iterator[RemainderOutsider]:
    finished = _queue(place).finished_job_registry
    yield RemainderOutsider(jobs=jobs, remaining=lambda: jobs - len(finished))


def work(place: str, post: Post) -> None:
    _posts.append(post)
    queue = _queue(place)
    worker = SimpleWorker([queue], connection=queue.connection)
    post.ready()
    worker.work(logging_level="ERROR")
