"""A hundred workers over HTTP on one long film: how long a claim takes, and what the server spends on all of them.

Each works five seconds on a segment and beats every five seconds, as a real one does; only the encoding is left out.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from benchmarks.server.flow import POSITIONS, wide
from benchmarks.server.rates import quantile
from benchmarks.server.street import Street
from benchmarks.server.talk import Line
from telecine.worker.lanes import lanes_of

WORKERS = 100
SEGMENT_SECONDS = 5.0
BEAT_SECONDS = 5.0
WARM_SECONDS = 8.0


@dataclass
class Found:
    claims: list[float] = field(default_factory=list)  # milliseconds
    done: int = 0
    cpu_share: float = 0.0
    measuring: bool = False

    def __str__(self) -> str:
        p50, p99 = quantile(self.claims, 0.5), quantile(self.claims, 0.99)
        return (
            f"{self.done} segments, {len(self.claims)} claims: p50 {p50:.1f} ms, p99 {p99:.1f} ms; "
            f"the server used {self.cpu_share:.0%} of a core"
        )


async def measure(street: Street, seconds: float | None) -> Found:
    """For so long; None: until the film is done."""
    admin = await Line(street.ours, street.admin).open()
    key = (await admin.told("POST", "/api/worker/register", {"name": "crowd"}))["key"]
    await admin.told("POST", "/api/v1/jobs", {"flow": wide.name, "spec": {}})
    await _plan(street, key)
    found, over = Found(), asyncio.Event()
    crowd = [asyncio.create_task(_work(street, key, number, found, over)) for number in range(WORKERS)]
    await asyncio.sleep(WARM_SECONDS)
    cpu, begun, found.measuring = street.cpu(), time.monotonic(), True
    late = begun + seconds if seconds else begun + 2 * POSITIONS * SEGMENT_SECONDS / WORKERS
    while time.monotonic() < late and found.done < POSITIONS - WORKERS:
        await asyncio.sleep(0.5)
    found.cpu_share = (street.cpu() - cpu) / (time.monotonic() - begun)
    found.measuring = False
    over.set()
    await asyncio.gather(*crowd)
    await admin.close()
    return found


async def _enlisted(line: Line, number: int) -> int:
    asked = {"name": f"w{number}", "request": f"{number:032x}", "lanes": list(lanes_of([wide], ())), "slots": 1}
    return int((await line.told("POST", "/api/worker/enlist", asked))["worker"])


def _claim(worker: int, wait: float) -> dict[str, Any]:
    request = f"{random.getrandbits(128):032x}"
    return {"worker": worker, "request": request, "lanes": lanes_of([wide], ()), "wanted": 1, "wait": wait}


async def _plan(street: Street, key: str) -> None:
    """The first stage: what a worker that reads the film would say."""
    line = await Line(street.ours, key).open()
    worker = await _enlisted(line, WORKERS)
    [lease] = (await line.told("POST", "/api/worker/claim", _claim(worker, 20.0)))["leases"]
    pieces = [{"input": number} for number in range(POSITIONS)]
    done = {"task_id": lease["task_id"], "token": lease["token"], "plan": {"segment": pieces}}
    await line.told("POST", "/api/worker/complete", done)
    await line.told("POST", "/api/worker/retire", {"worker": worker})
    await line.close()


async def _work(street: Street, key: str, number: int, found: Found, over: asyncio.Event) -> None:
    line, beats = await Line(street.ours, key).open(), await Line(street.ours, key).open()
    worker = await _enlisted(line, number)
    held: list[dict[str, int]] = []
    heart = asyncio.create_task(_beat(beats, worker, held))
    await _rest(over, random.random() * SEGMENT_SECONDS)
    while not over.is_set():
        begun = time.monotonic()
        leases = (await line.told("POST", "/api/worker/claim", _claim(worker, 5.0)))["leases"]
        if not leases:
            continue
        if found.measuring:
            found.claims.append(1_000 * (time.monotonic() - begun))
        one = {"task_id": leases[0]["task_id"], "token": leases[0]["token"]}
        held[:] = [one]
        await _rest(over, SEGMENT_SECONDS * (0.8 + 0.4 * random.random()))
        held.clear()
        await line.told("POST", "/api/worker/complete", {**one, "result": {"made": 4}})
        found.done += 1
    heart.cancel()
    await line.told("POST", "/api/worker/retire", {"worker": worker})
    await line.close()
    await beats.close()


async def _beat(line: Line, worker: int, held: list[dict[str, int]]) -> None:
    await asyncio.sleep(random.random() * BEAT_SECONDS)
    while True:
        news = [{**one, "progress": random.random()} for one in held]
        await line.told("POST", "/api/worker/heartbeat", {"worker": worker, "held": news, "load": len(held)})
        await asyncio.sleep(BEAT_SECONDS)


async def _rest(over: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(over.wait(), seconds)
