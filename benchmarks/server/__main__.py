"""python -m benchmarks.server [--quick]: the server beside a hand-written one, and under a fleet and a crowd.

A table, and as the last line one JSON object. Nothing here passes or fails by time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from benchmarks.server import fleet, rates, readers
from benchmarks.server.street import Street, street


async def measured(place: Street, *, quick: bool) -> dict[str, Any]:
    compared = await rates.compare(place, rounds=3 if quick else 7, seconds=2.0 if quick else 4.0)
    for name, rate in compared.items():
        print(f"{name:9} {rate.ours:8.0f}/s ours {rate.theirs:8.0f}/s by hand   {rate.ratio:.2f}×", flush=True)
    arrivals = await readers.latencies(place, 10.0 if quick else 60.0)
    print(f"events   {readers.READERS} readers, {readers.EVENTS_PER_SECOND}/s: {readers.told(arrivals)}", flush=True)
    worked = await fleet.measure(place, 40.0 if quick else None)
    print(f"fleet    {fleet.WORKERS} workers: {worked}", flush=True)
    return {
        "submit_vs_handwritten": round(compared["submit"].ratio, 3),
        "get_vs_handwritten": round(compared["get"].ratio, 3),
        "get_ended_vs_handwritten": round(compared["get ended"].ratio, 3),
        "claim_p99_ms_100_workers": round(rates.quantile(worked.claims, 0.99), 1),
        "event_p99_ms": round(rates.quantile(arrivals, 0.99), 1),
        "server_cpu_share_100_workers": round(worked.cpu_share, 3),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server")
    parser.add_argument("--quick", action="store_true", help="under three minutes")
    asked = parser.parse_args()
    begun = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="telecine-bench-") as folder,
        street(Path(folder)) as place,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        figures = runner.run(measured(place, quick=asked.quick))
    figures["seconds"] = round(time.monotonic() - begun, 1)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
