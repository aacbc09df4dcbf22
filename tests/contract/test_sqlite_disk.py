"""SQLite on a disk that is full, or on a file that is damaged: said so, with what to do; nothing is lost."""

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from telecine.engine import Engine, Submission
from telecine.errors import Rejected, StoreError, Unreachable
from telecine.settings import Settings
from telecine.store.open import bring_up_to_date, open_store
from telecine.triage import Verdict, triage
from telecine.wiring import open_engine
from tests.support.builders import a_flow

FLOW = a_flow("cut")


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file of this process grows beyond `size`: to whoever writes it is a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_is_an_outage_that_says_what_to_do(sqlite_url: str) -> None:
    store = open_store(sqlite_url, dice=random.Random(1))
    await bring_up_to_date(store, sqlite_url)
    engine = Engine(store)
    await engine.jobs.register(FLOW)
    kept = [(await engine.jobs.submit("film")).job_id]

    async def submit_many() -> None:
        for _ in range(100):
            many = [Submission(flow="film", spec={"words": "x" * 1_000})] * 200
            kept.extend(one.job_id for one in await engine.jobs.submit_many(many))

    with full_at(6 << 20), pytest.raises(Unreachable) as caught:
        await submit_many()
    kept.append((await engine.jobs.submit("film")).job_id)

    assert "free some space" in str(caught.value)
    assert triage(caught.value) is Verdict.OUTAGE
    rows = await engine.queries.jobs(limit=1)
    assert rows.items[0].id == kept[-1]
    await store.close()


async def test_a_damaged_file_is_not_the_fault_of_the_request(tmp_path: Path) -> None:
    path = tmp_path / "telecine.db"
    url = f"sqlite:///{path}"
    store = open_store(url, dice=random.Random(1))
    await bring_up_to_date(store, url)
    await Engine(store).jobs.register(FLOW)
    await store.close()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))

    async def submit() -> None:
        async with open_engine(settings) as parts:
            await parts.engine.jobs.submit("film")

    settings = Settings(database_url=url, artifacts_url=str(tmp_path / "a"), scratch=tmp_path / "s")
    with pytest.raises(StoreError) as caught:
        await submit()

    assert not isinstance(caught.value, Rejected)
    assert triage(caught.value) is Verdict.OUTAGE
    assert "restore a backup" in str(caught.value)
