"""Celery on Redis: two solo processes, prefetching 128, acknowledging early, ignoring results.

A job is acknowledged before it runs, so one that its worker dies with is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain

import redis
from celery import Celery
from celery.signals import worker_ready

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import RemainderOutsider
from benchmarks.engine.peers.pacing import singly

HAS_BULK = False
PREFETCH = 128
QUIETLY = ("--without-gossip", "--without-mingle", "--without-heartbeat", "--loglevel=ERROR")


def _app(url: str) -> Celery:
    app = Celery("bench", broker=url)
    app.conf.update(
        task_ignore_result=True,
        task_acks_late=False,
        worker_prefetch_multiplier=PREFETCH,
        broker_connection_retry_on_startup=True,
    )
    return app


def install(place: str) -> None:
    """Redis needs no tables."""


def enqueue_bulk(place: str, calls: Calls) -> None:
    noop = _app(place).signature("noop")
    for index in chain.from_iterable(calls):
        noop.apply_async((payload(index),))


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    noop = _app(place).signature("noop")
    return singly(seconds, lambda text: noop.apply_async((text,)))


@contextmanager
def outsider(place: str, jobs: int) -> Iterator[RemainderOutsider]:
    with redis.Redis.from_url(place) as server:
        yield RemainderOutsider(jobs=jobs, remaining=lambda: int(server.llen("celery")) + int(server.hlen("unacked")))


def work(place: str, post: Post) -> None:
    app = _app(place)

    @app.task(name="noop")
    def noop(text: str) -> None:
        post.started(index_of(text))

    worker_ready.connect(lambda **_: post.ready(), weak=False)
    app.worker_main(["worker", "--pool=solo", *QUIETLY])
