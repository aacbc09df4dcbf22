"""The peers, one module each, in the configuration that was fastest on two cores.

A module is a `Peer`: it is measured only through what is written here.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from benchmarks.engine.crew import Post
from benchmarks.engine.measures import Calls


class Outsider(Protocol):
    """Somebody who looks at a peer's jobs from outside of its workers."""

    def settle(self) -> None:
        """Bring the database to rest between filling and draining."""

    def done(self) -> int:
        """Return how many jobs are durably done."""

    def once(self, done: int) -> bool:
        """Tell whether the records show `done` different jobs and no job twice."""


class Peer(Protocol):
    """What the runner needs of a peer; the modules beside this file are the implementations."""

    HAS_BULK: bool
    """Whether one call takes many jobs; otherwise filling the queue measures nothing."""

    def install(self, place: str) -> None:
        """Create the peer's tables in an empty database."""

    def enqueue_bulk(self, place: str, calls: Calls) -> None:
        """Connect, then enqueue the jobs of each of these calls: in one call where the peer has such a call."""

    def enqueue_singly(self, place: str, seconds: float) -> tuple[int, float]:
        """Enqueue one job per call for about `seconds`; return how many, and how long it took."""

    def outsider(self, place: str, jobs: int) -> AbstractContextManager[Outsider]:
        """Look at the jobs over a connection of its own."""

    def work(self, place: str, post: Post) -> None:
        """Be one worker process: connect, `post.ready()`, work until killed."""
