"""The hot statements of `make test`, with 1,000,000 queued and 5,000,000 finished tasks around them."""

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from telecine.store.open import bring_up_to_date, open_store
from tests.contract.test_plans import INDEXES, MAX_STEPS, WHOLE
from tests.support.engine_fixture import Bed
from tests.support.large_dataset import Sizes, fill, plan_on_sqlite, statements, work_on_postgres

SIZES = Sizes(served=1_000, foreign=798_000, parked=100_000, paused=100_000, finished=5_000_000, running=1_000)
# The sweep looks at every running task; all others at what they want.
MAX_ROWS = 2_500


async def opened(url: str) -> Bed:
    store = open_store(url, dice=random.Random(1))
    await bring_up_to_date(store, url)
    bed = Bed(url, store)
    await fill(bed, SIZES)
    return bed


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_on_postgres_no_hot_statement_reads_more_than_it_wants(
    runner: asyncio.Runner, postgres_schema_url: str
) -> None:
    bed = runner.run(opened(postgres_schema_url))
    wrong: list[str] = []

    for name, params in statements(bed, SIZES).items():
        for mode in ("force_custom_plan", "force_generic_plan"):
            work = runner.run(work_on_postgres(bed, name, params, mode))
            if work.scanned or work.rows > MAX_ROWS or not INDEXES.get(name, set()) <= work.indexes:
                wrong.append(f"{name}, {mode}: {work}")

    runner.run(bed.store.close())
    assert wrong == []


def test_on_sqlite_no_hot_statement_reads_more_than_it_wants(runner: asyncio.Runner, tmp_path: Path) -> None:
    bed = runner.run(opened(f"sqlite:///{tmp_path}/telecine.db"))
    wrong: list[str] = []

    for name, params in statements(bed, SIZES).items():
        said, steps = plan_on_sqlite(bed, name, params)
        if any(WHOLE.match(line) for line in said) or steps > MAX_STEPS * 3:
            wrong.append(f"{name}: {steps} instructions: {said}")

    runner.run(bed.store.close())
    assert wrong == []
