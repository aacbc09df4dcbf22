"""python -m benchmarks.media [--quick]: our encoding beside FFmpeg's, same settings, same film, same run.

A table, and as the last line one JSON object. Nothing here passes or fails by time.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.media import commands, film
from benchmarks.media.measure import Cost, run
from telecine.flows.transcode.plan import Plan
from telecine.media.orders import Rung
from telecine.media.plain import from_plain

CHECKING = ("verify", "poster", "sprites")
BALANCED_SECONDS = 12  # two segments: two slots share them evenly
TEN_MINUTES = 10  # times the minute
OURS, BARE, SHORT = "ours, 60 s", "the same children, bare, 60 s", f"ours, {BALANCED_SECONDS} s"
COMMAND, THREAD, PER_RUNG = "one command, 60 s", "one command, one thread each, 60 s", "one command per rung, 60 s"


@dataclass
class Bench:
    """One run of everything, and what it found."""

    folder: Path
    rounds: int
    costs: dict[str, list[Cost]] = field(default_factory=dict)
    told: dict[str, list[Any]] = field(default_factory=dict)
    count: int = 0

    def fresh(self) -> Path:
        self.count += 1
        path = self.folder / str(self.count)
        path.mkdir()
        return path

    def note(self, name: str, cost: Cost) -> None:
        self.costs.setdefault(name, []).append(cost)
        print(f"{name:34} {cost.cpu:8.1f} s CPU {cost.wall:8.1f} s wall {cost.rss >> 20:6} MB", flush=True)

    def ours(self, name: str, path: Path, *options: str) -> dict[str, Any]:
        """Our own run; checking is taken out of its figures, and noted beside them."""
        folder = self.fresh()
        cost, said = run([sys.executable, "-m", "benchmarks.media.ours", path, folder, *options])
        told: dict[str, Any] = json.loads(said.splitlines()[-1])
        told["folder"] = folder
        if "steps" in told:
            checking = sum(one["cpu_seconds"] for one in told["steps"] if one["stage"] in CHECKING)
            self.note(f"{name}: checking", Cost(told["verify_wall"], checking, 0))
            rss = max(one["max_rss_bytes"] for one in told["steps"])
            cost = Cost(told["wall"] - told["verify_wall"], cost.cpu - checking, rss)
        self.note(name, cost)
        return told

    def peer(self, name: str, command: list[str]) -> None:
        cost, _ = run(command)
        self.note(name, cost)

    def cpu(self, name: str) -> float:
        return median(cost.cpu for cost in self.costs[name])

    def wall(self, name: str) -> float:
        return median(cost.wall for cost in self.costs[name])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.media")
    parser.add_argument("--quick", action="store_true", help="one round on one minute of film: under six minutes")
    asked = parser.parse_args()
    begun = time.monotonic()
    half = film.big_buck_bunny()
    minute = film.twice(half)
    short = film.first(half, BALANCED_SECONDS)
    with tempfile.TemporaryDirectory(prefix="telecine-bench-") as folder:
        bench = Bench(Path(folder), 1 if asked.quick else 3)
        figures: dict[str, Any] = {}
        for _ in range(bench.rounds):
            figures = one_round(bench, half, minute, short)
        if not asked.quick:
            long = film.repeated(half, 2 * TEN_MINUTES)
            figures |= {"first_segment_vs_child_10min": first_segment(bench, long)}
    figures["seconds"] = round(time.monotonic() - begun, 1)
    print(json.dumps(figures))
    return 0


def one_round(bench: Bench, half: Path, minute: Path, short: Path) -> dict[str, Any]:
    told = bench.ours(OURS, minute, "--slots", "2")
    plan = from_plain(Plan, told["plan"])
    auto, alone = bench.fresh(), bench.fresh()
    bench.peer(COMMAND, commands.single(minute, plan.rungs, plan.timing, auto, threads=None))
    # What follows costs twice as much for a film of twice the length: half of it is enough.
    cost, _ = run(commands.single(half, plan.rungs, plan.timing, alone, threads=1))
    bench.note(THREAD, cost.times(2))
    bench.note(PER_RUNG, per_rung(bench, half, plan).times(2))
    bare(bench, minute, told)
    bench.ours(f"{SHORT}, one slot", short, "--slots", "1", "--chunk", "1")
    bench.ours(f"{SHORT}, two slots", short, "--slots", "2", "--chunk", "1")
    bench.told.setdefault("limit", []).append(side_by_side(half))
    return figures_of(bench, told, plan, minute, auto) | {"first_segment_vs_child": first_segment(bench, minute)}


def side_by_side(path: Path) -> float:
    """How much two cores of this machine do more than one: two encodes that share nothing, against one."""
    alone = run(commands.pinned(path, 0))[0].wall
    with ThreadPoolExecutor(2) as pool:
        both = list(pool.map(lambda core: run(commands.pinned(path, core))[0].wall, (0, 1)))
    print(f"{'one encode, and two at once':34} {alone:8.1f} s {max(both):12.1f} s")
    return 2 * alone / max(both)


def per_rung(bench: Bench, half: Path, plan: Plan) -> Cost:
    """One command for each rung, two at a time: what counts is their CPU."""
    folder = bench.fresh()
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        costs = list(pool.map(lambda rung: run(commands.per_rung(half, rung, plan.timing, folder))[0], plan.rungs))
    total = sum(costs, Cost(0, 0, 0))
    return Cost(time.monotonic() - begun, total.cpu, total.rss)


def bare(bench: Bench, path: Path, told: dict[str, Any]) -> None:
    folder = bench.fresh()
    orders = [one["order"] for one in told["steps"] if one["stage"] not in CHECKING]
    (folder / "orders.json").write_text(json.dumps(orders))
    cost, _ = run([sys.executable, "-m", "benchmarks.media.bare", path, folder / "orders.json", folder])
    bench.note(BARE, cost)


def first_segment(bench: Bench, path: Path) -> float:
    """Until a viewer can begin, against a child that does nothing but encode segment 0."""
    folder = bench.fresh()
    ours = []
    for _ in range(bench.rounds):
        told = bench.ours(f"until segment 0, {path.stem}", path, "--until-first", "--slots", "2")
        ours.append(told["first_segment"])
    order = folder / "order.json"
    order.write_text(json.dumps([_segment_0(path, bench)]))
    alone = []
    for n in range(bench.rounds):
        cost, _ = run([sys.executable, "-m", "benchmarks.media.bare", path, order, folder / f"b{n}", "--slots", "1"])
        alone.append(cost.wall)
    print(f"{'segment 0':34} {median(ours):8.1f} s ours {median(alone):8.1f} s a bare child")
    return round(median(ours) / median(alone), 3)


def _segment_0(path: Path, bench: Bench) -> dict[str, Any]:
    """The order that encodes segment 0 of every rung, as our planner gives it."""
    from benchmarks.media.segment import order_for_first

    return order_for_first(path, bench.fresh())


def figures_of(bench: Bench, told: dict[str, Any], plan: Plan, minute: Path, single: Path) -> dict[str, Any]:
    sizes = {rung.name: (single / f"{rung.name}.mp4").stat().st_size for rung in plan.rungs}
    top = max(plan.rungs, key=lambda rung: rung.width)
    ours_db = quality(join(told, top.name, bench.fresh()), minute, top)
    their_db = quality(single / f"{top.name}.mp4", minute, top)
    return {
        "cpu_vs_single_command": round(bench.cpu(OURS) / min(bench.cpu(COMMAND), bench.cpu(THREAD)), 3),
        "wall_vs_single_command": round(bench.wall(OURS) / min(bench.wall(COMMAND), bench.wall(THREAD)), 3),
        "cpu_vs_per_rung": round(bench.cpu(OURS) / bench.cpu(PER_RUNG), 3),
        "two_slots_speedup": round(bench.wall(f"{SHORT}, one slot") / bench.wall(f"{SHORT}, two slots"), 3),
        "two_cores_speedup": round(median(bench.told["limit"]), 3),
        "engine_overhead": round(bench.cpu(OURS) / bench.cpu(BARE) - 1, 4),
        "size_vs_single_pass": round(sum(told["sizes"].values()) / sum(sizes.values()), 4),
        "xpsnr_delta_db": round(ours_db - their_db, 3),
        "child_rss_mb": max(cost.rss for cost in bench.costs[OURS]) >> 20,
    }


def join(told: dict[str, Any], rung: str, folder: Path) -> Path:
    """A rendition as one file: its init and its segments in order."""
    names = {name: told["folder"] / "artifacts" / key for name, key in told["keys"] if name.startswith(f"{rung}/")}
    path = folder / f"{rung}.mp4"
    parts = [names[f"{rung}/init.mp4"], *(names[name] for name in sorted(names) if name.endswith(".m4s"))]
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


def quality(one: Path, source: Path, rung: Rung) -> float:
    """XPSNR of the brightness, in dB."""
    _, said = run(commands.xpsnr(one, source, rung, film.FRAMES))
    found = re.findall(r"XPSNR\s+y:\s*([\d.]+)", said)
    return float(found[-1])


if __name__ == "__main__":
    sys.exit(main())
