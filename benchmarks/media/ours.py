"""python -m benchmarks.media.ours FILM FOLDER: one film through the real engine and a real worker, video only.

Run as a process of its own, so that its whole tree can be measured. The last line is a JSON object: what the stages
took, what their children used, and the orders that those were given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.media.measure import own_cpu, touch_memory
from telecine.engine import Submission
from telecine.facts import Fact, Lease, SettleReply, Status
from telecine.settings import Settings
from telecine.wiring import Parts, installed_flows, make_worker, open_engine

LADDER = [
    {"height": 1080, "kbps": 6000}, {"height": 720, "kbps": 3000}, {"height": 540, "kbps": 2000},
    {"height": 360, "kbps": 800},
]  # fmt: skip
LOOK_SECONDS = 0.02
SELDOM_SECONDS = 5.0  # times are the database's: to look more often would only cost
CHECKING = ("verify", "poster", "sprites")


class Checking:
    """Notes what the worker itself uses while it does nothing but check."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self._running: list[str] = []
        self._last = own_cpu()

    def begun(self, lease: Lease) -> None:
        self._note()
        self._running.append(lease.stage)

    def ended(self, lease: Lease, fact: Fact) -> None:
        self._note()
        self._running.remove(lease.stage)

    def _note(self) -> None:
        last, self._last = self._last, own_cpu()
        if self._running and set(self._running) <= set(CHECKING):
            self.cpu += self._last - last

    def settled(self, lease: Lease, answer: SettleReply) -> None:
        """Of no interest."""


def settings_in(folder: Path, slots: int) -> Settings:
    return Settings(
        database_url=f"sqlite:///{folder}/telecine.db",
        artifacts_url=f"{folder}/artifacts",
        scratch=folder / "scratch",
        slots=slots,
        codec_threads=1,
    )


async def transcode(film: Path, folder: Path, slots: int, *, chunk: int | None, until_first: bool) -> dict[str, Any]:
    spec = {"source": str(film), "ladder": LADDER, "audio": "first" if until_first else "none"}
    spec |= {"poster": False, "sprites": False} | ({"chunk_segments": chunk} if chunk else {})
    async with open_engine(settings_in(folder, slots)) as parts:
        flows = installed_flows(parts.settings)
        for flow in flows:
            await parts.engine.jobs.register(flow)
        checking = Checking()
        worker = make_worker(replace(parts, tracing=checking), flows)
        running = asyncio.create_task(worker.run())
        while not (await parts.engine.queries.stats()).workers:
            await asyncio.sleep(LOOK_SECONDS)
        touched = await asyncio.to_thread(touch_memory)
        begun = time.monotonic()
        [job] = await parts.engine.jobs.submit_many([Submission(flow="transcode", spec=spec)])
        if until_first:
            told: dict[str, Any] = {"first_segment": await _first_segment(parts, job.job_id, begun)}
        else:
            told = await _whole(parts, job.job_id)
        worker.stop()
        worker.stop()
        await running
    return told | {"touched": touched, "checking": checking.cpu}


async def _first_segment(parts: Parts, job_id: int, begun: float) -> float:
    """Until segment 0 of every rung and of the sound is recorded: the preview lists it from then on."""
    wanted = len(LADDER) + 1
    while True:
        names = {one.kept.name for one in await parts.engine.queries.kept(job_id, "audio", "video")}
        if sum(name.endswith("/00000.m4s") for name in names) == wanted:
            return time.monotonic() - begun
        await asyncio.sleep(LOOK_SECONDS)


async def _whole(parts: Parts, job_id: int) -> dict[str, Any]:
    views = parts.engine.queries
    job = await views.job(job_id)
    while not Status(job.status).is_final:
        await asyncio.sleep(SELDOM_SECONDS)
        job = await views.job(job_id)
    if job.status != Status.COMPLETED:
        raise SystemExit(f"the job is {job.status}: {job.error}")
    steps = await views.logs(job_id, kind="step", limit=500)
    attempts = {(one.stage, one.position): one for one in (await views.attempts(job_id, limit=500)).items}
    verify = attempts["verify", 0]
    return {
        "wall": (job.ended_at - job.started_at) / 1000,
        "verify_wall": (verify.ended_at - verify.started_at) / 1000,
        "steps": [{"stage": step.stage, **(step.data or {})} for step in steps],
        "sizes": {one.folder: one.bytes for one in await views.tally(job_id) if one.stage == "video"},
        "keys": [[one.kept.name, one.kept.key] for one in await views.kept(job_id, "fetch", "video")],
        "plan": await views.result(job_id, "fetch"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.media.ours")
    parser.add_argument("film", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--slots", type=int, default=2)
    parser.add_argument("--chunk", type=int, help="segments per chunk; else as the planner likes")
    parser.add_argument("--until-first", action="store_true", help="stop when segment 0 can be watched")
    asked = parser.parse_args()
    film, folder = asked.film.resolve(), asked.folder.resolve()
    told = asyncio.run(transcode(film, folder, asked.slots, chunk=asked.chunk, until_first=asked.until_first))
    print(json.dumps({**told, "own_cpu": own_cpu()}))


if __name__ == "__main__":
    main()
