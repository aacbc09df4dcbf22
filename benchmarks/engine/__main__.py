"""python -m benchmarks.engine [--quick] [--peers-only]

Nothing here passes or fails by time: the run ends with an error only when somebody could not be
measured at all, or did a job twice.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.engine import ours, report, server
from benchmarks.engine.contenders import Ground, contenders, ground
from benchmarks.engine.environment import peers_python
from benchmarks.engine.measures import quantile
from benchmarks.engine.rounds import Scores, play
from benchmarks.engine.scale import FULL, QUICK, Scale


def main() -> int:
    asked = arguments()
    scale = QUICK if asked.quick else FULL
    python = peers_python()
    begun = time.monotonic()
    with playground(python, scale) as site:
        own = [os.getpid(), *(held.pid for held in site.servers.values())]
        turns = contenders(scale, site, peers_only=asked.peers_only)
        scores = play(turns, rounds=scale.rounds, ours=own)
        figures = report.figures(scores, scale)
        if not asked.peers_only:
            figures |= alone(scale, site)
        version = site.servers["postgres"].version
    figures["seconds"] = round(time.monotonic() - begun, 1)
    print(f"PostgreSQL {version}, fsync on, synchronous_commit on; {os.cpu_count()} cores\n")
    print(report.table(scores, scale), end="\n\n")
    for failure in scores.failures:
        print(failure, file=sys.stderr)
    print(json.dumps(figures))
    return 1 if scores.failures or twice(scores) else 0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine")
    parser.add_argument("--quick", action="store_true", help="few peers, under four minutes")
    parser.add_argument("--peers-only", action="store_true", help="leave our own side out")
    return parser.parse_args()


@contextmanager
def playground(python: Path, scale: Scale) -> Iterator[Ground]:
    """The servers that this run needs, on a directory that goes away with them."""
    wanted = {peer.store for peer in scale.peers}
    with ExitStack() as held:
        directory = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="telecine-bench-")))
        servers = {"postgres": held.enter_context(server.postgres(python, directory))}
        if "redis" in wanted:
            servers["redis"] = held.enter_context(server.redis(python, directory))
        yield ground(python, directory, servers)


def alone(scale: Scale, site: Ground) -> dict[str, object]:
    """The figures that have no peer; measured once, after the rounds."""

    def fresh(name: str) -> str:
        return site.fresh("postgres", f"telecine_{name}")

    few, many = ours.claim_cost(fresh("few"), fresh("many"), few=scale.queued_few, many=scale.queued_many)
    first, last = ours.claim_pinned(fresh("pinned"), claims=scale.pinned_claims)
    killed = scale.killed_workers
    remote = ours.recovery(fresh("remote"), workers=killed, local=False)
    local = ours.recovery(fresh("local"), workers=killed, local=True)
    return {
        "claim_1m_vs_1k": round(many / few, 3),
        "claim_pinned_last_vs_first": round(last / first, 3),
        "recovery_p99_s": round(quantile(remote, 0.99), 2),
        "recovery_local_p99_s": round(quantile(local, 0.99), 2),
    }


def twice(scores: Scores) -> bool:
    return any(turn.sample.drain and not turn.sample.drain.once for turn in scores.turns)


if __name__ == "__main__":
    sys.exit(main())
