"""Outsiders for what the peers keep their jobs in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresOutsider:
    """Counts in the peer's own tables.

    `done_jobs` is the statement that lists the jobs that are durably done, one row per job, as
    `job`; a job that was recorded twice is there twice.
    """

    connection: psycopg.Connection[Any]
    done_jobs: str

    def settle(self) -> None:
        self.connection.execute("vacuum analyze")

    def done(self) -> int:
        return self._number("select count(*) from ({}) as done")

    def once(self, done: int) -> bool:
        # Jobs may be finished between the window's end and the end of the workers.
        rows = self.done()
        return rows >= done and rows == self._number("select count(distinct job) from ({}) as done")

    def _number(self, question: str) -> int:
        # The statements are constants of this package; there is nothing to quote.
        row = self.connection.execute(question.format(self.done_jobs)).fetchone()
        assert row
        return int(row[0])


@contextmanager
def postgres_outsider(url: str, done_jobs: str) -> Iterator[PostgresOutsider]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield PostgresOutsider(connection=connection, done_jobs=done_jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainderOutsider:
    """For peers that keep no record of what is done: done is what is no longer there.

    That no job ran twice is then known from the handlers alone.
    """

    jobs: int
    remaining: Callable[[], int]

    def settle(self) -> None:
        """There is nothing to bring to rest."""

    def done(self) -> int:
        return self.jobs - self.remaining()

    def once(self, done: int) -> bool:
        return self.done() >= done
