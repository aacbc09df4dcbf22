"""PostgreSQL ends connections all the time, in each of the ways that it has: every job is done, once, and none fails.

`proof/test_terminated.py` does the same with thousands of jobs.
"""

import asyncio
import gc
import socket
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fault.terminations import Disturbance, IdleTimeout, Restarter, Terminator, disturbed
from tests.support.delayed_close import delayed_close
from tests.support.postgres import PrivatePostgres

JOBS = 120


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrivatePostgres]:
    with PrivatePostgres(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.mark.parametrize(
    ("disturbance", "delay"),
    [(Terminator(0.03), None), (Terminator(0.03), 0.05), (Restarter(0.2), 0.05), (IdleTimeout(15), 0.05)],
    ids=["ended", "ended, and the FIN comes late", "the server is restarted", "idle sessions are ended"],
)
def test_no_job_fails_while_postgresql_ends_connections(
    server: PrivatePostgres, tmp_path: Path, disturbance: Disturbance, delay: float | None
) -> None:
    report = disturbed(server, tmp_path, disturbance, jobs=JOBS, delay=delay, swift=True)

    assert report.outcomes == {"completed": JOBS}, report
    assert report.dead_workers == [], report
    assert (report.done_twice, report.findings) == (0, []), report
    assert report.tracebacks == 0, report


def test_the_proxy_leaves_no_connection_open(server: PrivatePostgres) -> None:
    """Also of clients that came so late that nobody has spoken to them: they would fail whatever test comes next."""

    async def hurried(turns: int) -> None:
        async with delayed_close(server.url) as proxy:
            clients = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(10)]
            for _ in range(turns):
                await asyncio.sleep(0)
        for client in clients:
            client.close()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for turns in range(6):
            asyncio.run(hurried(turns))
        gc.collect()

    assert [str(one.message) for one in told] == []
