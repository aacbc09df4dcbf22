"""A server and remote workers as real processes: no database and no disk between them but the network.

    with outpost(tmp_path, url) as post:
        post.serve()
        post.work("ann")

Workers run in folders of their own, which nobody else reads. Whatever was started is gone when the block ends.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from telecine.engine.accounts.keys import Keys, Scope
from telecine.settings import Settings
from telecine.wiring import migrate_database, open_engine
from tests.support.process_pool import TELECINE, Actor, enter

PROGRAM = str(Path(sys.executable).parent / "telecine")
PATIENCE = 60.0
ROOT = Path(__file__).parents[2]
FLOWS = "tests.support.flows"
# A lease that a test can outlive, and everything else sooner than in production.
BRISK: dict[str, Any] = {"lease_seconds": 4, "beat_seconds": 0.5, "sweep_seconds": 0.3, "poll_seconds": 0.2}


class Outpost:
    def __init__(self, folder: Path, database_url: str, **given: Any) -> None:
        self.folder = folder
        self.given = {"database_url": database_url, "artifacts_url": str(folder / "artifacts"), **BRISK, **given}
        self.server: Actor | None = None
        self.workers: dict[str, Actor] = {}
        self.port = 0
        self.starts = 0
        self.signs = folder  # where handlers of tests tell how far they are

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> Settings:
        return Settings(**{"scratch": self.folder / "server" / "scratch", **self.given})

    def serve(self, **given: Any) -> str:
        """Start the server, at the same port as before if it ran before; its address."""
        self.starts += 1
        home = self.folder / "server"
        home.mkdir(exist_ok=True)
        said = home / f"said-{self.starts}"
        own = {**self.given, "scratch": home / "scratch", "uploads": home / "uploads", "port": self.port, **given}
        log = self.folder / "server.log"
        self.server = enter(TELECINE, ["serve", "--json"], folder=home, environ=_environ(own), out=said, log=log)
        serving = wait_for(lambda: told(said) or self._died(), "the server listens")
        self.port = int(serving["address"].rpartition(":")[2])
        return self.url

    def _died(self) -> bool:
        assert self.server is not None
        assert self.server.poll() is None, self.logs()
        return False

    def register(self, name: str, **how: Any) -> Path:
        """Make a worker's key; the file that it is in."""
        path = self.folder / f"{name}.key"
        with ThreadPoolExecutor(1) as aside:  # whoever asks may have a loop of his own running
            text = aside.submit(asyncio.run, self._issue(name, **how)).result()
        path.touch(mode=0o600)
        path.write_text(text)
        return path

    async def _issue(self, name: str, **how: Any) -> str:
        async with open_engine(self.settings) as parts:
            return (await Keys(parts.store, parts.world).issue(Scope.WORKER, name=name, **how)).text

    def register_by_command(self, name: str) -> Path:
        path = self.folder / f"{name}.key"
        command = [PROGRAM, "workers", "register", name, "--out", str(path)]
        subprocess.run(command, env=_environ(self.given), cwd=self.folder, check=True, timeout=PATIENCE)
        return path

    def work(self, name: str = "ann", *, server: str | None = None, key: Path | None = None, **given: Any) -> Actor:
        """Start a remote worker, by a key of its own unless told otherwise."""
        path = key or self.folder / f"{name}.key"
        if not path.exists():
            self.register(name)
        home = self.folder / f"home-{name}"
        home.mkdir(exist_ok=True)
        own = {
            "slots": 1,
            "beat_seconds": 0.5,
            "poll_seconds": 0.2,
            "worker_name": name,
            "scratch": home / "scratch",
            **given,
        }
        log = self.folder / f"{name}.log"
        arguments = ["worker", "--server", server or self.url, "--key-file", str(path)]
        worker = enter(TELECINE, arguments, folder=home, environ=_environ(own), out=log, log=log)
        self.workers[name] = worker
        return worker

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-4000:]}" for path in sorted(self.folder.glob("*.log")))

    def dismiss(self) -> None:
        """End the workers; the server stays."""
        for worker in self.workers.values():
            _end(worker)
        self.workers.clear()

    def end(self) -> None:
        self.dismiss()
        if self.server is not None:
            _end(self.server)


def _end(process: Actor) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGCONT)
        process.kill()
    process.wait()


@contextmanager
def outpost(folder: Path, database_url: str, **given: Any) -> Iterator[Outpost]:
    post = Outpost(folder, database_url, **given)
    asyncio.run(migrate_database(post.settings))
    try:
        yield post
    except BaseException:
        print(post.logs())
        raise
    finally:
        post.end()


def wait_for(check: Any, what: str, *, within: float = PATIENCE) -> Any:
    """For what happens outside of any loop."""
    deadline, pause = time.monotonic() + within, 0.01
    while not (found := check()):
        assert time.monotonic() < deadline, f"waited {within} s in vain until {what}"
        time.sleep(pause)
        pause = min(0.1, pause * 1.2)  # whoever is asked all the time has none left for his work
    return found


def told(path: Path) -> Any:
    """The object that a program has printed, once it is whole."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, ValueError):
        return None


def _environ(given: dict[str, Any]) -> dict[str, str]:
    others = {name: value for name, value in os.environ.items() if not name.startswith("TELECINE_")}
    others["PYTHONPATH"] = str(ROOT)  # where the flows of tests are
    return {**others, **{f"TELECINE_{name.upper()}": str(value) for name, value in given.items()}}
