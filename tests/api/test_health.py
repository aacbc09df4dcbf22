"""Health without a key: cheap, true, and silent about what is nobody's business."""

import asyncio
import random
import socket
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from telecine.engine.queries.gauges import ping
from telecine.errors import SchemaTooNew, Unreachable
from telecine.observe import health
from telecine.store.open import open_store
from tests.api.in_process_server import Front
from tests.fault.server_processes import outpost


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", 0.0)


async def test_health_says_how_many_workers_and_jobs_there_are(front: Front) -> None:
    await front.flow()
    await front.parts.engine.jobs.submit("film")
    await front.bed.enlist("w")

    answer = await front.nobody.get("/health")

    told = {"status": "ok", "reasons": [], "database": "ok", "redis": "off", "active_workers": 1, "pending_jobs": 1}
    assert (answer.status_code, answer.json()) == (200, told)


async def test_full_health_has_storage_database_and_processing(front: Front) -> None:
    told = (await front.nobody.get("/api/health")).json()

    assert set(told["storage"]) == {"artifacts", "uploads", "scratch"}
    assert all(room["free_bytes"] > 0 for room in told["storage"].values())
    assert told["database"]["schema_version"] == 7
    assert told["database"]["latency_ms"] >= 0
    assert told["processing"]["jobs_pending"] == 0


async def test_health_names_no_place_and_no_secret(front: Front) -> None:
    texts = [(await front.nobody.get(path)).text for path in ("/health", "/api/health", "/health/live")]

    hidden = [front.settings.database_url, str(front.settings.uploads), str(front.settings.scratch), "postgresql"]
    assert [word for word in hidden for text in texts if word in text] == []


async def test_a_full_disk_makes_the_server_unable(front: Front) -> None:
    front.house.vitals._probes = _with(front, reserve=1 << 62)  # type: ignore[attr-defined]

    answer = await front.nobody.get("/api/health")

    assert answer.status_code == 503
    assert "the disk of the uploads is full" in answer.json()["reasons"]


async def test_a_lost_database_makes_the_server_unable_and_leaves_it_alive(front: Front) -> None:
    async def gone() -> None:
        raise Unreachable("connect to db.internal failed for user telecine")

    front.house.vitals._probes = _with(front, ping=gone)  # type: ignore[attr-defined]

    answer = await front.nobody.get("/health")

    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the database does not answer"])
    assert "db.internal" not in answer.text
    assert (await front.nobody.get("/health/live")).status_code == 200


async def test_a_schema_of_another_release_makes_the_server_unable(front: Front) -> None:
    async def newer() -> int:
        raise SchemaTooNew("9 is newer than 2")

    front.house.vitals._probes = _with(front, schema=newer)  # type: ignore[attr-defined]

    answer = await front.nobody.get("/health")

    assert answer.status_code == 503
    assert "schema" in answer.json()["reasons"][0]


@pytest.mark.parametrize(("needed", "status"), [(True, 503), (False, 200)])
async def test_redis_is_missed_only_where_it_is_required(front: Front, needed: bool, status: int) -> None:
    async def silent() -> bool:
        raise ConnectionError("no route to redis")

    front.house.vitals._probes = _with(front, redis=silent, needs_redis=needed)  # type: ignore[attr-defined]

    answer = await front.nobody.get("/health")

    assert (answer.status_code, answer.json()["redis"]) == (status, "unable")


async def test_many_probes_are_one_look(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "KEPT_SECONDS", 60.0)
    looks = 0
    ping = front.house.vitals._probes.ping  # type: ignore[attr-defined]

    async def counted() -> None:
        nonlocal looks
        looks += 1
        await ping()

    front.house.vitals = health.ServerHealth(_with(front, ping=counted))

    answers = [await front.nobody.get("/health") for _ in range(20)]

    assert {answer.status_code for answer in answers} == {200}
    assert looks == 1


async def test_a_database_that_never_answers_costs_a_bounded_time(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "PATIENCE", 0.5)
    silent = socket.create_server(("127.0.0.1", 0))  # whoever connects is never answered
    port = silent.getsockname()[1]
    lost = open_store(f"postgresql://telecine@127.0.0.1:{port}/telecine", dice=random.Random(1))
    front.house.vitals = health.ServerHealth(_with(front, ping=lambda: ping(lost)))

    async with asyncio.timeout(30):
        answer = await front.nobody.get("/health")

    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the database does not answer"])
    silent.close()
    await lost.close()


def _with(front: Front, **how: object) -> health.HealthProbes:
    probes: health.HealthProbes = front.house.vitals._probes  # type: ignore[attr-defined]
    return replace(probes, **how)  # type: ignore[arg-type]


PROBES = ("/health", "/api/health", "/health/live", "/metrics")


@pytest.mark.parametrize("path", PROBES)
async def test_a_probe_by_head_gets_the_answer_of_get(front: Front, path: str) -> None:
    plain, head = await front.admin.get(path), await front.admin.head(path)

    assert (head.status_code, head.headers["content-type"]) == (plain.status_code, plain.headers["content-type"])
    assert head.headers["cache-control"] == "no-store"
    assert (await front.nobody.post(path)).headers["allow"] == "GET, HEAD"


async def test_a_probe_by_head_of_a_server_that_is_unable_says_503(front: Front) -> None:
    async def newer() -> int:
        raise SchemaTooNew("9 is newer than 2")

    front.house.vitals._probes = _with(front, schema=newer)  # type: ignore[attr-defined]

    answers = [await front.nobody.head(path) for path in ("/health", "/api/health", "/health/live")]

    assert [one.status_code for one in answers] == [503, 503, 200]


def test_a_probe_by_head_has_no_body(tmp_path: Path) -> None:
    with outpost(tmp_path, f"sqlite:///{tmp_path}/telecine.db") as post:
        post.serve()
        answers = [httpx.head(f"{post.url}{path}") for path in PROBES]

    assert [(one.status_code, one.content) for one in answers] == [(200, b"")] * 4
    assert all(int(one.headers["content-length"]) > 0 for one in answers)
