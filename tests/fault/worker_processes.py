"""Workers as real processes, and how a test looks at what they do."""

import asyncio
import json
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from telecine.engine import Engine
from telecine.errors import StoreError
from tests.fault.program import open_engine
from tests.support.process_pool import Actor, enter

PATIENCE = 30.0
# Everything happens sooner than in production, so that no test has to wait for it; leases last as long as there.
BRISK = {"beat": 0.5, "sweep": 0.2, "poll": 0.2, "news": 0.2, "term": 0.5}
# A lease that a test can outlive.
SHORT: Any = {"lease": 3_000}


def on(url: str, play: Callable[[Engine], Awaitable[None]]) -> None:
    """Play a scene with an engine of the test's own on the workers' database."""

    async def scene() -> None:
        async with open_engine(url) as engine:
            await play(engine)

    asyncio.run(scene())


class Crew:
    """Worker processes on one database; all are gone when the test ends, and so is whatever they started."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.workers: dict[str, Actor] = {}

    def start(self, name: str = "ann", **options: Any) -> Actor:
        given = json.dumps({**BRISK, "name": name, **options})
        log = self.folder / f"{name}.log"
        worker = enter("tests.fault.program:main", [self.url, str(self.folder), given], out=log, log=log)
        self.workers[name] = worker
        return worker

    def log(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-3000:]}" for path in sorted(self.folder.glob("*.log")))

    def files(self, word: str) -> list[Path]:
        return sorted(self.folder.glob(f"{word}.*"))

    async def started(self, count: int = 1, *, word: str = "started") -> list[int]:
        """Wait until so many handlers have begun; their processes."""
        return await started_in(self.folder, count, word=word)

    def go(self) -> None:
        (self.folder / "go").touch()

    def end(self) -> None:
        for worker in self.workers.values():
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
                worker.kill()
            worker.wait()


@contextmanager
def crew(url: str, folder: Path) -> Iterator[Crew]:
    own = Crew(url, folder)
    try:
        yield own
    finally:
        own.end()


async def until(check: Callable[[], Any] | Callable[[], Awaitable[Any]], *, within: float = PATIENCE) -> Any:
    """Wait until the check answers something; what it answered."""
    deadline, pause = time.monotonic() + within, 0.01
    while True:
        found = check()
        if asyncio.iscoroutine(found):
            found = await found
        if found:
            return found
        assert time.monotonic() < deadline, f"waited {within} s in vain for {getattr(check, '__name__', check)}"
        await asyncio.sleep(pause)
        pause = min(0.1, pause * 1.2)  # what takes long is looked at less often: looking keeps others from working


async def started_in(folder: Path, count: int = 1, *, word: str = "started") -> list[int]:
    """Wait until so many handlers have begun; their processes."""
    files = await until(lambda: len(found := sorted(folder.glob(f"{word}.*"))) >= count and found)
    return [pid_in(path) for path in files]


async def rows(engine: Engine, sql: str) -> list[dict[str, Any]]:
    """Ask the database itself."""
    store: Any = engine._store
    if not hasattr(store, "connections"):
        with sqlite3.connect(f"file:{store.path}?mode=ro", uri=True) as connection:
            connection.row_factory = sqlite3.Row
            found = [dict(row) for row in connection.execute(sql)]
        connection.close()
        return found
    for _ in range(10):
        # A connection from before the server was killed is found out by its first use.
        with suppress(StoreError):
            async with store.connections.borrow() as postgres:
                return [dict(row) for row in await postgres.fetch(sql)]
    raise AssertionError("every connection to the database breaks")


async def stop(engine: Engine, worker: Actor) -> None:
    """Stop a worker when it is not just writing: on SQLite nobody else could write until it goes on."""

    def is_stopped() -> bool:
        return bool(psutil.Process(worker.pid).status() == psutil.STATUS_STOPPED)

    async def harms_nobody() -> bool:
        worker.send_signal(signal.SIGSTOP)
        await until(is_stopped)
        if _can_write(engine):
            return True
        worker.send_signal(signal.SIGCONT)
        return False

    await until(harms_nobody)


def _can_write(engine: Engine) -> bool:
    store: Any = engine._store
    if hasattr(store, "connections"):
        return True  # whoever keeps others waiting there is thrown out
    connection = sqlite3.connect(store.path, timeout=1.0)
    try:
        connection.execute("begin immediate")
        connection.rollback()
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


async def status(engine: Engine, job_id: int) -> str:
    [row] = await rows(engine, f"select status from job where id = {job_id}")
    return str(row["status"])


async def ended(engine: Engine, *job_ids: int, within: float = PATIENCE) -> list[str]:
    """Wait until these jobs have ended; how each did."""
    listed = ", ".join(str(job_id) for job_id in job_ids)

    async def all_ended() -> list[str]:
        found = await rows(engine, f"select outcome from job where id in ({listed}) order by id")
        outcomes = [row["outcome"] for row in found]
        return outcomes if all(outcomes) else []

    found: list[str] = await until(all_ended, within=within)
    return found


async def enlisted(engine: Engine, *names: str) -> None:
    """Wait until workers of these names are there."""

    async def all_there() -> bool:
        found = {row["name"] for row in await rows(engine, "select name from worker where gone_at is null")}
        return found.issuperset(names)

    await until(all_there)


async def outcomes(engine: Engine, job_id: int) -> list[str]:
    """How the attempts of a job ended, in the order of their tokens."""
    found = await rows(engine, f"select outcome from attempt where job_id = {job_id} order by task_id, token")
    return [row["outcome"] for row in found]


async def result(engine: Engine, job_id: int) -> Any:
    """What the last task of a job returned."""
    found = await rows(
        engine, f"select result from task where job_id = {job_id} and state = 'done' order by stage desc"
    )
    return json.loads(found[0]["result"])


def lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def pid_in(path: Path) -> int:
    """The process that left this file."""
    return int(path.name.rpartition(".")[2])


def children_of(pid: int) -> list[int]:
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
