"""Kill -9 workers in mid-task: how long until each task runs again, with defaults everywhere."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from ctypes import c_int64
from dataclasses import replace
from multiprocessing.sharedctypes import RawArray
from typing import Any

from benchmarks.engine.ours.place import open_engine, opened, run, settings_for
from telecine import Bench, Flow
from telecine.cli.common import perform
from telecine.wiring import make_worker
from telecine.world import Machine, World

START_UP_S = 120.0
AGAIN_S = 90.0

_spawn = multiprocessing.get_context("spawn")


def recovery(url: str, *, workers: int, local: bool) -> list[float]:
    """Per worker killed in mid-task, the seconds until its task ran again.

    `local`: the survivor is on the dead workers' host and may see that they are gone; otherwise it
    lives under another boot id and has to wait for the leases.
    """
    again_ns = RawArray(c_int64, workers)

    async def measure() -> list[float]:
        async with opened(url) as parts:
            await parts.engine.jobs.register(_flow(None, workers))
            for index in range(workers):
                await parts.engine.jobs.submit("hold", {"index": index})
            doomed = [_spawn.Process(target=_doomed, args=(url,), daemon=True) for _ in range(workers)]
            survivor = _spawn.Process(target=_survivor, args=(url, workers, again_ns, local), daemon=True)
            try:
                for process in doomed:
                    process.start()
                await _until(parts, workers)
                survivor.start()
                await _until_online(parts, workers + 1)
                # Kills spread over a lease, so that every distance to the last beat and the last sweep occurs.
                killed = []
                for process in doomed:
                    killed.append(time.monotonic_ns())
                    process.kill()
                    await asyncio.sleep(4.0 / workers)
                return await _times(killed, again_ns)
            finally:
                for process in [*doomed, survivor]:
                    process.kill()
                    if process.pid is not None:
                        process.join()

    return run(measure)


async def _until(parts: Any, running: int) -> None:
    await _poll(lambda: _count(parts, "running"), running)


async def _until_online(parts: Any, workers: int) -> None:
    await _poll(lambda: _count(parts, "workers"), workers)


async def _count(parts: Any, what: str) -> int:
    table = {"running": "select count(*) from task where state = 'running'", "workers": "select count(*) from worker"}
    async with parts.store.connections.borrow() as connection:
        return int(await connection.fetchval(table[what]))


async def _poll(count: Any, wanted: int) -> None:
    give_up = time.monotonic() + START_UP_S
    while await count() < wanted:
        if time.monotonic() > give_up:
            raise RuntimeError(f"{wanted} were not there within {START_UP_S:.0f} s")
        await asyncio.sleep(0.1)


async def _times(killed: list[int], again_ns: Any) -> list[float]:
    give_up = time.monotonic() + AGAIN_S
    while 0 in list(again_ns):
        if time.monotonic() > give_up:
            raise RuntimeError(f"not every task ran again within {AGAIN_S:.0f} s")
        await asyncio.sleep(0.05)
    # Which worker had which task does not matter: tasks come back in the order of their losses.
    return [(again - dead) / 1e9 for dead, again in zip(sorted(killed), sorted(again_ns), strict=True)]


def _flow(again_ns: Any, workers: int) -> Flow:
    flow = Flow("hold")

    @flow.stage(name="hold", run="inline")
    async def _hold(bench: Bench) -> None:
        if again_ns is None:
            await asyncio.sleep(3_600)
        else:
            again_ns[bench.spec["index"]] = time.monotonic_ns()

    return flow


def _doomed(url: str) -> None:
    _work(url, _flow(None, 0), slots=1, world=World())


def _survivor(url: str, workers: int, again_ns: Any, local: bool) -> None:
    world = World()
    if not local:
        elsewhere = Machine("elsewhere", "another-boot", world.machine.pid_space)
        world = replace(world, machine=elsewhere)
    _work(url, _flow(again_ns, workers), slots=workers, world=world)


def _work(url: str, flow: Flow, *, slots: int, world: World) -> None:
    async def work() -> None:
        async with open_engine(settings_for(url, slots=slots), world=world) as parts:
            await parts.engine.jobs.register(flow)
            await make_worker(parts, [flow]).run()

    perform(work(), swift=True)  # as `telecine worker` does
