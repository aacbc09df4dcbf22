"""The servers of one run: PostgreSQL 18 with its own defaults, and Redis for the full run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.engine.desk import Desk

START_S = 60.0
ANSWER_S = 60.0


class Server:
    """A held server that hands out empty databases."""

    def __init__(self, desk: Desk) -> None:
        greeting = desk.hear(within=START_S)
        self.pid: int = greeting["pid"]
        self.version: str = greeting.get("version", "")
        self._desk = desk

    def fresh(self, name: str) -> str:
        """Return the address of a database with nothing in it; the one before it is gone."""
        answer = self._desk.ask(database=name, within=ANSWER_S)
        for setting in ("fsync", "synchronous_commit"):
            if answer.get(setting, "on") != "on":
                raise RuntimeError(f"{setting} is {answer[setting]}: that is not a durable server")
        return str(answer["url"])


@contextmanager
def postgres(python: Path, directory: Path) -> Iterator[Server]:
    with Desk(python, "benchmarks.engine.hold", "postgres", str(directory)) as desk:
        yield Server(desk)


class RedisServer(Server):
    """Redis has numbers for names, and one is enough: each measurement begins with a flush."""

    def fresh(self, name: str) -> str:
        return super().fresh("0")


@contextmanager
def redis(python: Path, directory: Path) -> Iterator[RedisServer]:
    with Desk(python, "benchmarks.engine.hold", "redis", str(directory)) as desk:
        yield RedisServer(desk)
