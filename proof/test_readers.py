"""A thousand readers of live events, cut off at random, while the server is killed: nobody misses or hears twice."""

import asyncio
from pathlib import Path

import psutil
import pytest

from telecine.engine import Engine
from tests.fault.many_readers import ROOMY, Crowd
from tests.fault.server_processes import outpost
from tests.fault.worker_processes import on
from tests.support.postgres import fresh_schema

READERS = 1_000
JOBS = 200
PATIENCE = 600.0
MAX_MEMORY = 400 << 20


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_a_thousand_readers_that_are_cut_off_hear_everything_once(
    dialect: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if dialect == "sqlite":
        _play(f"sqlite:///{tmp_path}/telecine.db", tmp_path)
        return
    with fresh_schema(request.getfixturevalue("postgres_url")) as url:
        _play(url, tmp_path)


def _play(url: str, folder: Path) -> None:
    with outpost(folder, url, **ROOMY) as post:
        post.serve()

        async def play(engine: Engine) -> None:
            crowd = Crowd(engine, lambda: [post.port])
            await crowd.gather(READERS, lives=(0.5, 15.0))
            used: list[int] = []

            async def happen() -> None:
                for _ in range(3):
                    await crowd.happen(JOBS // 4, pause=0.2)
                    assert post.server is not None
                    used.append(psutil.Process(post.server.pid).memory_info().rss)
                    post.server.kill()
                    post.server.wait()
                    await asyncio.to_thread(post.serve)
                await crowd.happen(JOBS // 4, pause=0.2)

            expected = await crowd.follow(happen, PATIENCE)

            assert crowd.faults(expected) == {}
            assert len(expected[None]) >= 4 * JOBS
            assert max(used) < MAX_MEMORY, f"{max(used) >> 20} MiB"

        on(url, play)
