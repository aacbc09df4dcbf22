"""Redis in health and in metrics, by a real one that dies."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.observe import health
from telecine.settings import Settings
from tests.api.in_process_server import Front
from tests.contract.conftest import runner
from tests.support.redis import PrivateRedis

__all__ = ["runner"]


@pytest.fixture
def own_redis() -> Iterator[PrivateRedis]:
    with PrivateRedis() as server:
        yield server


@pytest.fixture(params=["redis", "hybrid"])
def front(
    request: pytest.FixtureRequest,
    runner: asyncio.Runner,
    own_redis: PrivateRedis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Front]:
    monkeypatch.setattr(health, "KEPT_SECONDS", 0.0)
    made = Front(
        Settings(
            database_url=f"sqlite:///{tmp_path}/telecine.db",
            artifacts_url=str(tmp_path / "artifacts"),
            scratch=tmp_path / "scratch",
            uploads=tmp_path / "uploads",
            upload_reserve_bytes=0,
            queue_mode=request.param,
            redis_url=own_redis.url,
        )
    )
    runner.run(made.open())
    yield made
    runner.run(made.close())


async def test_a_dead_redis_is_seen_and_counts_only_where_it_is_required(front: Front, own_redis: PrivateRedis) -> None:
    before = await front.nobody.get("/health")
    lively = (await front.admin.get("/metrics")).text

    own_redis.kill()
    after = await front.nobody.get("/health")
    for _ in range(5):
        await front.nobody.get("/health")
    dead = (await front.admin.get("/metrics")).text

    assert (before.status_code, before.json()["redis"]) == (200, "ok")
    assert after.json()["redis"] == "unable"
    assert after.status_code == (503 if front.settings.queue_mode == "redis" else 200)
    assert "telecine_redis_circuit_open 0.0" in lively
    assert "telecine_redis_circuit_open 1.0" in dead
    assert "127.0.0.1" not in after.text
