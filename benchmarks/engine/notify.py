"""The limit of a pick-up: INSERT and NOTIFY here, the row claimed and committed over there.

        this process                     the other process
        clock ── insert + notify ──▶ PostgreSQL ──▶ listener
                                         ▲             │ claim one row, commit
                                         └─────────────┘ clock

Both read CLOCK_MONOTONIC, which is one clock for all processes of a machine.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from ctypes import c_int64
from multiprocessing.sharedctypes import RawArray
from typing import Any

import uvloop

from benchmarks.engine import raw

CHANNEL = "job_ready"
PAUSE_S = 0.01
WARM_UP = 20
SAMPLE_S = 5.0
START_UP_S = 60.0

# One statement is one transaction and one round trip: it cannot be done with less.
INSERT_AND_NOTIFY = f"""
with fresh as (insert into job (payload) select * from unnest($1::jsonb[]) returning id)
select pg_notify('{CHANNEL}', id::text) from fresh
"""

_spawn = multiprocessing.get_context("spawn")


def round_trips(place: str, samples: int) -> list[float]:
    """Return the milliseconds from before each insert to after its claim's commit."""
    raw.install(place)
    total = samples + WARM_UP
    claimed_ns = RawArray(c_int64, total)
    gate = _spawn.Barrier(2)
    listener = _spawn.Process(target=_listen, args=(place, claimed_ns, gate), daemon=True)
    listener.start()
    try:
        gate.wait(START_UP_S)
        return uvloop.run(_send(place, claimed_ns, total))[WARM_UP:]
    finally:
        listener.kill()
        listener.join()


async def _send(url: str, claimed_ns: Any, total: int) -> list[float]:
    trips = []
    async with raw.connected(url) as connection:
        for index in range(total):
            document = f'{{"text": "{index:08d}"}}'
            sent_ns = time.monotonic_ns()
            await connection.execute(INSERT_AND_NOTIFY, [document])
            await _until_set(claimed_ns, index)
            trips.append((claimed_ns[index] - sent_ns) / 1e6)
    return trips


async def _until_set(claimed_ns: Any, index: int) -> None:
    give_up = time.monotonic() + SAMPLE_S
    while time.monotonic() < give_up:
        # The pause comes first: nobody may be polling while the row travels.
        await asyncio.sleep(PAUSE_S)
        if claimed_ns[index]:
            return
    raise RuntimeError(f"row {index} was not claimed within {SAMPLE_S:.0f} s")


def _listen(url: str, claimed_ns: Any, gate: Any) -> None:
    uvloop.run(_claim_each(url, claimed_ns, gate))


async def _claim_each(url: str, claimed_ns: Any, gate: Any) -> None:
    async with raw.connected(url) as connection:
        bell = asyncio.Event()
        await connection.add_listener(CHANNEL, lambda *_: bell.set())
        gate.wait(START_UP_S)
        for _ in range(len(claimed_ns)):
            await bell.wait()
            bell.clear()
            for row in await connection.fetch(raw.CLAIM, 1, 1):
                claimed_ns[int(row["text"])] = time.monotonic_ns()
        await asyncio.Event().wait()
