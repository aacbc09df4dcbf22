"""Requests in a second, ours and the hand-written ones in turns."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.server.street import START_SECONDS, Street
from benchmarks.server.talk import Line

AT_ONCE = 16
SPEC = {"name": "Ada", "numbers": list(range(10))}
Ask = Callable[[int], tuple[str, str, Any]]


@dataclass(frozen=True, slots=True)
class Rate:
    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


async def compare(street: Street, rounds: int, seconds: float) -> dict[str, Rate]:
    """Submits and gets, of a job that waits and of one that has ended; of each the middle one of the rounds."""
    found: dict[str, list[Rate]] = {"submit": [], "get": [], "get ended": []}
    ended_id, _ = await _one_of_each(street)
    await _end(street, ended_id)
    ours_id, theirs_id = await _one_of_each(street)
    submit = {"flow": "bench-single", "spec": SPEC}
    asks: dict[str, tuple[Ask, Ask]] = {
        "submit": (lambda n: ("POST", "/api/v1/jobs", submit), lambda n: ("POST", "/jobs", submit)),
        "get": (_get(f"/api/v1/jobs/{ours_id}"), _get(f"/jobs/{theirs_id}")),
        "get ended": (_get(f"/api/v1/jobs/{ended_id}"), _get(f"/jobs/{theirs_id}")),
    }
    for number in range(rounds):
        for name, (mine, others) in asks.items():
            both = {street.ours: mine, street.theirs: others}
            turns = reversed(both) if number % 2 else both  # nobody is always first
            rates = {port: await _rate(port, street.owner, seconds, both[port]) for port in turns}
            found[name].append(Rate(rates[street.ours], rates[street.theirs]))
    return {name: _middle(rates) for name, rates in found.items()}


def _middle(rates: list[Rate]) -> Rate:
    return sorted(rates, key=lambda rate: rate.ratio)[len(rates) // 2]


def _get(path: str) -> Ask:
    return lambda n: ("GET", path, None)


async def _one_of_each(street: Street) -> tuple[int, int]:
    submit = {"flow": "bench-single", "spec": SPEC}
    ours, theirs = await Line(street.ours, street.owner).open(), await Line(street.theirs, street.owner).open()
    made = (await ours.told("POST", "/api/v1/jobs", submit)), (await theirs.told("POST", "/jobs", submit))
    await ours.close()
    await theirs.close()
    return made[0].get("job_id") or made[0]["id"], made[1]["id"]


async def _end(street: Street, job_id: int) -> None:
    """Let a worker do it; nobody works while we measure."""
    with street.worker():
        line = await Line(street.ours, street.owner).open()
        async with asyncio.timeout(START_SECONDS):
            while (await line.told("GET", f"/api/v1/jobs/{job_id}"))["status"] != "completed":
                await asyncio.sleep(0.1)
        await line.close()


async def _rate(port: int, key: str, seconds: float, ask: Ask) -> float:
    lines = [await Line(port, key).open() for _ in range(AT_ONCE)]
    begun = time.monotonic()
    late = begun + seconds

    async def go_on(line: Line) -> int:
        count = 0
        while time.monotonic() < late:
            method, path, body = ask(count)
            status, said = await line.ask(method, path, body)
            if status >= 300:
                raise SystemExit(f"{method} {path} was answered with {status}: {said[:300]!r}")
            count += 1
        return count

    counts = await asyncio.gather(*(go_on(line) for line in lines))
    took = time.monotonic() - begun
    for line in lines:
        await line.close()
    return sum(counts) / took


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


__all__ = ["Rate", "compare", "median", "quantile"]
