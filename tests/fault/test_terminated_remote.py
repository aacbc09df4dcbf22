"""PostgreSQL ends connections of a server all the time: workers over HTTP lose nothing, clients get 503 at worst."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import asyncpg
import httpx
import pytest

from telecine.engine.accounts.keys import Keys, Scope
from telecine.wiring import open_engine
from tests.fault.server_processes import Outpost, outpost, wait_for
from tests.fault.terminations import Terminator, observing
from tests.support.delayed_close import delayed_close
from tests.support.postgres import PrivatePostgres, fresh_schema

JOBS = 30


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PrivatePostgres]:
    with PrivatePostgres(tmp_path / "server-data") as server:
        yield server


async def admin_key(post: Outpost) -> str:
    async with open_engine(post.settings) as parts:
        return (await Keys(parts.store, parts.world).issue(Scope.ADMIN, name="ada")).text


async def submit_all(client: httpx.AsyncClient, statuses: Counter[int]) -> None:
    """One job each, repeated with its key until it is taken."""
    for number in range(JOBS):
        body = {"flow": "drip", "spec": {"number": number}}
        while True:
            answer = await client.post("/api/v1/jobs", json=body, headers={"Idempotency-Key": f"job-{number}"})
            statuses[answer.status_code] += 1
            if answer.is_success:
                break
            assert answer.headers.get("retry-after"), (answer.status_code, answer.text)


def test_workers_over_http_lose_nothing_while_postgresql_ends_the_servers_connections(
    server: PrivatePostgres, tmp_path: Path
) -> None:
    async def play(url: str) -> None:
        async with delayed_close(url, 0.05) as proxy:
            await asyncio.to_thread(outside, url, proxy.url)

    def outside(url: str, proxied: str) -> None:
        with outpost(tmp_path, url, flows="tests.fault.drip", lease_seconds=20) as post:
            key = asyncio.run(admin_key(post))
            post.serve(database_url=proxied)
            for name in ("ann", "bob"):
                post.work(name, flows="tests.fault.drip", slots=4)
            wait_for(lambda: asyncio.run(count(url, "worker where gone_at is null")) == 2, "workers are there")
            statuses: Counter[int] = Counter()
            asyncio.run(disturbed(post, key, url, statuses))
            assert set(statuses) <= {200, 201, 503}, statuses
            log = (tmp_path / "server.log").read_text()
            assert "Traceback" not in log + "".join((tmp_path / f"{name}.log").read_text() for name in ("ann", "bob"))

    async def disturbed(post: Outpost, key: str, url: str, statuses: Counter[int]) -> None:
        disturbing = asyncio.create_task(Terminator(0.03).run(server))
        try:
            headers = {"Authorization": f"Bearer {key}"}
            async with (
                httpx.AsyncClient(base_url=post.url, headers=headers, timeout=60) as client,
                asyncio.timeout(120),
            ):
                await submit_all(client, statuses)
                while await count(url, "job where outcome is null"):
                    await asyncio.sleep(0.1)
        finally:
            disturbing.cancel()
            with suppress(asyncio.CancelledError):
                await disturbing
        assert await count(url, "job where outcome = 'completed'") == JOBS
        assert await count(url, "job") == JOBS

    with fresh_schema(server.url) as url:
        asyncio.run(play(url))


async def count(url: str, what: str) -> int:
    while True:
        with suppress(OSError, asyncpg.PostgresError):
            async with observing(url) as connection:
                return int(await connection.fetchval(f"select count(*) from {what}"))
