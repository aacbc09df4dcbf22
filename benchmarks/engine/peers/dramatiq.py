"""Dramatiq on Redis: two processes with four threads each."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import redis
from dramatiq import Worker, actor
from dramatiq.brokers.redis import RedisBroker

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls, index_of, payload
from benchmarks.engine.peers.outsiders import RemainderOutsider
from benchmarks.engine.peers.pacing import singly

HAS_BULK = False
THREADS = 4


def _actor(url: str, post: Post | None = None) -> Any:
    @actor(actor_name="noop", broker=RedisBroker(url=url))
    def noop(text: str) -> None:
        if post:
            post.started(index_of(text))

    return noop


def install(place: str) -> None:
    """Redis needs no tables."""


def enqueue_bulk(place: str, calls: Calls) -> None:
    noop = _actor(place)
    for index in chain.from_iterable(calls):
        noop.send(payload(index))


def enqueue_singly(place: str, seconds: float) -> tuple[int, float]:
    return singly(seconds, _actor(place).send)


@contextmanager
def outsider(place: str, jobs: int) -> Iterator[RemainderOutsider]:
    with redis.Redis.from_url(place) as server:
        # A message leaves this hash when it is acknowledged, after its handler.
        yield RemainderOutsider(jobs=jobs, remaining=lambda: int(server.hlen("dramatiq:default.msgs")))


def work(place: str, post: Post) -> None:
    worker = Worker(_actor(place, post).broker, worker_threads=THREADS)
    post.ready()
    worker.start()
    threading.Event().wait()
