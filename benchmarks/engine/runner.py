"""Measure one contender. Runs in the peers' environment.

    python -m benchmarks.engine.runner pgqueuer

Each line on stdin is a request, each line on stdout its answer:

    {"measure": "drain",  "place": URL, "jobs": 20000, "processes": 2, "window": 60}
    {"measure": "single", "place": URL, "seconds": 2}
    {"measure": "pickup", "place": URL, "samples": 60}        (the bare NOTIFY only)

`place` is an empty database (or file); the contender installs itself there.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks.engine import crew
from benchmarks.engine.measures import Calls, Drained, Enqueued
from benchmarks.engine.peers import Peer

LIMITS = {"raw", "notify"}


def drain(peer: Peer, *, place: str, jobs: int, processes: int, window: float) -> dict[str, Any]:
    """Fill the queue in bulk, then empty it: two measurements of one filling."""
    peer.install(place)
    calls = Calls(jobs)
    peer.enqueue_bulk(place, calls)
    bulk = Enqueued(jobs=jobs, seconds=calls.seconds)
    with peer.outsider(place, jobs) as outsider:
        outsider.settle()
        drained = crew.drain(peer.work, place, jobs=jobs, processes=processes, window=window, done=outsider.done)
        once = drained.once and outsider.once(drained.done)
    drained = Drained(jobs=jobs, done=drained.done, seconds=drained.seconds, once=once)
    return {"drain": asdict(drained), "bulk": asdict(bulk) if peer.HAS_BULK else None}


def single(peer: Peer, *, place: str, seconds: float) -> dict[str, Any]:
    """Enqueue one job per call from one connection."""
    peer.install(place)
    jobs, took = peer.enqueue_singly(place, seconds)
    return {"single": asdict(Enqueued(jobs=jobs, seconds=took))}


def pickup(peer: Any, *, place: str, samples: int) -> dict[str, Any]:
    return {"pickup_ms": peer.round_trips(place, samples)}


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "drain": drain,
    "single": single,
    "pickup": pickup,
}


def main(name: str) -> None:
    # A peer that prints must not speak into the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    package = "benchmarks.engine" if name in LIMITS else "benchmarks.engine.peers"
    peer: Any = importlib.import_module(f"{package}.{name}")
    for line in sys.stdin:
        request = json.loads(line)
        answer = MEASURES[request.pop("measure")](peer, **request)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
