"""The processes of a run: PostgreSQL, our server, and the hand-written one beside it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.postgres import fresh_schema, shared_postgres

PROGRAM = Path(sys.executable).parent / "telecine"
FLOWS = Path(__file__).with_name("flow.py")
START_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Street:
    ours: int
    theirs: int
    pid: int  # of our server
    url: str
    admin: str
    owner: str
    environ: dict[str, str]

    def cpu(self) -> float:
        """CPU seconds that our server has used."""
        used = psutil.Process(self.pid).cpu_times()
        return float(used.user + used.system)

    @contextmanager
    def worker(self) -> Iterator[None]:
        """A real worker on the same database."""
        with _ended([PROGRAM, "worker", "--flows", FLOWS], self.environ, subprocess.DEVNULL):
            yield


@contextmanager
def street(folder: Path) -> Iterator[Street]:
    with shared_postgres() as server, fresh_schema(server) as url:
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("TELECINE_")},
            "TELECINE_DATABASE_URL": url,
            "TELECINE_ARTIFACTS_URL": str(folder / "artifacts"),
            "TELECINE_SCRATCH": str(folder / "scratch"),
            "TELECINE_UPLOADS": str(folder / "uploads"),
            "TELECINE_RATE_LIMIT": "1000000000",
            "TELECINE_MAX_STREAMS_PER_KEY": "10000",
            "TELECINE_LOG_LEVEL": "warning",
        }
        _told(environ, "migrate")
        admin = _told(environ, "keys", "create", "--scope", "admin")
        owner = _told(environ, "keys", "create", "--owner", "ada")
        port, other = _free(), _free()
        with (
            _running([PROGRAM, "serve", "--port", port, "--flows", FLOWS], environ, folder, port) as ours,
            _running([sys.executable, "-m", "benchmarks.server.handwritten", url, other], environ, folder, other),
        ):
            yield Street(port, other, ours.pid, url, admin, owner, environ)


def _told(environ: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [PROGRAM, *words], env=environ, capture_output=True, text=True, timeout=START_SECONDS, check=False
    )
    if done.returncode:
        raise SystemExit(f"telecine {' '.join(words)}: {done.stderr}")
    return done.stdout.strip()


def _free() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def _running(
    command: list[object], environ: dict[str, str], folder: Path, port: int
) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{port}.log").open("wb") as log, _ended(command, environ, log.fileno()) as process:
        _wait_for(port, process, folder / f"{port}.log")
        yield process


@contextmanager
def _ended(command: list[object], environ: dict[str, str], log: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([str(word) for word in command], env=environ, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    late = time.monotonic() + START_SECONDS
    while time.monotonic() < late and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"no server came up: {log.read_text()[-2000:]}")
