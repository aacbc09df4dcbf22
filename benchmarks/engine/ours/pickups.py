"""From the submit call to the handler's start in an idle worker of another process."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from ctypes import c_int64
from multiprocessing.sharedctypes import RawArray
from pathlib import Path
from typing import Any

from benchmarks.engine.measures import payload
from benchmarks.engine.ours.noop import FLOW, noop_flow
from benchmarks.engine.ours.place import open_engine, opened, run, settings_for
from telecine.cli.common import perform
from telecine.wiring import make_worker

PAUSE_S = 0.01
WARM_UP = 20
SAMPLE_S = 10.0
START_UP_S = 60.0

_spawn = multiprocessing.get_context("spawn")


def pickup_postgres(url: str, *, samples: int) -> list[float]:
    """Milliseconds from before the submit call to the handler's start, one per sample.

    As in `notify.py`: a pause between samples, the next one only after the last was picked up, and
    the first 20 are warm-up that is thrown away.
    """
    return _pickups(url, samples)


def pickup_sqlite(path: Path, *, samples: int) -> list[float]:
    """The same across two processes on one SQLite file."""
    return _pickups(f"sqlite:///{path}", samples)


def _pickups(url: str, samples: int) -> list[float]:
    total = samples + WARM_UP
    started_ns = RawArray(c_int64, total)
    gate = _spawn.Barrier(2)

    async def send() -> list[float]:
        async with opened(url) as parts:
            await parts.engine.jobs.register(noop_flow())
            idle = _spawn.Process(target=_idle_worker, args=(url, started_ns, gate), daemon=True)
            idle.start()
            try:
                await asyncio.to_thread(gate.wait, START_UP_S)
                return [await _sample(parts.engine, started_ns, index) for index in range(total)]
            finally:
                idle.kill()
                idle.join()

    return run(send)[WARM_UP:]


async def _sample(engine: Any, started_ns: Any, index: int) -> float:
    sent_ns = time.monotonic_ns()
    await engine.jobs.submit(FLOW, {"text": payload(index)})
    give_up = time.monotonic() + SAMPLE_S
    while time.monotonic() < give_up:
        await asyncio.sleep(PAUSE_S)
        if started_ns[index]:
            return float(started_ns[index] - sent_ns) / 1e6
    raise RuntimeError(f"job {index} was not picked up within {SAMPLE_S:.0f} s")


def _idle_worker(url: str, started_ns: Any, gate: Any) -> None:
    def started(index: int) -> None:
        started_ns[index] = time.monotonic_ns()

    async def work() -> None:
        async with open_engine(settings_for(url)) as parts:
            flow = noop_flow(started)
            await parts.engine.jobs.register(flow)
            gate.wait(START_UP_S)
            await make_worker(parts, [flow]).run()

    perform(work(), swift=True)  # as `telecine worker` does
